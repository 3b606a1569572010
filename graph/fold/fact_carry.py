"""Reads the facts of records, so that a replacing record carries them on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import Final, Literal, NamedTuple

from graph.core.text import estimate_tokens
from graph.fold.fact import (
    LINE_LABELS,
    Fact,
    FactLine,
    fact_as_written,
    facts_in,
    is_instruction,
    line_within,
    present_in,
)
from graph.value.record import Record

_LINE_SHARE: Final = 1 / 3
_FIRM_LINE_SHARE: Final = 2 / 3
# Labels of records and marks of turns: their numbers are no facts.
_MARK: Final = re.compile(r"\[(?:\d+-\d+턴|Turns \d+-\d+)\]|\((?:\d+(?:-\d+)?턴|turns? \d+(?:-\d+)?)\)", re.IGNORECASE)


class _Rank(NamedTuple):
    """Sort key among facts of equal weight: position in its record's list, then the record's age."""

    rank: int
    age: int


def without_marks(text: str) -> str:
    return _MARK.sub(" ", text)


def without_line(summary: str) -> str:
    text, _, last = summary.rpartition("\n")
    return text if text and last.startswith(tuple(LINE_LABELS.values())) else summary


def carried_facts(records: Sequence[Record]) -> tuple[Fact, ...]:
    """Returns the facts of records (oldest first), heaviest first; each once.

    Weight depends on the kind alone. Among equal weights, the first facts of each record precede all second ones, the
    newest record first: so no record loses all of its facts to the others.
    """
    found: dict[tuple[str, str], tuple[_Rank, Fact]] = {}
    for age, record in enumerate(reversed(records)):
        counts: dict[float, int] = {}
        for fact in _held(record):
            rank = _Rank(counts.setdefault(fact.weight, 0), age)
            counts[fact.weight] += 1
            known = found.get(fact.identity)
            if known is None or rank < known[0]:
                found[fact.identity] = rank, fact
    return tuple(fact for _, fact in sorted(found.values(), key=lambda each: (-each[1].weight, each[0])))


def carried_line(
    facts: Iterable[Fact],
    language: Literal["ko", "en"],
    max_tokens: int,
    *,
    fits: Callable[[str], bool] = lambda _: True,
) -> FactLine:
    """Writes the line of facts that a record carries on, in up to a third of its tokens.

    Rules, prohibitions and identifiers may take up to two thirds, as they are meaningful alone; bare numbers and names
    need their sentences.
    """

    def is_allowed(line: str, fact: Fact) -> bool:
        share = _FIRM_LINE_SHARE if fact.is_firm else _LINE_SHARE
        return estimate_tokens(line) <= max_tokens * share and fits(line)

    return line_within(facts, language, is_allowed)


def room_for_firm(facts: Iterable[Fact], language: Literal["ko", "en"]) -> int:
    """Returns the smallest size of a record, in tokens, whose line of facts has room for all firm facts."""
    line = line_within((fact for fact in facts if fact.is_firm), language, lambda *_: True).text
    return ceil(estimate_tokens(line) / _FIRM_LINE_SHARE)


def _held(record: Record) -> Iterator[Fact]:
    """Yields the facts of a record's summary: first the stored ones, then others found in the text.

    A summary's own sentences may read like a rule that no user gave, so they count as rules and prohibitions only if
    the record was never compared with its source. Stored facts are the user's; without any, all may be.
    """
    facts = facts_in(without_marks(without_line(record.summary)))
    kinds = {fact.key: fact for fact in facts if not is_instruction(fact)}
    stored = present_in((fact_as_written(text, kinds) for text in record.kept_facts), record.summary)
    yield from (replace(fact, is_of_user=True) for fact in stored)
    for fact in facts:
        if fact.kind != "vague" and not (record.kept_facts and is_instruction(fact)):
            yield replace(fact, is_of_user=not record.kept_facts)
