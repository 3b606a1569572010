"""The node that brings due folds into force before the model is called; knows nothing of how a summary is made."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import RemoveMessage
from langgraph.runtime import Runtime

from graph.core.record import Record, to_entry
from graph.event import Folded, FoldWaiting
from graph.node.context import Node, NodeDeps, TurnContext
from graph.state import ChatState


def make_summary_node(deps: NodeDeps) -> Node:
    """Returns `summary_node`: adopts ready folds, waits for at most one, and lets folded turns leave the state."""

    def summary_node(state: ChatState, *, runtime: Runtime[TurnContext]) -> dict[str, Any]:
        session_id, turn = state["session_id"], runtime.context
        records = deps.stores.records
        due = deps.summariser.due(session_id, complete_turns=turn.turn - 1, strategy=turn.strategy)
        # Small talk takes what is ready and waits for nothing, unless a second block is overdue.
        waits_left = 1 if not state["is_casual"] or len(due) > 1 else 0
        for block in due:
            plan = deps.summariser.plan(
                session_id, block, owner=turn.owner, rate=state["compression_rate"], model=turn.model
            )
            record = deps.summariser.prepared(plan)
            if record is None and waits_left:
                waits_left -= 1
                runtime.stream_writer(FoldWaiting(block.turns))
                record = deps.summariser.wait(plan, deps.settings.fold_wait_seconds, turn.stop)
            if record is None:
                break  # coverage grows from the oldest turn on, without a gap
            records.adopt(turn.hold, record.id)
            runtime.stream_writer(_folded(record))
        return _in_force(deps, state)

    return summary_node


def _folded(record: Record) -> Folded:
    return Folded(record.id, record.turns, record.original_chars, record.summary_chars)


def _in_force(deps: NodeDeps, state: ChatState) -> dict[str, Any]:
    """Reads the records in force and removes from state what they cover (only ids that are there)."""
    session_id = state["session_id"]
    in_force = deps.stores.records.in_force(session_id)
    covered_to = in_force[-1].to_position if in_force else 0
    raw_ids = set(deps.stores.archive.live_ids(session_id, after_position=covered_to))
    return {
        "summary_history": [to_entry(record) for record in in_force],
        "messages": [RemoveMessage(str(m.id)) for m in state["messages"] if str(m.id) not in raw_ids],
    }
