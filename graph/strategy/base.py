"""What a strategy is: when to fold and what to send; knows nothing of the strategies there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from langchain_core.messages import AnyMessage

from graph.core.fold_spec import FoldSpec
from graph.core.model_input import ModelInput, SystemPart
from graph.core.snapshot import SessionSnapshot
from graph.record import HistoryEntry


def first_turn(strategy: Strategy, open_turn: int) -> int:
    """Returns the first turn that a strategy can ever need beside its records, when this turn is open; 1 for all."""
    return 1 if strategy.whole_turns is None else max(1, open_turn - strategy.whole_turns)


class Strategy(Protocol):
    """A way to keep a conversation affordable. Pure: it only reads what it's given."""

    @property
    def name(self) -> str:
        """The name by which sessions choose it."""

    @property
    def sends_records(self) -> bool:
        """Whether its input holds the records in force; else the guard can only leave turns out."""

    @property
    def whole_turns(self) -> int | None:
        """How many turns before the open one it gets whole, folded or not; None for just those that aren't folded."""

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:
        """Returns the folds that are due, in the order in which they must come into force.

        Asked when an answer is out (then they're prepared) and when the next turn begins (then they're adopted), so
        that it must not depend on the open turn.
        """

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
