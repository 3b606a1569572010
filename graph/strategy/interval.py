"""Seed 002's strategy: every three turns become one summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graph.core.fold_spec import FoldSpec, fold_of
from graph.core.model_input import History, Messages, ModelInput, SystemPart, assemble
from graph.core.schedule import due_blocks
from graph.core.snapshot import SessionSnapshot
from graph.strategy.base import Limits
from graph.strategy.merge import due_merge, merge_for_room, raw_stretches


class IntervalStrategy:
    """Folds turns 3k+1 to 3k+3 together and merges old summaries; sends all summaries, then the raw turns."""

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

    def assemble(self, system: SystemPart, history: History, messages: Messages) -> ModelInput:
        """Builds `[all summaries] + [raw turns] + [open turn]`."""
        return assemble(system, history, messages)


def _blocks(snapshot: SessionSnapshot) -> Iterator[FoldSpec]:
    """Yields the folds of the due blocks; raw turns in front of an active record are folded up to that record."""
    for stretch in raw_stretches(snapshot):
        for block in due_blocks(snapshot.complete_turns, stretch[0].turn - 1):
            source = [entry for entry in stretch if block.first_turn <= entry.turn <= block.last_turn]
            if source:
                yield fold_of((), source, kind="interval", rate=snapshot.rate)


def _excess_tokens(snapshot: SessionSnapshot, blocks: Sequence[FoldSpec], limits: Limits) -> int:
    """Estimates by how much the next input is too large once the due blocks are folded."""
    if limits.room_tokens is None:
        return 0
    folded_tokens = sum(block.source_tokens for block in blocks)
    next_tokens = snapshot.context_tokens - folded_tokens + int(folded_tokens * snapshot.rate)
    return next_tokens - int(limits.room_tokens / snapshot.correction)
