"""Builds the graph from its nodes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from graph.model.factory import ChatModels
from graph.node.context import NodeDeps, TurnContext
from graph.node.llm import LlmNode
from graph.node.summary import SummaryNode
from graph.node.tool import ToolNode
from graph.settings import Settings
from graph.state import ChatState
from graph.store.stores import Stores
from graph.tool.registry import ToolContext

if TYPE_CHECKING:
    from graph.worker.fold_worker import FoldWorker

ChatGraph = CompiledStateGraph[ChatState, TurnContext, ChatState, ChatState]


def build_graph(
    *,
    models: ChatModels,
    fold_worker: FoldWorker,
    tools: Callable[[ToolContext], list[BaseTool]],
    stores: Stores,
    clock: Callable[[], datetime],
    settings: Settings,
) -> ChatGraph:
    """Builds `START → summary_node → llm_node ⇄ tool_node → END`, checkpointed by the stores.

    Args:
        models: The chat models.
        fold_worker: Makes the summaries.
        tools: Makes the tools of one turn.
        stores: All tables, and the checkpointer.
        clock: The time in UTC.
        settings: Limits: rounds, deadlines, sizes.
    """
    deps = NodeDeps(models, fold_worker, tools, stores, clock, settings)
    graph = StateGraph(ChatState, context_schema=TurnContext)
    graph.add_node("summary_node", SummaryNode(deps))
    graph.add_node("llm_node", LlmNode(deps))
    graph.add_node("tool_node", ToolNode(deps))
    graph.add_edge(START, "summary_node")
    graph.add_edge("summary_node", "llm_node")
    graph.add_conditional_edges("llm_node", _after_llm, ["tool_node", END])
    graph.add_edge("tool_node", "llm_node")
    return graph.compile(checkpointer=stores.checkpointer)


def _after_llm(state: ChatState) -> str:
    """Routes to the tools if the last answer calls any, else ends the turn; a rebuilt state may have no messages."""
    last = state["messages"][-1] if state["messages"] else None
    return "tool_node" if isinstance(last, AIMessage) and last.tool_calls else END
