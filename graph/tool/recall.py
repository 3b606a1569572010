"""The tool that looks up earlier turns of the session in the archive: whole exchanges, by words or by their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field

from graph.core.search_term import RECALL_TOOL, broad_words, cut_around, searchable_text
from graph.record import ArchivedMessage
from graph.tool.tool_context import PastTurns
from prompt.tool import description
from prompt.tool import result as words

_FOUND_TURNS: Final = 5
_READ_TURNS: Final = 20
_RANKED_TURNS: Final = 200
_TOOL_CHARS: Final = 600
# A shorter rest of the result is left empty: a turn that doesn't fit is named instead.
_LEAST_CHARS: Final = 300
_FRAME_CHARS: Final = 160
_RANGE: Final = re.compile(r"(\d{1,9})(?:\s*(?:턴|번)?\s*(?:-|–|~|to|부터)\s*(?:turn)?\s*(\d{1,9}))?", re.IGNORECASE)


class _Arguments(BaseModel):
    query: str = Field("", description=description.RECALL_QUERY)
    turns: str = Field("", description=description.RECALL_TURNS)


def build_recall(past: PastTurns) -> BaseTool:
    """Returns `recall`; what it finds is text for the model, cut to the size of a tool's result."""

    def recall(query: str = "", turns: str = "") -> str:
        last = past.open_turn - 1
        if not query.strip() and not turns.strip():
            raise ToolException(words.RECALL_NEEDS)
        if last < 1:
            return words.RECALL_NO_TURNS
        named = _numbers(turns, last)
        if turns.strip() and not named:
            raise ToolException(words.no_such_turns(turns[:60], last))
        found = past.find(query, _RANKED_TURNS) if query.strip() else []
        if named:
            found = [number for number in found if number in set(named)] or named
        if not found:
            return words.recall_nothing(query[:200], last)
        most = _READ_TURNS if named else _FOUND_TURNS
        return _Result(past, broad_words(query)).render(found[:most], found[most:])

    return StructuredTool(
        name=RECALL_TOOL,
        description=description.RECALL,
        args_schema=_Arguments,
        func=recall,
        handle_tool_error=True,
    )


def _numbers(turns: str, last: int) -> list[int]:
    """Returns the numbers that a text names, such as "3", "2-4" or "1, 5", as far as there are such turns."""
    named: dict[int, None] = {}
    for match in _RANGE.finditer(turns):
        first = int(match[1])
        end = int(match[2] or first)
        named |= dict.fromkeys(range(max(1, min(first, end)), min(last, max(first, end)) + 1))
    return list(named)


class _Result:
    """Renders turns within the size of a result."""

    def __init__(self, past: PastTurns, query_words: Sequence[Sequence[str]]) -> None:
        self._past = past
        self._words = query_words

    def render(self, shown: Sequence[int], others: Sequence[int]) -> str:
        """Renders the turns in this order, as far as they fit; names those that don't, and the neighbours."""
        most_chars = self._past.result_chars - len(words.RECALL_WARNING) - len(words.recall_more(shown, shown))
        parts: list[str] = []
        for place, number in enumerate(shown):
            # The best turn may take half of the room, or all of it if it's the only one.
            share = most_chars if place == len(shown) - 1 else max(most_chars // 2, _LEAST_CHARS)
            if most_chars < _LEAST_CHARS and parts:
                break
            part = self._turn(number, min(share, most_chars) - _FRAME_CHARS)
            parts.append(part)
            most_chars -= len(part) + 1
        opened = list(shown[: len(parts)])
        rest = [*shown[len(parts) :], *others]
        return words.recalled(parts, words.recall_more(self._neighbours(opened), rest[:_FOUND_TURNS]))

    def _turn(self, number: int, most_chars: int) -> str:
        said = [*self._said(self._past.read(number, number))]
        lengths = [min(len(text), _TOOL_CHARS) if role == "tool" else len(text) for role, _, text in said]
        limits = _shared(lengths, most_chars - 40 * len(said))
        cut = [
            (role, name, cut_around(text, self._words, limit))
            for (role, name, text), limit in zip(said, limits, strict=True)
        ]
        return words.recalled_turn(number, cut)

    def _said(self, entries: Iterable[ArchivedMessage]) -> Iterator[tuple[words.Speaker, str, str]]:
        for entry in entries:
            message, text = entry.message, searchable_text(entry.message).strip()
            if not text:
                continue
            if isinstance(message, ToolMessage):
                yield "tool", message.name or "", text
            elif isinstance(message, (HumanMessage, AIMessage)):
                yield "user" if isinstance(message, HumanMessage) else "assistant", "", text

    def _neighbours(self, opened: Sequence[int]) -> list[int]:
        beside = {near for number in opened for near in (number - 1, number + 1)} - set(opened)
        return sorted(near for near in beside if 1 <= near < self._past.open_turn)


def _shared(lengths: Sequence[int], most_chars: int) -> list[int]:
    """Shares the room out: each text gets its length, the longest ones only what is left for each of them."""
    limits = list(lengths)
    left, open_texts = max(0, most_chars), len(lengths)
    for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
        limits[place] = min(lengths[place], left // open_texts)
        left -= limits[place]
        open_texts -= 1
    return limits
