"""The product's tools and one that takes as long as the turn."""

from __future__ import annotations

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel

from graph.tool.registry import ToolContext, build_tools


class _NoArguments(BaseModel):
    """Made once, as those of the product's tools: read from the function, it would be made anew for each turn."""


def tools_and_wait(context: ToolContext) -> list[BaseTool]:
    def wait() -> str:
        context.stop.wait(60)
        return "끝"

    return [
        *build_tools(context),
        StructuredTool(name="wait", description="Waits.", args_schema=_NoArguments, func=wait),
    ]
