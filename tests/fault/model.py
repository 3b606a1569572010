"""A model, a summariser and a tool that work by themselves and mark their phases."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import anyio
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import PrivateAttr

from graph.model.factory import ChatModels
from graph.model.summariser import ExtractiveSummariser, SummaryDraft
from graph.server.settings import Settings
from graph.tool.tool_context import ToolContext
from graph.value.mcp import McpResult, ToolInfo
from tests.fake.mcp_servers import WRITE, ScriptedServers
from tests.fake.scripted_model import ScriptedAnswer, ScriptedChat, scripted_models
from tests.fault.mark import Marker

ANSWER: Final = (
    "서버 이전은 순서대로 하면 됩니다. 데이터베이스를 먼저 복제하고, 그다음 트래픽을 옮기고, 마지막에 확인합니다. "
    "예산 120만 원 안에서 이틀이면 되고, 지켜볼 사람 한 사람이 있으면 충분하고, 알릴 곳에는 하루 전에 알리면 됩니다"
)
TOOL_SIGN: Final = "[tool]"
ASK_SIGN: Final = "[ask]"
_WORK_SECONDS: Final = 0.004
_CALL_SECONDS: Final = 0.1  # a call is rare: it is to be caught when there is one


class WorkingChat(ScriptedChat):
    """Answers with a few pieces and a short pause before each.

    A question with `[tool]` makes it call a tool first, one with `[ask]` a tool that waits for the user's word.
    """

    _marker: Marker = PrivateAttr()
    _pause_seconds: float = PrivateAttr()

    def __init__(self, marker: Marker, *, pause_seconds: float = _WORK_SECONDS) -> None:
        super().__init__()
        self._marker = marker
        self._pause_seconds = pause_seconds

    def reply_to(self, messages: Sequence[BaseMessage], /) -> ScriptedAnswer:
        last, pieces = messages[-1], [f"{piece}, " for piece in ANSWER.split(", ")]
        if isinstance(last, HumanMessage) and TOOL_SIGN in last.text:
            return ScriptedAnswer(pieces, tool="look_up", arguments='{"name": "x"}', call_id=f"call-{last.id}")
        if isinstance(last, HumanMessage) and ASK_SIGN in last.text:
            arguments = json.dumps({"text": last.id})
            return ScriptedAnswer(pieces, tool=WRITE.offered, arguments=arguments, call_id=f"call-{last.id}")
        return ScriptedAnswer(pieces)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401  # the base class's signature
    ) -> AsyncIterator[ChatGenerationChunk]:
        with self._marker.phase("stream"):
            async for chunk in super()._astream(messages, stop, run_manager, **kwargs):
                await anyio.sleep(self._pause_seconds)
                yield chunk


class WorkingSummariser(ExtractiveSummariser):
    """Picks sentences after a short pause."""

    def __init__(self, marker: Marker, *, pause_seconds: float = _WORK_SECONDS) -> None:
        self._marker = marker
        self._pause_seconds = pause_seconds

    def summarise(self, messages: Sequence[AnyMessage], target_chars: int, **rest: Any) -> SummaryDraft:  # noqa: ANN401  # handed on as it came
        with self._marker.phase("fold"):
            time.sleep(self._pause_seconds)
            return super().summarise(messages, target_chars, **rest)


def working_models(
    marker: Marker, *, pause_seconds: float = _WORK_SECONDS, chat: WorkingChat | None = None
) -> Callable[[Settings], AbstractContextManager[ChatModels]]:
    """Returns what `open_service` takes as `models`."""
    return scripted_models(
        chat or WorkingChat(marker, pause_seconds=pause_seconds), WorkingSummariser(marker, pause_seconds=pause_seconds)
    )


def working_tools(marker: Marker) -> Callable[[ToolContext], list[BaseTool]]:
    """Returns what `open_service` takes as `tools`: one that takes a moment."""

    def look_up(name: str) -> str:
        with marker.phase("tool"):
            time.sleep(_WORK_SECONDS)
            return f"{name}: 10월 3일, 예산 120만 원"

    return lambda _: [StructuredTool.from_function(look_up, description="Looks something up.")]


class WritingServers(ScriptedServers):
    """Has one tool, which writes each of its calls to a file and takes a moment."""

    def __init__(self, file: Path, marker: Marker) -> None:
        super().__init__((WRITE,))
        self._file = file
        self._marker = marker

    def call(self, tool: ToolInfo, arguments: Mapping[str, Any], **rest: Any) -> McpResult:  # noqa: ANN401  # handed on as it came
        with self._marker.phase("call"):
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{arguments['text']}\n")
            time.sleep(_CALL_SECONDS)
            return super().call(tool, arguments, **rest)
