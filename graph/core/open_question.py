"""The open question at the end of a summary, which leaves the model input once a later record stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from graph.core.text import estimate_tokens
from graph.core.turn import label_of
from graph.value.record import HistoryEntry
from prompt.system.framing import Language

# "질문: …", also as an item of a list, in bold or after the mark of its turn.
_QUESTION: Final = re.compile(
    r"\s{0,8}(?:[-*•]\s)?(?:\((?:\d+(?:-\d+)?턴|turns? \d+(?:-\d+)?)\)\s)?\*{0,2}(?:질문|Question)\*{0,2}\s?[:：]",
    re.IGNORECASE,
)
# What may follow the question: its options in lines of their own, empty lines, in older records the line of facts.
_BEHIND: Final = re.compile(r"\s{0,8}\(?[1-9][.)]\s(?!\*\*)|\s*$|(?P<facts>(?:사실|Facts): )")


def question_start(lines: Sequence[str]) -> int:
    """Returns the index of the question that ends a summary, a line `질문: …` or `Question: …`; the length without."""
    begin = len(lines)
    for index in range(len(lines) - 1, -1, -1):
        if _QUESTION.match(lines[index]):
            begin = index
        elif not _BEHIND.match(lines[index]):
            break
    return begin


def before_question(summary: str, line: str) -> str:
    """Adds a line to a summary, before the question that ends it."""
    lines = summary.split("\n")
    begin = question_start(lines)
    return "\n".join([*lines[:begin], line, *lines[begin:]])


def without_question(summary: str) -> str:
    """Returns a summary without the question that ends it and its options.

    The line of facts stays, but for those that only the question has. So does a question that is the whole summary.
    """
    lines = summary.split("\n")
    begin = question_start(lines)
    if begin == len(lines) or not any(map(str.strip, lines[:begin])):
        return summary
    text = [line for line in lines[:begin] if not _is_facts(line)]
    asked = "\n".join(line for line in lines[begin:] if not _is_facts(line))
    facts = (_told(line, asked, "\n".join(text)) for line in filter(_is_facts, lines))
    return "\n".join([*text, *filter(None, facts)])


def _is_facts(line: str) -> bool:
    found = _BEHIND.match(line)
    return bool(found and found["facts"])


def _told(line: str, asked: str, said: str) -> str:
    """Returns a line of facts without those that the question has and the text hasn't; "" if none is left."""
    label, _, facts = line.partition(" ")
    left = [fact for fact in facts.split(", ") if fact not in asked or fact in said]
    return f"{label} {', '.join(left)}" if left else ""


def without_answered(history: Sequence[HistoryEntry], language: Language) -> list[HistoryEntry]:
    """Returns the records as they are sent: the newest whole, the others without their question.

    A record's text changes once, when the next record stands. Everything behind it is new in that input anyway, so
    that a provider's cached prefix ends where it would have ended.
    """
    return [*(_without_question(entry, language) for entry in history[:-1]), *history[-1:]]


def _without_question(entry: HistoryEntry, language: Language) -> HistoryEntry:
    summary, tokens = _measured(label_of(entry["turns"], language, entry.get("days", "")), entry["summary"])
    return entry if summary == entry["summary"] else {**entry, "summary": summary, "summary_tokens": tokens}


@lru_cache(maxsize=256)
def _measured(label: str, summary: str) -> tuple[str, int]:
    text = without_question(summary)
    return text, estimate_tokens(label + text)
