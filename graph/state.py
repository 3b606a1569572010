"""The graph's state, which LangGraph keeps between steps."""

from __future__ import annotations

from typing import Annotated, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages

from graph.record import HistoryEntry


class ChatState(TypedDict):
    """State of one session: messages and plain JSON, as the strict serializer refuses anything else.

    Attributes:
        messages: The working set: raw turns and the open turn. Folded turns have left it.
        session_id: Equals LangGraph's `thread_id`.
        summary_history: The active records, oldest first, as `summary_node` read them.
        turn_count: The number of the open turn, from 1.
        compression_rate: The rate for future folds, 0.1 to 0.5.
        is_casual: Whether the open turn is answered without tools and without waiting for a fold.
        tool_rounds: Number of tool rounds in the open turn.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    session_id: str
    summary_history: list[HistoryEntry]
    turn_count: int
    compression_rate: float
    is_casual: bool
    tool_rounds: int
