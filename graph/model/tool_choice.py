"""Makes a call that must not use tools, with the tools still in the request, and knows the models that take none."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from graph.core.model_input import ModelInput
from graph.model.caller import ChatRunnable
from graph.model.chunk import Answer
from graph.value.error import RejectedError, ToolChoiceError, ToolRoundsError, ToolsRefusedError

_LOG = logging.getLogger(__name__)
Call = Callable[[ChatRunnable, ModelInput], Answer]
Tools = Sequence[Mapping[str, Any]]

NO_TOOL: Final = "none"


class ToolChoice:
    """Calls models with `tool_choice="none"`, and remembers those whose endpoint refuses it.

    The tools stay in the request because they are part of the cached prefix, and because some endpoints refuse earlier
    tool calls without them.
    """

    def __init__(self) -> None:
        self._refused_by: set[str] = set()
        self._without_tools: set[str] = set()

    def is_without_tools(self, name: str) -> bool:
        """Returns True if the model's endpoint has refused tools since the server started."""
        return name in self._without_tools

    def ask_without_tools(self, name: str, call: Callable[[], Answer]) -> Answer:
        """Makes again, without tools, a call whose tools were refused, and remembers that it is answered so.

        Raises:
            ModelError: The call failed; then the tools may not have been the reason.
        """
        try:
            answer = call()
        except ToolsRefusedError as error:
            raise RejectedError(error.detail) from None
        if name not in self._without_tools:
            _LOG.warning("model %s takes no tools; it is asked without them from now on", name)
            self._without_tools.add(name)
        return answer

    def is_refused_by(self, name: str) -> bool:
        """Returns True if the model's endpoint has refused `tool_choice` since the server started."""
        return name in self._refused_by

    def answer_without_calls(
        self, name: str, model: BaseChatModel, tools: Tools, model_input: ModelInput, call: Call
    ) -> Answer:
        """Returns an answer that calls no tool.

        `model` has no tools bound; `tools` are the schemas that other calls offer, counted in `model_input`. If the
        model calls a tool nevertheless and returns no text, its endpoint ignores `tool_choice`: the call is repeated
        once without the tools.

        Raises:
            ToolRoundsError: The model only calls tools.
            ToolsRefusedError: The model takes no tools.
            ModelError: The call failed.
        """
        answer = self._ask(name, model, tools, lambda asked: call(asked, model_input))
        if tools and calls_tools(answer.message) and not answer.message.text.strip():
            items = tuple(item for item in model_input.items if item.kind != "tools")
            answer = call(model, replace(model_input, items=items))
        return _without_calls(answer)

    def ask(self, name: str, model: BaseChatModel, tools: Tools, call: Callable[[ChatRunnable], Answer]) -> Answer:
        """Returns the model's answer unfiltered: an endpoint that ignores `tool_choice` may include tool calls.

        A model that takes no tools is asked without them.

        Raises:
            ModelError: The call failed.
        """
        if self.is_without_tools(name):
            return call(model)
        try:
            return self._ask(name, model, tools, call)
        except ToolsRefusedError:
            return self.ask_without_tools(name, lambda: call(model))

    def _ask(self, name: str, model: BaseChatModel, tools: Tools, call: Callable[[ChatRunnable], Answer]) -> Answer:
        if not tools:
            return call(model)
        offered = [dict(tool) for tool in tools]
        if self.is_refused_by(name):
            return call(model.bind_tools(offered))
        try:
            return call(model.bind_tools(offered, tool_choice=NO_TOOL))
        except ToolChoiceError:
            answer = call(model.bind_tools(offered))
            self._refused_by.add(name)
            return answer


def calls_tools(message: AIMessage) -> bool:
    return bool(message.tool_calls or message.invalid_tool_calls)


def _without_calls(answer: Answer) -> Answer:
    """Drops tool calls from an answer.

    Raises:
        ToolRoundsError: The answer has nothing else.
    """
    if not calls_tools(answer.message):
        return answer
    if not answer.message.text.strip():
        raise ToolRoundsError
    message = answer.message.model_copy(update={"tool_calls": [], "invalid_tool_calls": []})
    return replace(answer, message=message)
