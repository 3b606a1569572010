"""The node that adopts due folds before the model is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import RemoveMessage
from langgraph.runtime import Runtime

from graph.core.fold_spec import FoldSpec
from graph.core.snapshot import SessionSnapshot
from graph.event import FoldWaiting
from graph.node.context import NodeDeps, TurnContext, folded_event
from graph.record import Record, to_entry
from graph.state import ChatState
from graph.strategy.base import first_turn


class SummaryNode:
    """Adopts ready folds, waits for at most one, and lets folded turns leave the state."""

    def __init__(self, deps: NodeDeps) -> None:
        self._deps = deps

    def __call__(self, state: ChatState, *, runtime: Runtime[TurnContext]) -> dict[str, Any]:
        """Returns what changes in the state before the model is called."""
        turn, deps = runtime.context, self._deps
        snapshot = replace(self._snapshot(turn, state), input_tokens=deps.models.input_tokens(turn.model))
        specs = turn.strategy.due_folds(snapshot)
        adopted = False
        for spec, may_wait in zip(specs, _waits(specs, is_casual=state["is_casual"]), strict=True):
            record = self._take(runtime, spec, may_wait=may_wait)
            if record is not None and deps.stores.records.adopt(turn.lease, record.id):
                runtime.stream_writer(folded_event(record))
                adopted = True
            elif spec.is_waited:
                break  # coverage grows from the oldest turn on, without a gap
        if adopted:
            snapshot = self._snapshot(turn, state)
        return state_update(snapshot, state)

    def _snapshot(self, turn: TurnContext, state: ChatState) -> SessionSnapshot:
        return self._deps.fold_worker.snapshot(
            state["session_id"],
            complete_turns=turn.turn - 1,
            rate=state["compression_rate"],
            from_turn=first_turn(turn.strategy, turn.turn),
        )

    def _take(self, runtime: Runtime[TurnContext], spec: FoldSpec, *, may_wait: bool) -> Record | None:
        """Returns the finished record of a fold if it's there, or comes while the turn may wait."""
        turn, worker = runtime.context, self._deps.fold_worker
        plan = worker.plan(turn.lease.session_id, spec, owner=turn.owner, model=turn.model)
        record = worker.ready(plan)
        seconds = turn.fold_wait.remaining_seconds(self._deps.settings.fold_wait_seconds)
        if record is None and may_wait and seconds and worker.should_wait(plan):
            runtime.stream_writer(FoldWaiting(spec.turns))
            with turn.fold_wait.spend():
                record = worker.wait(plan, seconds, turn.stop)
        return record


def _waits(specs: Sequence[FoldSpec], *, is_casual: bool) -> list[bool]:
    """Returns for each fold whether the turn may wait for it: one at most.

    Small talk takes what is ready and waits for nothing, unless a second block is overdue.
    """
    waited = [spec.is_waited for spec in specs]
    if not any(waited) or (is_casual and sum(waited) < 2):  # noqa: PLR2004 - two blocks, as the rule says it
        return [False] * len(specs)
    first = waited.index(True)
    return [index == first for index in range(len(specs))]


def state_update(snapshot: SessionSnapshot, state: ChatState) -> dict[str, Any]:
    """Returns the records in force if they changed, and the removal of what isn't raw any more.

    That is what they cover, and what an older attempt of the open turn said; only ids that are in state.
    """
    raw_ids = {str(entry.message.id) for entry in snapshot.raw}
    update: dict[str, Any] = {
        "messages": [RemoveMessage(str(m.id)) for m in state["messages"] if str(m.id) not in raw_ids]
    }
    history = [to_entry(record) for record in snapshot.active]
    if history != state.get("summary_history"):
        update["summary_history"] = history
    return update
