"""Snapshot of a session, from which strategies decide what to fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graph.record import ArchivedMessage, Record


@dataclass(frozen=True)
class SessionSnapshot:
    """What a strategy decides on.

    Attributes:
        complete_turns: How many turns of the session have their answer.
        active: The records in force, oldest first; together they cover the session's beginning without a gap.
        raw: The live messages that no record covers, oldest first; those of an open turn included.
        rate: The compression rate in force now.
        correction: What our estimates are multiplied by to meet the provider's usage; 1.0 while it reports none.
        restored_tokens: Our estimate for the context when a compaction was last undone, 0 if none was since the last
            one: until the context has grown past it, no compaction is made by itself.
        input_tokens: How large a whole input of the session's model may be; None if nobody asks for a bound.
    """

    complete_turns: int
    active: Sequence[Record]
    raw: Sequence[ArchivedMessage]
    rate: float
    correction: float = 1.0
    restored_tokens: int = 0
    input_tokens: int | None = None

    @property
    def covered_turn(self) -> int:
        """The last turn that is covered whole, or left behind by a reset; 0 if none is."""
        return self.raw[0].turn - 1 if self.raw else self.complete_turns

    @property
    def complete_raw(self) -> list[ArchivedMessage]:
        """The raw messages of turns that have their answer."""
        return [entry for entry in self.raw if entry.turn <= self.complete_turns]


def uncovered_ranges(records: Sequence[Record], begin: int) -> list[tuple[int, int | None]]:
    """Returns the ranges of archive positions that no record covers, in order; the last one has no end.

    Args:
        records: The active records, by position.
        begin: The position up to which a reset left everything behind, 0 for none.
    """
    ranges: list[tuple[int, int | None]] = []
    first = begin + 1
    for record in records:
        if first < record.from_position:
            ranges.append((first, record.from_position - 1))
        first = max(first, record.to_position + 1)
    return [*ranges, (first, None)]
