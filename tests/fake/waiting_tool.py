"""The product's tools and one that takes as long as the turn."""

from __future__ import annotations

from langchain_core.tools import BaseTool, StructuredTool

from graph.tool.registry import ToolContext, build_tools


def tools_and_wait(context: ToolContext) -> list[BaseTool]:
    def wait() -> str:
        context.stop.wait(60)
        return "끝"

    return [*build_tools(context), StructuredTool.from_function(wait, name="wait", description="Waits.")]
