"""The tool for reading earlier turns of the session from the archive: whole exchanges, by words or turn numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field, create_model

from graph.core.text import estimate_tokens
from graph.core.turn import RECALL_TOOL
from graph.search.term import broad_words, count_content_of, cut_around, searchable_text
from graph.tool.tool_context import PastTurns
from graph.value.record import ArchivedMessage
from prompt.system.framing import Language
from prompt.tool import words
from prompt.tool.words import DESCRIPTIONS, Speaker, recalled, recalled_numbers, recalled_turn

_FOUND_TURNS: Final = 5
_READ_TURNS: Final = 20
_RANKED_TURNS: Final = 200
_TOOL_CHARS: Final = 600
# A shorter rest of the result stays empty: a turn that doesn't fit is only named.
_LEAST_CHARS: Final = 300
_FRAME_CHARS: Final = 160
_LOOKED_UP_TURNS: Final = 2
_LEAST_WORDS: Final = 2
_LEAST_SHARE: Final = 0.5
_CHARS_PER_TOKEN: Final = 3
_RANGE: Final = re.compile(
    r"(\d{1,9})(?:\s*+(?:턴|번)?+\s*+(?:-|–|~|to|부터)\s*+(?:turn)?+\s*+(\d{1,9}))?", re.IGNORECASE
)


def opened_turns(tool: str, result: str) -> tuple[int, ...] | None:
    return recalled_numbers(result) if tool == RECALL_TOOL else None


def build_recall(past: PastTurns, language: Language) -> BaseTool:
    """Returns `recall`; its result is text for the model, cut to the size of a tool result."""
    described = DESCRIPTIONS[language]

    def recall(query: str = "", turns: str = "") -> str:
        first, last = past.first_turn(), past.open_turn - 1
        if not query.strip() and not turns.strip():
            raise ToolException(words.RECALL_NEEDS[language])
        if last < first:
            return words.RECALL_NO_TURNS[language]
        named = _numbers(turns, first, last)
        if turns.strip() and not named:
            raise ToolException(words.no_such_turns(turns[:60], first, last, language))
        found = past.find(query, first, _RANKED_TURNS) if query.strip() else []
        if named:
            found = [number for number in found if number in set(named)] or named
        if not found:
            return words.recall_nothing(query[:200], first, last, language)
        most = _READ_TURNS if named else _FOUND_TURNS
        return _Result(past, first, broad_words(query), language).render(found[:most], found[most:])

    return StructuredTool(
        name=RECALL_TOOL,
        description=described.recall,
        args_schema=_arguments(language),
        func=recall,
        handle_tool_error=True,
    )


def look_up(past: PastTurns, question: str, folded: Collection[int], language: Language, *, max_tokens: int) -> str:
    """Returns the folded turns that match a question well, for a model that can't call `recall`; "" for none.

    A turn matches well if it has at least two, and half, of the question's words: on the public chats of
    docs/recall.md that shows one for 85 % of the questions that the chat answers, and for 14 % of others.
    """
    folded = {*folded}
    found = [number for number in past.find(question, past.first_turn(), _RANKED_TURNS) if number in folded]
    matching = [number for number in found[:_FOUND_TURNS] if _matches(past, number, question)][:_LOOKED_UP_TURNS]
    most_chars = min(past.result_chars, max_tokens * _CHARS_PER_TOKEN)
    if not matching or most_chars < _LEAST_CHARS:
        return ""
    result = _Result(past, past.first_turn(), broad_words(question), language)
    while matching:
        room = most_chars // len(matching) - _FRAME_CHARS
        text = recalled([result.turn(number, room) for number in matching], "", language)
        if estimate_tokens(text) <= max_tokens:
            return text
        most_chars = most_chars * 3 // 4
        if most_chars // len(matching) < _LEAST_CHARS:
            matching.pop()
    return ""


def _matches(past: PastTurns, number: int, question: str) -> bool:
    text = "\n".join(searchable_text(entry.message) for entry in past.read(number, number))
    found, asked = count_content_of(text, question)
    return found >= _LEAST_WORDS and found >= asked * _LEAST_SHARE


@cache  # building it takes half a millisecond, for each call of a model
def _arguments(language: Language) -> type[BaseModel]:
    described = DESCRIPTIONS[language]
    return create_model(
        "Arguments",
        query=(str, Field("", description=described.recall_query)),
        turns=(str, Field("", description=described.recall_turns)),
    )


def _numbers(turns: str, least: int, last: int) -> list[int]:
    """Returns the existing turn numbers in a text such as "3", "2-4" or "1, 5"."""
    named: dict[int, None] = {}
    for match in _RANGE.finditer(turns):
        first = int(match[1])
        end = int(match[2] or first)
        named |= dict.fromkeys(range(max(least, min(first, end)), min(last, max(first, end)) + 1))
    return list(named)


class _Result:
    def __init__(
        self, past: PastTurns, first_turn: int, query_words: Sequence[Sequence[str]], language: Language
    ) -> None:
        self._past = past
        self._first_turn = first_turn
        self._words = query_words
        self._language = language

    def render(self, shown: Sequence[int], others: Sequence[int]) -> str:
        """Renders the turns in order while they fit; names the remaining ones and the neighbours."""
        most_chars = self._past.result_chars - len(recalled([], self._more(shown, shown), self._language))
        parts: list[str] = []
        for index, number in enumerate(shown):
            # The best turn may take half of the room, or all of it if there is no other.
            share = most_chars if index == len(shown) - 1 else max(most_chars // 2, _LEAST_CHARS)
            if most_chars < _LEAST_CHARS and parts:
                break
            part = self.turn(number, min(share, most_chars) - _FRAME_CHARS)
            parts.append(part)
            most_chars -= len(part) + 1
        opened = list(shown[: len(parts)])
        rest = [*shown[len(parts) :], *others]
        return recalled(parts, self._more(self._neighbours(opened), rest[:_FOUND_TURNS]), self._language)

    def turn(self, number: int, most_chars: int) -> str:
        shown = [*self._shown(self._past.read(number, number))]
        lengths = [min(len(text), _TOOL_CHARS) if role == "tool" else len(text) for role, _, text in shown]
        limits = _shared(lengths, most_chars - 40 * len(shown))
        cut = [
            (role, name, cut_around(text, self._words, limit))
            for (role, name, text), limit in zip(shown, limits, strict=True)
        ]
        return recalled_turn(number, cut)

    def _shown(self, entries: Iterable[ArchivedMessage]) -> Iterator[tuple[Speaker, str, str]]:
        for entry in entries:
            message, text = entry.message, searchable_text(entry.message).strip()
            if not text:
                continue
            if isinstance(message, ToolMessage):
                yield "tool", message.name or "", text
            elif isinstance(message, (HumanMessage, AIMessage)):
                yield "user" if isinstance(message, HumanMessage) else "assistant", "", text

    def _more(self, neighbours: Sequence[int], others: Sequence[int]) -> str:
        return words.recall_more(neighbours, others, self._language)

    def _neighbours(self, opened: Sequence[int]) -> list[int]:
        beside = {neighbour for number in opened for neighbour in (number - 1, number + 1)} - set(opened)
        return sorted(neighbour for neighbour in beside if self._first_turn <= neighbour < self._past.open_turn)


def _shared(lengths: Sequence[int], most_chars: int) -> list[int]:
    """Distributes the room: short texts get their full length, the longest ones equal shares of the rest."""
    limits = list(lengths)
    left, open_texts = max(0, most_chars), len(lengths)
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        limits[index] = min(lengths[index], left // open_texts)
        left -= limits[index]
        open_texts -= 1
    return limits
