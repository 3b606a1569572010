"""The strategy that sends the last N turns and folds nothing."""

from __future__ import annotations

from graph.core.model_input import History, Messages, ModelInput, SystemPart, assemble
from graph.core.snapshot import SessionSnapshot
from graph.core.turn import extract_current_turn, extract_last_n_turns
from graph.fold.spec import FoldSpec
from graph.strategy.base import Limits
from graph.value.view import NextFold


class WindowStrategy:
    """Sends the last N complete turns and the open one; with N = 0 the open one alone (seed 003's "disabled")."""

    name = "window"
    sends_records = False
    uses_rate = False

    def __init__(self, limits: Limits) -> None:
        self.whole_turns = limits.window_turns

    def next_fold(self, _snapshot: SessionSnapshot, /) -> NextFold:
        return NextFold(sent_turns=self.whole_turns)

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:  # noqa: ARG002 - the protocol's; nothing is due
        return ()

    def assemble(self, system: SystemPart, history: History, messages: Messages) -> ModelInput:  # noqa: ARG002 - the protocol's; records of other strategies aren't sent
        kept = [*extract_last_n_turns(messages, self.whole_turns), *extract_current_turn(messages)]
        return assemble(system, (), kept)
