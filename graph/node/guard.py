"""Keeps a model input below the guard's share of the window, with any strategy."""

from __future__ import annotations

import logging
import math
from typing import Any

from langchain_core.messages import AnyMessage

from graph.core.fold_spec import FoldSpec
from graph.core.model_input import SystemPart
from graph.core.snapshot import SessionSnapshot
from graph.core.turn import extract_current_turn
from graph.event import FoldWaiting
from graph.node.context import NodeDeps, TurnContext, folded_event, snapshot_of
from graph.node.summary import state_update
from graph.state import ChatState
from graph.strategy.fit import Fit, Fitting, Folded

_LOG = logging.getLogger(__name__)


class Guard:
    """Fits the input of one call below a limit.

    Args:
        system: The part of the input that nobody said.

    Attributes:
        update: What the folds made so far change in the state.
    """

    def __init__(self, deps: NodeDeps, turn: TurnContext, state: ChatState, system: SystemPart) -> None:
        self.update: dict[str, Any] = {}
        self._deps = deps
        self._turn = turn
        self._state = state
        self._system = system

    def begin(self) -> Fit:
        """Builds the input as the strategy wants it, whatever its size."""
        history, messages = self._state["summary_history"], self._working_messages()
        return Fit(self._system, history, messages, self._turn.strategy.assemble(self._system, history, messages))

    def fit(self, fit: Fit, *, limit_tokens: int) -> Fit:
        """Makes an input smaller if it reaches the limit; `strategy.fit.Fitting` says how."""
        # The correction is at most 2, so an input below half of the limit needs no database query.
        if fit.model_input.sent_tokens * 2 < limit_tokens:
            return fit
        correction = self._deps.stores.calls.correction(self._state["session_id"])
        allowed_tokens = math.ceil(limit_tokens / correction) - 1
        if fit.model_input.sent_tokens <= allowed_tokens:
            return fit
        merged_tokens = self._deps.settings.merged_tokens
        strategy = self._turn.strategy
        fitting = Fitting(strategy.assemble, self._system, allowed_tokens=allowed_tokens, merged_tokens=merged_tokens)
        if not strategy.sends_records:
            return fitting.by_leaving_out(fit)

        def fold(spec: FoldSpec) -> Folded | None:
            snapshot = self._fold(spec)
            if snapshot is None:
                return None
            self.update = state_update(snapshot, self._state)
            raw_ids = {str(entry.message.id) for entry in snapshot.raw}
            history = self.update.get("summary_history", self._state["summary_history"])
            return Folded(snapshot, history, [m for m in fit.messages if str(m.id) in raw_ids])

        snapshot = snapshot_of(self._deps, self._turn, self._state)
        return fitting.by_folding(fit, snapshot, fold)

    def _working_messages(self) -> list[AnyMessage]:
        """Returns the messages to build from, oldest first.

        A strategy that sends whole turns reads them from the archive, because folded turns have left the state.
        """
        turn, messages = self._turn, list(self._state["messages"])
        if turn.strategy.whole_turns is None:
            return messages
        session_id, first = self._state["session_id"], max(1, turn.row.number - turn.strategy.whole_turns)
        begin = self._deps.stores.sessions.context_begin(session_id)
        said = self._deps.stores.archive.live_turns(session_id, first, turn.row.number - 1)
        return [*(entry.message for entry in said if entry.position > begin), *extract_current_turn(messages)]

    def _fold(self, spec: FoldSpec) -> SessionSnapshot | None:
        """Makes and adopts a fold and returns the session's new snapshot; None if it couldn't be made."""
        turn, session_id, worker = self._turn, self._state["session_id"], self._deps.fold_worker
        limit_seconds = self._deps.settings.fold_wait_seconds
        seconds = turn.fold_wait.remaining_seconds(limit_seconds) if worker.may_wait(session_id) else 0.0
        if seconds:
            turn.tell(FoldWaiting(spec.turns))
        with turn.fold_wait.spend():
            record = worker.make_now(
                session_id, spec, owner=turn.owner, model=turn.row.model, stop=turn.stop, wait_seconds=seconds
            )
        if record is None or not self._deps.stores.records.adopt(turn.lease, record.id):
            return None
        turn.tell(folded_event(record))
        _LOG.info("guard folded session=%s turns %d-%d", session_id, record.turns[0], record.turns[-1])
        return snapshot_of(self._deps, turn, self._state)
