"""The tool that reads a rule of the project of which the prompt has only name and description."""

from __future__ import annotations

from collections.abc import Callable

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field, create_model

from prompt.system.framing import Language
from prompt.tool.project import DESCRIPTIONS, no_rule


def build_read_rule(find: Callable[[str], str | None], language: Language) -> BaseTool:
    """Returns `read_rule`; `find` returns the quoted text of a rule that the owner agreed to, None if there is none."""
    told = DESCRIPTIONS[language]

    def read_rule(name: str) -> str:
        text = find(name.strip())
        if text is None:
            raise ToolException(no_rule(name[:100], language))
        return text

    return StructuredTool(
        name="read_rule",
        description=told.rule,
        args_schema=create_model("Arguments", name=(str, Field(description=told.rule_name))),
        func=read_rule,
        handle_tool_error=True,
    )
