"""The list of tools that a model may call; a new tool is a file in this package and a line here."""

from __future__ import annotations

from typing import Final

from langchain_core.tools import BaseTool

from graph.core.turn import NOTE_TOOLS, RECALL_TOOL
from graph.tool.current_time import build_current_time
from graph.tool.project_note import build_project_notes
from graph.tool.read_rule import build_read_rule
from graph.tool.reasoning import build_reasoning
from graph.tool.recall import build_recall
from graph.tool.tool_context import ToolContext
from graph.tool.web_search import build_web_search

__all__ = ["TOOL_NAMES", "ToolContext", "build_tools"]

# All that there are; which of them a turn has depends on its strategy and its project.
TOOL_NAMES: Final = NOTE_TOOLS | {"get_current_time", "web_search", "reasoning", RECALL_TOOL, "read_rule"}


def build_tools(context: ToolContext) -> list[BaseTool]:
    """Returns the tools of one run; order and schemas never change in a session: a provider caches them."""
    tools = [build_current_time(context), build_web_search(context), build_reasoning(context)]
    if context.past is not None:
        tools.append(build_recall(context.past, context.language))
    if context.project is not None:
        tools += build_project_notes(context.project.memory, context.user_words, context.language)
        tools.append(build_read_rule(context.project.find_rule, context.language))
    return tools
