"""Seed 002's strategy: every three turns become one summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from langchain_core.messages import AnyMessage

from graph.core.fold_spec import FoldSpec, fold_of
from graph.core.model_input import ModelInput, SystemPart, assemble
from graph.core.schedule import due_blocks
from graph.core.snapshot import SessionSnapshot
from graph.record import HistoryEntry
from graph.strategy.base import Limits
from graph.strategy.merge import due_merge, merge_for_room, raw_stretches


class IntervalStrategy:
    """Turns 3k+1 to 3k+3 are folded together; all summaries are sent, then the raw turns. Old ones are merged."""

    name = "interval"
    sends_records = True
    whole_turns = None

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:
        """Returns the complete blocks that no record covers, oldest first, then a merge if one is due."""
        limits = self._limits.within(snapshot.input_tokens)
        blocks = list(_blocks(snapshot))
        merge = due_merge(snapshot.active, snapshot.rate, limits, snapshot.raw)
        if merge is None and (excess := _excess_tokens(snapshot, blocks, limits)) > 0:
            merge = merge_for_room(snapshot, excess, merged_tokens=limits.merged_tokens)
        return tuple(blocks) if merge is None else (*blocks, merge)

    def assemble(
        self, system: SystemPart, history: Sequence[HistoryEntry], messages: Sequence[AnyMessage]
    ) -> ModelInput:
        """Builds `[all summaries] + [raw turns] + [open turn]`."""
        return assemble(system, history, messages)


def _blocks(snapshot: SessionSnapshot) -> Iterator[FoldSpec]:
    """Yields the folds of the blocks that are due; raw turns before a record in force are folded up to it."""
    for stretch in raw_stretches(snapshot):
        for block in due_blocks(snapshot.complete_turns, stretch[0].turn - 1):
            source = [entry for entry in stretch if block.first_turn <= entry.turn <= block.last_turn]
            if source:
                yield fold_of((), source, kind="interval", rate=snapshot.rate)


def _excess_tokens(snapshot: SessionSnapshot, blocks: Sequence[FoldSpec], limits: Limits) -> int:
    """Estimates by how much the next input will be too large once the blocks that are due are folded."""
    if limits.room_tokens is None:
        return 0
    folded = sum(block.source_tokens for block in blocks)
    said = sum(entry.tokens for entry in snapshot.complete_raw) - folded + int(folded * snapshot.rate)
    records = sum(record.summary_tokens for record in snapshot.active)
    return records + said - int(limits.room_tokens / snapshot.correction)
