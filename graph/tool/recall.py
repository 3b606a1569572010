"""The tool for reading earlier turns of the session from the archive: by words, or whole exchanges by turn numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final

from langchain_core.tools import BaseTool, ToolException

from graph.core.text import estimate_tokens
from graph.core.turn import RECALL_TOOL
from graph.search.term import matches_well, searchable_text
from graph.tool.recalled import FOUND_TURNS, RecalledTurns
from graph.tool.tool_context import PastTurns, build_tool
from prompt.system.framing import Language
from prompt.tool import words
from prompt.tool.words import DESCRIPTIONS, recalled_numbers

SEARCH_TOKENS: Final = 1_200
"""The largest result of a search, warning and notes included."""

_READ_TURNS: Final = 20
_RANKED_TURNS: Final = 200
_LOOKED_UP_TURNS: Final = 2
_RANGE: Final = re.compile(
    r"(\d{1,9})(?:\s*+(?:턴|번)?+\s*+(?:-|–|~|to|부터)\s*+(?:turn)?+\s*+(\d{1,9}))?", re.IGNORECASE
)


def opened_turns(tool: str, result: str) -> tuple[int, ...] | None:
    return recalled_numbers(result) if tool == RECALL_TOOL else None


def build_recall(past: PastTurns, language: Language) -> BaseTool:
    """Returns `recall`; its result is text for the model, cut to `SEARCH_TOKENS` or the size of a tool result."""
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
            result = RecalledTurns(past, query, language, limit=past.result_chars)
            return result.read(found[:_READ_TURNS], found[_READ_TURNS:])
        if not found:
            return words.recall_nothing(query[:200], first, last, language)
        result = RecalledTurns(past, query, language, limit=SEARCH_TOKENS, measure=_measure(past, SEARCH_TOKENS))
        return result.found(found, past.unsaid(query, first))

    return build_tool(recall, described.recall, query=described.recall_query, turns=described.recall_turns)


def look_up(past: PastTurns, question: str, folded: Collection[int], language: Language, *, max_tokens: int) -> str:
    """Returns the folded turns that match a question well, for a model that can't call `recall`; "" for none.

    A turn matches well if it has at least two, and half, of the question's words: on the public chats of
    docs/recall.md that shows one for 85 % of the questions that the chat answers, and for 14 % of others.
    """
    folded = {*folded}
    found = [number for number in past.find(question, past.first_turn(), _RANKED_TURNS) if number in folded]
    matching = [number for number in found[:FOUND_TURNS] if matches_well(_text(past, number), question)]
    limit = min(SEARCH_TOKENS, max_tokens)
    return RecalledTurns(past, question, language, limit=limit, measure=_measure(past, limit)).alone(
        matching[:_LOOKED_UP_TURNS]
    )


def _measure(past: PastTurns, limit: int) -> Callable[[str], int]:
    """Returns a function for the tokens of a text, or its share of the largest tool result if that is larger."""
    return lambda text: max(estimate_tokens(text), -(-len(text) * limit // max(1, past.result_chars)))


def _text(past: PastTurns, number: int) -> str:
    return "\n".join(searchable_text(entry.message) for entry in past.read(number, number))


def _numbers(turns: str, least: int, last: int) -> list[int]:
    """Returns the existing turn numbers in a text such as "3", "2-4" or "1, 5"."""
    named: dict[int, None] = {}
    for match in _RANGE.finditer(turns):
        first = int(match[1])
        end = int(match[2] or first)
        named |= dict.fromkeys(range(max(least, min(first, end)), min(last, max(first, end)) + 1))
    return list(named)
