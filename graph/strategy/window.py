"""The last N turns and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AnyMessage

from graph.core.fold_spec import FoldSpec
from graph.core.model_input import ModelInput, SystemPart, assemble
from graph.core.snapshot import SessionSnapshot
from graph.core.turn import extract_current_turn, extract_last_n_turns
from graph.record import HistoryEntry
from graph.strategy.base import Limits


class WindowStrategy:
    """Folds nothing; with N = 0 the model reads the current message alone (seed 003's "disabled")."""

    name = "window"
    sends_records = False

    def __init__(self, limits: Limits) -> None:
        self.whole_turns = limits.window_turns

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:  # noqa: ARG002 - the protocol's; nothing is due
        """Returns no folds."""
        return ()

    def assemble(
        self,
        system: SystemPart,
        history: Sequence[HistoryEntry],  # noqa: ARG002 - the protocol's; records of other strategies aren't sent
        messages: Sequence[AnyMessage],
    ) -> ModelInput:
        """Builds `[last N complete turns] + [open turn]`."""
        kept = [*extract_last_n_turns(messages, self.whole_turns), *extract_current_turn(messages)]
        return assemble(system, (), kept)
