"""A model, a summariser and a tool that work by themselves and mark their phases."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import anyio
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import PrivateAttr

from graph.model.caller import ModelCaller
from graph.model.factory import ChatModels
from graph.model.summariser import ExtractiveSummariser, Summariser, SummaryDraft
from graph.settings import Settings
from graph.tool.tool_context import ToolContext
from tests.fault.mark import Marker

ANSWER: Final = (
    "서버 이전은 순서대로 하면 됩니다. 데이터베이스를 먼저 복제하고, 그다음 트래픽을 옮기고, 마지막에 확인합니다. "
    "예산 120만 원 안에서 이틀이면 되고, 지켜볼 사람 한 사람이 있으면 충분하고, 알릴 곳에는 하루 전에 알리면 됩니다"
)
TOOL_SIGN: Final = "[tool]"
_WORK_SECONDS: Final = 0.004


class WorkingChat(BaseChatModel):
    """Answers with a few pieces; a question with `[tool]` has a tool called first. Keeps every input."""

    _marker: Marker = PrivateAttr()
    _pause_seconds: float = PrivateAttr()
    _inputs: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    def __init__(self, marker: Marker, *, pause_seconds: float = _WORK_SECONDS) -> None:
        super().__init__()
        self._marker = marker
        self._pause_seconds = pause_seconds

    @property
    def _llm_type(self) -> str:
        return "working"

    @property
    def inputs(self) -> list[list[BaseMessage]]:
        return self._inputs

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> WorkingChat:  # noqa: ANN401, ARG002  # the base class's signature; it calls by the question
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401  # the base class's signature
    ) -> ChatResult:
        raise NotImplementedError

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002  # the base class's signature
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002  # the base class's signature
        **kwargs: Any,  # noqa: ANN401, ARG002  # the base class's signature
    ) -> AsyncIterator[ChatGenerationChunk]:
        self._inputs.append(messages)
        last = messages[-1]
        with self._marker.phase("stream"):
            for piece in ANSWER.split(", "):
                await anyio.sleep(self._pause_seconds)
                yield ChatGenerationChunk(message=AIMessageChunk(content=f"{piece}, "))
            wants_tool = isinstance(last, HumanMessage) and TOOL_SIGN in last.text
            if wants_tool:
                call = tool_call_chunk(name="look_up", args='{"name": "x"}', id=f"call-{last.id}", index=0)
                yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))
            reason = "tool_calls" if wants_tool and not isinstance(last, ToolMessage) else "stop"
            yield ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata={"finish_reason": reason}))


class WorkingSummariser(ExtractiveSummariser):
    """Picks sentences, which takes it a moment."""

    def __init__(self, marker: Marker, *, pause_seconds: float = _WORK_SECONDS) -> None:
        self._marker = marker
        self._pause_seconds = pause_seconds

    def summarise(self, messages: Sequence[AnyMessage], target_chars: int, **rest: Any) -> SummaryDraft:  # noqa: ANN401  # handed on as it came
        with self._marker.phase("fold"):
            time.sleep(self._pause_seconds)
            return super().summarise(messages, target_chars, **rest)


class WorkingModels(ChatModels):
    """One chat model and one summariser, both our own."""

    def __init__(self, settings: Settings, caller: ModelCaller, chat: WorkingChat, summariser: Summariser) -> None:
        super().__init__(settings, caller)
        self._chat = chat
        self._own_summariser = summariser

    def chat(self, name: str) -> BaseChatModel:  # noqa: ARG002  # there's only one
        return self._chat

    def summariser(self, name: str) -> Summariser:  # noqa: ARG002  # there's only one
        return self._own_summariser


def working_models(
    marker: Marker, *, pause_seconds: float = _WORK_SECONDS, chat: WorkingChat | None = None
) -> Callable[[Settings], AbstractContextManager[ChatModels]]:
    """Returns what `open_service` takes as `models`."""

    @contextmanager
    def opened(settings: Settings) -> Iterator[ChatModels]:
        with ModelCaller() as caller:
            yield WorkingModels(
                settings,
                caller,
                chat or WorkingChat(marker, pause_seconds=pause_seconds),
                WorkingSummariser(marker, pause_seconds=pause_seconds),
            )

    return opened


def working_tools(marker: Marker) -> Callable[[ToolContext], list[BaseTool]]:
    """Returns what `open_service` takes as `tools`: one that takes a moment."""

    def look_up(name: str) -> str:
        with marker.phase("tool"):
            time.sleep(_WORK_SECONDS)
            return f"{name}: 10월 3일, 예산 120만 원"

    return lambda _: [StructuredTool.from_function(look_up, description="Looks something up.")]
