"""The node that adopts due folds before the model is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import RemoveMessage
from langgraph.runtime import Runtime

from graph.core.snapshot import SessionSnapshot
from graph.fold.spec import FoldSpec
from graph.node.state import ChatState, NodeDeps, TurnContext, folded_event, snapshot_of
from graph.value.event import FoldWaiting
from graph.value.record import Record, to_entry


class SummaryNode:
    """Adopts ready folds, waits for at most one, and removes folded turns from the state."""

    def __init__(self, deps: NodeDeps) -> None:
        self._deps = deps

    def __call__(self, state: ChatState, *, runtime: Runtime[TurnContext]) -> dict[str, Any]:
        turn, deps = runtime.context, self._deps
        if turn.is_resumed:
            return {}  # the beginning of a turn's input stays the same, or the cached prefix would be lost
        snapshot = snapshot_of(deps, turn, state, turn.state).within(deps.models.input_tokens(turn.row.model))
        specs = turn.strategy.due_folds(snapshot)
        waited_for = _waited_for(specs, is_casual=state["is_casual"])
        adopted = False
        for spec in specs:
            record = self._take(turn, spec, may_wait=spec is waited_for)
            if record is not None and deps.stores.records.adopt(turn.lease, record.id):
                turn.emit(folded_event(record))
                adopted = True
            elif spec.is_waited:
                break  # coverage grows from the oldest turn without a gap
        if adopted:
            snapshot = snapshot_of(deps, turn, state)
        return state_update(snapshot, state)

    def _take(self, turn: TurnContext, spec: FoldSpec, *, may_wait: bool) -> Record | None:
        """Returns the finished record of a fold, waiting for it if the turn may."""
        worker = self._deps.fold_worker
        plan = worker.plan(turn.lease.session_id, spec, owner=turn.owner, model=turn.row.model)
        record = worker.ready(plan)
        seconds = turn.fold_wait.remaining_seconds(self._deps.settings.fold_wait_seconds)
        if record is None and may_wait and seconds and worker.should_wait(plan):
            turn.emit(FoldWaiting(spec.turns))
            with turn.fold_wait.spend():
                record = worker.wait(plan, seconds, turn.stop)
        return record


def _waited_for(specs: Sequence[FoldSpec], *, is_casual: bool) -> FoldSpec | None:
    """Returns the oldest fold that the turn may wait for. Small talk waits only if a second block is overdue."""
    waited = [spec for spec in specs if spec.is_waited and not spec.set_aside]
    if not waited or (is_casual and len(waited) == 1):
        return None
    return waited[0]


def state_update(snapshot: SessionSnapshot, state: ChatState) -> dict[str, Any]:
    """Returns the active records if they changed, and the removal of messages that are no longer raw."""
    raw_ids = {str(entry.message.id) for entry in snapshot.raw}
    update: dict[str, Any] = {
        "messages": [RemoveMessage(str(m.id)) for m in state["messages"] if str(m.id) not in raw_ids]
    }
    history = [to_entry(record) for record in snapshot.active]
    if history != state.get("summary_history"):
        update["summary_history"] = history
    return update
