"""Compares an adopted summary with the facts of its source, and adds a line of the missing ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from langchain_core.messages import AnyMessage, SystemMessage

from graph.core.fact import Fact, facts_line, facts_of, kept_in, missing_from
from graph.core.review import Source, is_within
from graph.core.turn import text_of

# A tool result may hold thousands of numbers, which nobody reads in a list.
MOST_FACTS: Final = 100
_LINE_SHARE: Final = 0.3
_BOUND_LINE_SHARE: Final = 0.5
# Labels of records and marks of turns: their numbers are no facts.
_MARK: Final = re.compile(r"\[(?:\d+-\d+턴|Turns \d+-\d+)\]|\((?:\d+(?:-\d+)?턴|turns? \d+(?:-\d+)?)\)", re.IGNORECASE)


class CheckedText(NamedTuple):
    """A summary with its line of facts; what it keeps of its source's facts and what it misses, weightiest first."""

    text: str
    kept: tuple[str, ...]
    missing: tuple[str, ...]


def check_facts(text: str, source: Source) -> CheckedText:
    """Returns the summary with a line of the facts that it lacks, as far as the target has room, and what it holds.

    The line takes at most 30 % of the target, of a target that is only an upper bound a half. The 100 weightiest facts
    are compared.
    """
    facts = facts_of(list(_told(source)))[:MOST_FACTS]
    whole = _with_line(text, source, missing_from(facts, text))
    kept, missing = kept_in(facts, whole), missing_from(facts, whole)
    return CheckedText(whole, tuple(fact.text for fact in kept), tuple(fact.text for fact in missing))


def _with_line(text: str, source: Source, missing: tuple[Fact, ...]) -> str:
    share = _BOUND_LINE_SHARE if source.is_bound else _LINE_SHARE
    room_chars = min(int(source.asked_chars * share), source.asked_chars - len(text) - 1)
    line = facts_line(missing, source.session_language, room_chars).text
    whole = f"{text}\n{line}"
    return whole if line and is_within(whole, source) else text


def _told(source: Source) -> Iterator[AnyMessage]:
    """Yields the messages; those that are summaries without their marks."""
    for message in source.messages:
        is_summary = source.is_summary or isinstance(message, SystemMessage)
        yield message.model_copy(update={"content": _MARK.sub(" ", text_of(message))}) if is_summary else message
