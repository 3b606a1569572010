"""What a summary kept and lacks by class of fact, and what another length would leave out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from graph.fold.fact_check import lacking_facts
from graph.fold.fact_find import fact_as_written, is_instruction
from graph.fold.review import NOTE_SHARE
from graph.fold.spec import target_chars
from graph.value.record import Record
from graph.value.view import FACT_CLASSES, FactClass, FactCount

_CLASSES: Final[Mapping[str, FactClass]] = {
    "negation": "rule",
    "rule": "rule",
    "choice": "decision",
    "preference": "preference",
    "name": "name",
    "date": "date",
    "path": "path",
    "link": "path",
    "email": "path",
    "code": "path",
}
_KNOWN_FACTS: Final = 2_048


@lru_cache(maxsize=_KNOWN_FACTS)
def class_of(fact: str) -> FactClass:
    """Returns the class of a stored fact; everything that is counted or numbered is a number."""
    return _CLASSES.get(fact_as_written(fact).kind, "number")


def count_facts(records: Iterable[Record]) -> tuple[FactCount, ...]:
    """Counts by class what records say, or the ledger keeps, of the facts of their sources; empty classes left out."""
    kept: Counter[FactClass] = Counter()
    missing: Counter[FactClass] = Counter()
    for record in records:
        lacking = lacking_facts(record.summary, record.missing_facts)
        kept.update(map(class_of, record.kept_facts))
        kept.update(class_of(fact) for fact in record.missing_facts if fact not in lacking)
        missing.update(map(class_of, lacking))
    counts = (FactCount(name, kept[name], kept[name] + missing[name]) for name in FACT_CLASSES)
    return tuple(count for count in counts if count.total)


def left_out_at(record: Record, rate: float) -> tuple[str, ...]:
    """Estimates which facts of a record's source a summary of this rate has no room for, weightiest first.

    Each takes its own length and as much again for the words around it as a complete note takes; what the ledger keeps
    takes none.
    """
    left_chars = target_chars(record.original_chars, rate)
    found: list[str] = []
    for fact in (*record.kept_facts, *record.missing_facts):
        if record.ledger and is_instruction(fact_as_written(fact)):
            continue
        needed = int(len(fact) * NOTE_SHARE)
        if needed <= left_chars:
            left_chars -= needed
        else:
            found.append(fact)
    return tuple(found)
