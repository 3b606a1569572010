"""Compares an adopted summary with the facts of its source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from langchain_core.messages import AnyMessage, SystemMessage

from graph.core.fact import facts_of, kept_in, missing_from
from graph.core.review import Source
from graph.core.turn import text_of

# A tool result may hold thousands of numbers, which nobody reads in a list.
MOST_FACTS: Final = 100
# Labels of records and marks of turns: their numbers are no facts.
_MARK: Final = re.compile(r"\[(?:\d+-\d+턴|Turns \d+-\d+)\]|\((?:\d+(?:-\d+)?턴|turns? \d+(?:-\d+)?)\)", re.IGNORECASE)


class CheckedFacts(NamedTuple):
    """What a summary has of its source's facts and what it lacks, weightiest first."""

    kept: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def check_facts(text: str, source: Source) -> CheckedFacts:
    """Returns which of the 100 weightiest facts of its source a summary has, and which it lacks."""
    facts = facts_of(list(_told(source)))[:MOST_FACTS]
    kept, missing = kept_in(facts, text), missing_from(facts, text)
    return CheckedFacts(tuple(fact.text for fact in kept), tuple(fact.text for fact in missing))


def _told(source: Source) -> Iterator[AnyMessage]:
    """Yields the messages; those that are summaries without their marks."""
    for message in source.messages:
        is_summary = source.is_summary or isinstance(message, SystemMessage)
        yield message.model_copy(update={"content": _MARK.sub(" ", text_of(message))}) if is_summary else message
