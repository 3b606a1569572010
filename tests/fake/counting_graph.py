"""Small graphs for tests of checkpointers."""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from graph.node.state import ChatState


class Counter(TypedDict):
    count: int


def thread(name: str = "s1") -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


def build(checkpointer: BaseCheckpointSaver[Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    """A graph that adds one to its count."""
    graph = StateGraph(Counter)
    graph.add_node("count", lambda state: {"count": state["count"] + 1})
    graph.add_edge(START, "count")
    graph.add_edge("count", END)
    return graph.compile(checkpointer=checkpointer)


def build_chat(checkpointer: BaseCheckpointSaver[Any], answer: str) -> CompiledStateGraph[Any, Any, Any, Any]:
    """A graph that answers each turn with the same words."""
    graph = StateGraph(ChatState)
    graph.add_node("answer", lambda state: {"messages": [AIMessage(answer, id=f"a{state['turn_count']}")]})
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=checkpointer)
