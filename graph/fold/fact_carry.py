"""Reads the facts that records hold, so that whatever replaces these records carries them on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil
from typing import Final, Literal, NamedTuple

from graph.core.text import estimate_tokens
from graph.fold.fact import LINE_LABELS, Fact, FactLine, fact_as_written, facts_in, is_wish, kept_in, line_within
from graph.value.record import Record

_LINE_SHARE: Final = 1 / 3
_FIRM_LINE_SHARE: Final = 2 / 3
# Labels of records and marks of turns: their numbers are no facts.
_MARK: Final = re.compile(r"\[(?:\d+-\d+턴|Turns \d+-\d+)\]|\((?:\d+(?:-\d+)?턴|turns? \d+(?:-\d+)?)\)", re.IGNORECASE)


class _Place(NamedTuple):
    """Where a fact stands among those of equal weight: its place in its record's list, and how old the record is."""

    place: int
    age: int


def without_marks(text: str) -> str:
    """Returns a summary without the labels and marks of its turns."""
    return _MARK.sub(" ", text)


def without_line(summary: str) -> str:
    """Returns a summary without the line of facts behind it."""
    text, _, last = summary.rpartition("\n")
    return text if text and last.startswith(tuple(LINE_LABELS.values())) else summary


def carried_facts(records: Sequence[Record]) -> tuple[Fact, ...]:
    """Returns the facts that records hold, weightiest first; each once.

    The kind alone weighs: rules and prohibitions, then identifiers, and so on. Of equal ones, each record's first come
    before any record's second, and its list begins with what the user said; of these the newest record's. So none of
    the records loses all of its facts to the others.

    Args:
        records: Completed records, oldest first.
    """
    found: dict[tuple[str, str], tuple[_Place, Fact]] = {}
    for age, record in enumerate(reversed(records)):
        places: dict[float, int] = {}
        for fact in _held(record):
            place = _Place(places.setdefault(fact.weight, 0), age)
            places[fact.weight] += 1
            known = found.get(fact.identity)
            if known is None or place < known[0]:
                found[fact.identity] = place, fact
    return tuple(fact for _, fact in sorted(found.values(), key=lambda each: (-each[1].weight, each[0])))


def carried_line(
    facts: Iterable[Fact],
    language: Literal["ko", "en"],
    max_tokens: int,
    *,
    fits: Callable[[str], bool] = lambda _: True,
) -> FactLine:
    """Writes the line of the facts that a record carries on: in up to a third of its tokens.

    Rules, prohibitions and identifiers may take up to two thirds: they say something by themselves, and no sentence is
    worth more. Bare numbers and names need the sentences that they stood in.

    Args:
        facts: What the text lacks, weightiest first.
        language: The session's language.
        max_tokens: The bound on the whole record, our estimate.
        fits: Whether there is room for such a line.
    """

    def is_allowed(line: str, fact: Fact) -> bool:
        share = _FIRM_LINE_SHARE if fact.is_firm else _LINE_SHARE
        return estimate_tokens(line) <= max_tokens * share and fits(line)

    return line_within(facts, language, is_allowed)


def room_for_firm(facts: Iterable[Fact], language: Literal["ko", "en"]) -> int:
    """Returns the tokens of a record that has room for all rules, prohibitions and identifiers in its line."""
    line = line_within((fact for fact in facts if fact.is_firm), language, lambda *_: True).text
    return ceil(estimate_tokens(line) / _FIRM_LINE_SHARE)


def _held(record: Record) -> Iterator[Fact]:
    """Yields the facts that a record's summary holds: those that it was found to have, then what else is in its text.

    A summary's own sentences may sound like an order though no user gave it, so they count as rules and prohibitions
    only if the record was never compared with its source.
    """
    told = facts_in(without_marks(without_line(record.summary)))
    kinds = {fact.key: fact for fact in told if not is_wish(fact)}
    yield from kept_in((fact_as_written(text, kinds) for text in record.kept_facts), record.summary)
    for fact in told:
        if fact.kind != "vague" and not (record.kept_facts and is_wish(fact)):
            yield fact
