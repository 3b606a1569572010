"""The embedded offline model: a LangChain chat model that streams what `offline.reply` composes."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from graph.offline.reply import CLOCK_TOOL, Reply, compose

OFFLINE_NAME: Final = "offline-mini"

_PIECE: Final = re.compile(r"\s*\S+|\s+$")


class OfflineChat(BaseChatModel):
    """A deterministic chat model without a network; it reports no usage.

    Attributes:
        pause_seconds: Wait before each word of a stream, so that it reads like one.
    """

    pause_seconds: float = 0.02

    @property
    def _llm_type(self) -> str:
        return OFFLINE_NAME

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,  # noqa: ANN401  # the base class's signature
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Returns the model with these tools; it only ever calls `get_current_time`, and none if told `none`."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002  # the base class's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002  # the base class's signature
        **kwargs: Any,  # noqa: ANN401  # the base class's signature
    ) -> ChatResult:
        reply = compose(messages, _names(kwargs))
        calls = []
        if reply.clock_arguments is not None:
            calls = [tool_call(name=CLOCK_TOOL, args=dict(reply.clock_arguments), id=_call_id(messages))]
        message = AIMessage(content=reply.text, tool_calls=calls, response_metadata=_metadata(reply))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002  # the base class's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002  # the base class's caller tells it
        **kwargs: Any,  # noqa: ANN401  # the base class's signature
    ) -> Iterator[ChatGenerationChunk]:
        reply = compose(messages, _names(kwargs))
        for piece in _PIECE.findall(reply.text):
            time.sleep(self.pause_seconds)
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        if reply.clock_arguments is not None:
            arguments = json.dumps(dict(reply.clock_arguments), ensure_ascii=False)
            call = tool_call_chunk(name=CLOCK_TOOL, args=arguments, id=_call_id(messages), index=0)
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata=_metadata(reply)))


def _names(kwargs: dict[str, Any]) -> frozenset[str]:
    """Returns the names of the tools that may be called."""
    if kwargs.get("tool_choice") == "none":
        return frozenset()
    return frozenset(tool["function"]["name"] for tool in kwargs.get("tools", ()))


def _metadata(reply: Reply) -> dict[str, str]:
    return {"model_name": OFFLINE_NAME, "finish_reason": "stop" if reply.clock_arguments is None else "tool_calls"}


def _call_id(messages: Sequence[BaseMessage]) -> str:
    """Returns an id that differs from call to call of a session and is the same whenever the call is made anew."""
    seed = "\x00".join(f"{message.id}{message.text}" for message in messages)
    return f"call-{hashlib.sha256(seed.encode('utf-8', 'replace')).hexdigest()[:24]}"
