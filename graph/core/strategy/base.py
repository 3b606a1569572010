"""What a strategy is: when to fold and what to send; knows nothing of the strategies there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from langchain_core.messages import AnyMessage

from graph.core.assembly import ModelInput, SystemPart
from graph.core.record import HistoryEntry
from graph.core.schedule import Block


class Strategy(Protocol):
    """A way to keep a conversation affordable. Pure: it only reads what it's given."""

    @property
    def name(self) -> str:
        """The name by which sessions choose it."""

    def due_blocks(self, complete_turns: int, covered_turn: int) -> tuple[Block, ...]:
        """Returns the blocks to fold now, oldest first."""

    def assemble(
        self,
        system: SystemPart,
        history: Sequence[HistoryEntry],
        messages: Sequence[AnyMessage],
        *,
        tool_schema: str,
        note: str,
    ) -> ModelInput:
        """Builds the input of one model call."""
