"""The tool that reasons about given material in a model call of its own."""

from __future__ import annotations

import time
from functools import cache
from typing import Annotated, Final

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from pydantic import BaseModel, Field, create_model

from graph.core.turn import text_of
from graph.error import TurnfoldError
from graph.tool.tool_context import SideCall, ToolContext
from prompt.system.framing import Language
from prompt.tool import reasoning as prompt
from prompt.tool.description import DESCRIPTIONS

_ATTEMPTS: Final = 2
# The call ends before the tool's own deadline, so that its row is stored while the turn is in progress.
_DEADLINE_SHARE: Final = 0.9


def build_reasoning(context: ToolContext) -> BaseTool:
    """Returns `reasoning`, which asks the turn's own model about the material; its answer is the tool's result."""

    def reasoning(material: str, question: str, tool_call_id: str) -> str:
        messages = SystemMessage(prompt.SYSTEM), HumanMessage(prompt.get_prompt(material, question))
        began = time.monotonic()
        try:
            answer = context.caller.call(
                context.model,
                messages,
                stop=context.stop,
                deadline_seconds=context.deadline_seconds * _DEADLINE_SHARE,
                attempts=_ATTEMPTS,
            )
        except TurnfoldError as error:
            context.keep(SideCall(tool_call_id, messages, None, time.monotonic() - began, error.code))
            raise
        context.keep(SideCall(tool_call_id, messages, answer.usage, time.monotonic() - began))
        return text_of(answer.message)

    return StructuredTool(
        name="reasoning",
        description=DESCRIPTIONS[context.language].reasoning,
        args_schema=_arguments(context.language),
        func=reasoning,
    )


@cache  # see `graph.tool.recall`
def _arguments(language: Language) -> type[BaseModel]:
    words = DESCRIPTIONS[language]
    return create_model(
        "Arguments",
        material=(str, Field(description=words.reasoning_material)),
        question=(str, Field(description=words.reasoning_question)),
        # Injected: not in the schema that the model is sent.
        tool_call_id=(Annotated[str, InjectedToolCallId], ...),
    )
