"""Renders the turns that `recall` found, and reads them back from its result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple, cast

from prompt.system.framing import Language
from prompt.tool.result import RECALL_WARNING

Speaker = Literal["user", "tool", "assistant"]

_TAG: Final = re.compile(r"<(?=/?(?:recalled|turn|user|tool|assistant)\b)", re.IGNORECASE)
_TURN: Final = re.compile(r'^<turn number="(\d+)">$(?:\n((?:(?!</?turn\b).*+\n)*+)</turn>)?', re.MULTILINE)
_SAID: Final = re.compile(
    r"^<(user|tool|assistant)\b[^<>]*+>((?:[^<]++|<(?!/?(?:user|tool|assistant)\b))*+)</\1>$", re.MULTILINE
)


class RecalledText(NamedTuple):
    """What a speaker said in a turn, as far as the result shows it."""

    turn: int
    speaker: Speaker
    text: str


def recalled_turn(number: int, said: Iterable[tuple[Speaker, str, str]]) -> str:
    """Renders a turn: each message's speaker, the tool's name and the text, which can't end its tag or begin another."""
    lines = []
    for speaker, tool, text in said:
        name = f' name="{_escape(tool)}"' if tool else ""
        lines.append(f"<{speaker}{name}>{_escape(text)}</{speaker}>")
    return "\n".join([f'<turn number="{number}">', *lines, "</turn>"])


def recalled(turns: Iterable[str], more: str, language: Language) -> str:
    """Renders the result of a look-up."""
    parts = [RECALL_WARNING[language], "<recalled>", *turns, "</recalled>", more]
    return "\n".join(part for part in parts if part)


def recalled_numbers(result: str) -> tuple[int, ...]:
    """Returns the turns that a result of `recall` shows, in order of their numbers."""
    return tuple(sorted({int(found[1]) for found in _TURN.finditer(result)}))


def recalled_texts(result: str) -> Iterator[RecalledText]:
    """Yields what a result of `recall` shows, in the order of the result."""
    for turn in _TURN.finditer(result):
        for said in _SAID.finditer(turn[2] or ""):
            yield RecalledText(int(turn[1]), cast("Speaker", said[1]), said[2])


def _escape(text: str) -> str:
    return _TAG.sub("‹", text)
