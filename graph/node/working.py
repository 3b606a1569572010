"""Which messages a strategy builds an input from: the working set, or the last turns whole; folds and sends nothing."""

from __future__ import annotations

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from graph.core.turn import extract_current_turn
from graph.node.context import NodeDeps, TurnContext
from graph.state import ChatState


def working_messages(deps: NodeDeps, runtime: Runtime[TurnContext], state: ChatState) -> list[AnyMessage]:
    """Returns the messages to build from, oldest first.

    Turns that another strategy folded have left the state: one that sends whole turns gets them from the archive.
    """
    turn, messages = runtime.context, list(state["messages"])
    if turn.strategy.whole_turns is None:
        return messages
    session_id, first = state["session_id"], max(1, turn.turn - turn.strategy.whole_turns)
    begin = deps.stores.sessions.context_begin(session_id)
    said = deps.stores.archive.live_turns(session_id, first, turn.turn - 1)
    return [*(entry.message for entry in said if entry.position > begin), *extract_current_turn(messages)]
