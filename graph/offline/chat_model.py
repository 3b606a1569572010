"""The embedded offline model: a LangChain chat model that streams the replies of `offline.reply`."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from graph.core.turn import EMBEDDED_MODEL
from graph.offline.reply import compose

_PIECE: Final = re.compile(r"\s*\S+|\s+$")


class OfflineChat(BaseChatModel):
    """A deterministic chat model without a network; it reports no usage.

    Attributes:
        pause_seconds: Wait before each word, so that the answer streams visibly.
    """

    pause_seconds: float = 0.02

    @property
    def _llm_type(self) -> str:
        return EMBEDDED_MODEL

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,  # noqa: ANN401  # the base class's signature
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Binds tools; the model calls `get_current_time` and `recall`, or none for `tool_choice="none"`."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401  # the base class's signature
    ) -> ChatResult:
        return generate_from_stream(self._stream(messages, stop, run_manager, **kwargs))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002  # the base class's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002  # the base class notifies it
        **kwargs: Any,  # noqa: ANN401  # the base class's signature
    ) -> Iterator[ChatGenerationChunk]:
        tools = () if kwargs.get("tool_choice") == "none" else kwargs.get("tools", ())
        reply = compose(messages, frozenset(tool["function"]["name"] for tool in tools))
        finish_reason = "stop"
        for piece in _PIECE.findall(reply.text):
            time.sleep(self.pause_seconds)
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        if reply.tool:
            arguments = json.dumps(dict(reply.arguments), ensure_ascii=False)
            call = tool_call_chunk(name=reply.tool, args=arguments, id=_call_id(messages), index=0)
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))
            finish_reason = "tool_calls"
        metadata = {"model_name": EMBEDDED_MODEL, "finish_reason": finish_reason}
        yield ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata=metadata))


def _call_id(messages: Sequence[BaseMessage]) -> str:
    """Returns an id that is unique within a session and the same when the same call is repeated."""
    seed = "\x00".join(f"{message.id}{message.text}" for message in messages)
    return f"call-{hashlib.sha256(seed.encode('utf-8', 'replace')).hexdigest()[:24]}"
