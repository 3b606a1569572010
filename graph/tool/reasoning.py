"""The tool that thinks about given material in a call of its own."""

from __future__ import annotations

import time
from typing import Annotated, Final

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from pydantic import BaseModel, Field

from graph.core.turn import text_of
from graph.error import TurnfoldError
from graph.model.chunk import Answer
from graph.tool.tool_context import SideCall, ToolContext
from prompt.tool import description
from prompt.tool import reasoning as prompt

_ATTEMPTS: Final = 2
# The call ends before the tool is given up: its row is kept while the turn is still in progress.
_DEADLINE_SHARE: Final = 0.9


class _Arguments(BaseModel):
    material: str = Field(description=description.REASONING_MATERIAL)
    question: str = Field(description=description.REASONING_QUESTION)
    tool_call_id: Annotated[str, InjectedToolCallId]  # not the model's to give: no part of the schema that it's sent


def build_reasoning(context: ToolContext) -> BaseTool:
    """Returns `reasoning`: a call of the same model over the material, whose text is the result and nothing else's."""

    def reasoning(material: str, question: str, tool_call_id: str) -> str:
        given = HumanMessage(prompt.get_prompt(material, question))
        return text_of(_ask(context, given, tool_call_id).message)

    return StructuredTool(
        name="reasoning",
        description=description.REASONING,
        args_schema=_Arguments,
        func=reasoning,
    )


def _ask(context: ToolContext, given: HumanMessage, call_id: str) -> Answer:
    """Makes the call and tells what it cost, also when it fails."""
    began, messages = time.monotonic(), (SystemMessage(prompt.SYSTEM), given)
    try:
        answer = context.caller.call(
            context.model,
            messages,
            stop=context.stop,
            deadline_seconds=context.deadline_seconds * _DEADLINE_SHARE,
            attempts=_ATTEMPTS,
        )
    except TurnfoldError as error:
        context.keep(SideCall(call_id, messages, None, time.monotonic() - began, error.code))
        raise
    context.keep(SideCall(call_id, messages, answer.usage, time.monotonic() - began))
    return answer
