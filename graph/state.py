"""The shape of what LangGraph keeps between steps."""

from __future__ import annotations

from typing import Annotated, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages

from graph.record import HistoryEntry


class ChatState(TypedDict):
    """State of one session. Beside messages only plain JSON, as the strict serializer lets nothing else through.

    Attributes:
        messages: The working set: raw turns and the open turn. Folded turns have left it.
        session_id: Equals LangGraph's `thread_id`.
        summary_history: The records in force, oldest first, as `summary_node` read them.
        turn_count: The number of the open turn, from 1.
        compression_rate: The rate for folds made from now on, 0.1 to 0.5.
        is_casual: Whether the open turn is answered without tools and without waiting for a fold.
        tool_rounds: How often tools ran in the open turn.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    session_id: str
    summary_history: list[HistoryEntry]
    turn_count: int
    compression_rate: float
    is_casual: bool
    tool_rounds: int
