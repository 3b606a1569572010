"""Seed 002's strategy: every three turns become one summary; knows nothing of the other strategies."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AnyMessage

from graph.core.assembly import ModelInput, SystemPart, assemble
from graph.core.record import HistoryEntry
from graph.core.schedule import Block, due_blocks


class IntervalStrategy:
    """Turns 3k+1 to 3k+3 are folded together; all summaries are sent, then the raw turns."""

    name = "interval"

    def due_blocks(self, complete_turns: int, covered_turn: int) -> tuple[Block, ...]:
        """Returns the complete blocks that no record covers, oldest first."""
        return due_blocks(complete_turns, covered_turn)

    def assemble(
        self,
        system: SystemPart,
        history: Sequence[HistoryEntry],
        messages: Sequence[AnyMessage],
        *,
        tool_schema: str,
        note: str,
    ) -> ModelInput:
        """Builds `[all summaries] + [raw turns] + [open turn]`."""
        return assemble(system, history, messages, tool_schema=tool_schema, note=note)
