"""The node that brings due folds into force before the model is called; knows nothing of how a summary is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import RemoveMessage
from langgraph.runtime import Runtime

from graph.core.snapshot import FoldOrder, Standing
from graph.event import Folded, FoldWaiting
from graph.node.context import Node, NodeDeps, TurnContext
from graph.record import Record, to_entry
from graph.state import ChatState
from graph.strategy.base import first_turn


def make_summary_node(deps: NodeDeps) -> Node:
    """Returns `summary_node`: adopts ready folds, waits for at most one, and lets folded turns leave the state."""

    def summary_node(state: ChatState, *, runtime: Runtime[TurnContext]) -> dict[str, Any]:
        turn = runtime.context
        standing = replace(_standing(deps, turn, state), input_tokens=deps.models.input_tokens(turn.model))
        orders = turn.strategy.orders(standing)
        adopted = False
        for order, may_wait in zip(orders, _waits(orders, is_casual=state["is_casual"]), strict=True):
            record = _take(deps, turn, runtime, order, may_wait=may_wait)
            if record is not None and deps.stores.records.adopt(turn.lease, record.id):
                runtime.stream_writer(Folded(record.id, record.turns, record.original_chars, record.summary_chars))
                adopted = True
            elif order.is_waited:
                break  # coverage grows from the oldest turn on, without a gap
        if adopted:
            standing = _standing(deps, turn, state)
        return state_update(standing, state)

    return summary_node


def _standing(deps: NodeDeps, turn: TurnContext, state: ChatState) -> Standing:
    return deps.summariser.standing(
        state["session_id"],
        complete_turns=turn.turn - 1,
        rate=state["compression_rate"],
        from_turn=first_turn(turn.strategy, turn.turn),
    )


def _waits(orders: Sequence[FoldOrder], *, is_casual: bool) -> list[bool]:
    """Returns for each order whether the turn may wait for it: one at most.

    Small talk takes what is ready and waits for nothing, unless a second block is overdue.
    """
    waited = [order.is_waited for order in orders]
    if not any(waited) or (is_casual and sum(waited) < 2):  # noqa: PLR2004 - two blocks, as the rule says it
        return [False] * len(orders)
    first = waited.index(True)
    return [index == first for index in range(len(orders))]


def _take(
    deps: NodeDeps, turn: TurnContext, runtime: Runtime[TurnContext], order: FoldOrder, *, may_wait: bool
) -> Record | None:
    """Returns the finished record of an order if it's there, or comes while the turn may wait."""
    plan = deps.summariser.plan(turn.lease.session_id, order, owner=turn.owner, model=turn.model)
    record = deps.summariser.ready(plan)
    seconds = turn.fold_wait.rest_seconds(deps.settings.fold_wait_seconds)
    if record is None and may_wait and seconds and deps.summariser.should_wait(plan):
        runtime.stream_writer(FoldWaiting(order.turns))
        with turn.fold_wait.spend():
            record = deps.summariser.wait(plan, seconds, turn.stop)
    return record


def state_update(standing: Standing, state: ChatState) -> dict[str, Any]:
    """Returns the records in force if they changed, and the removal of what isn't raw any more.

    That is what they cover, and what an older attempt of the open turn said; only ids that are in state.
    """
    raw_ids = {str(entry.message.id) for entry in standing.raw}
    update: dict[str, Any] = {
        "messages": [RemoveMessage(str(m.id)) for m in state["messages"] if str(m.id) not in raw_ids]
    }
    history = [to_entry(record) for record in standing.in_force]
    if history != state.get("summary_history"):
        update["summary_history"] = history
    return update
