"""Builds the graph from its nodes."""

from __future__ import annotations

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from graph.core.turn import extract_current_turn, unanswered_calls
from graph.node.llm import LlmNode
from graph.node.state import ChatState, NodeDeps, TurnContext
from graph.node.summary import SummaryNode
from graph.node.tool import ToolNode

ChatGraph = CompiledStateGraph[ChatState, TurnContext, ChatState, ChatState]


def build_graph(deps: NodeDeps) -> ChatGraph:
    """Builds `START → summary_node → llm_node ⇄ tool_node → END`, to be run with a copy that has a checkpointer.

    It ends behind `llm_node` with an answer, behind `tool_node` with calls that a program must answer.
    """
    graph = StateGraph(ChatState, context_schema=TurnContext)
    graph.add_node("summary_node", SummaryNode(deps))
    graph.add_node("llm_node", LlmNode(deps))
    graph.add_node("tool_node", ToolNode(deps))
    graph.add_edge(START, "summary_node")
    graph.add_edge("summary_node", "llm_node")
    graph.add_conditional_edges("llm_node", _after_llm, ["tool_node", END])
    graph.add_conditional_edges("tool_node", _after_tools, ["llm_node", END])
    return graph.compile()


def _after_llm(state: ChatState) -> str:
    last = state["messages"][-1] if state["messages"] else None
    return "tool_node" if isinstance(last, AIMessage) and last.tool_calls else END


def _after_tools(state: ChatState) -> str:
    return END if unanswered_calls(extract_current_turn(state["messages"])) else "llm_node"
