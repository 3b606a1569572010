"""A chat model that answers, fails, hangs or calls tools as a test says, without a network."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import anyio
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, AnyMessage, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

from graph.model.caller import ModelCaller
from graph.model.factory import ChatModels
from graph.model.summariser import ExtractiveSummariser, Summariser, SummaryDraft
from graph.server.settings import Settings
from graph.value.error import ProviderError
from graph.value.view import Thinking


@dataclass(frozen=True)
class ScriptedAnswer:
    """What one call of the model does: stream `pieces`, then call `tool`, and end as `ending` says.

    `beside` are further calls, each a tool and its arguments.
    """

    pieces: Sequence[str] = ()
    tool: str = ""
    arguments: str = "{}"
    call_id: str = ""
    ending: Literal["stop", "fail", "hang"] = "stop"
    beside: Sequence[tuple[str, str]] = ()


class ScriptedChat(BaseChatModel):
    """Plays its script, then answers everything with a sentence; keeps every input it was sent.

    A subclass that answers by what it was sent overrides `reply_to`.
    """

    _script: deque[ScriptedAnswer] = PrivateAttr(default_factory=deque)
    _inputs: list[list[AnyMessage]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def inputs(self) -> list[list[AnyMessage]]:
        return list(self._inputs)

    def hear(self, messages: Sequence[BaseMessage]) -> None:
        """Keeps an input."""
        self._inputs.append(list(messages))  # type: ignore[arg-type]  # whoever calls sends messages of these kinds

    def script(self, *answers: ScriptedAnswer) -> None:
        self._script.extend(answers)

    def reply_to(self, _messages: Sequence[BaseMessage], /) -> ScriptedAnswer:
        return self._script.popleft() if self._script else ScriptedAnswer([f"{len(self._inputs)}번째 물음에 답합니다."])

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> ScriptedChat:  # noqa: ANN401, ARG002  # tools are called by script
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
        self.hear(messages)
        answer = self.reply_to(messages)
        for piece in filter(None, answer.pieces):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        if answer.ending == "fail":
            raise ProviderError
        if answer.ending == "hang":
            await anyio.sleep_forever()
        if answer.tool:
            call_id = answer.call_id or f"call-{len(self._inputs)}"
            calls = [
                tool_call_chunk(name=tool, args=arguments, id=f"{call_id}-{index}" if index else call_id, index=index)
                for index, (tool, arguments) in enumerate([(answer.tool, answer.arguments), *answer.beside])
            ]
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=calls))
        reason = "tool_calls" if answer.tool else "stop"
        yield ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata={"finish_reason": reason}))


class ScriptedSummariser(ExtractiveSummariser):
    """Picks sentences, or fails as long as it is told to."""

    def __init__(self) -> None:
        self.is_failing = False

    def summarise(self, messages: Sequence[AnyMessage], target_chars: int, **rest: Any) -> SummaryDraft:  # noqa: ANN401  # handed on as it came
        if self.is_failing:
            raise ProviderError
        return super().summarise(messages, target_chars, **rest)


class ScriptedModels(ChatModels):
    """The models of a service whose one chat model and one summariser are scripted."""

    def __init__(
        self, settings: Settings, caller: ModelCaller, chat_model: ScriptedChat, summariser: Summariser
    ) -> None:
        super().__init__(settings, caller)
        self._chat_model = chat_model
        self._summariser = summariser

    def chat(self, name: str, *, thinking: Thinking = "") -> BaseChatModel:  # noqa: ARG002  # there's only one
        return self._chat_model

    def summariser(self, name: str) -> Summariser:  # noqa: ARG002  # there's only one
        return self._summariser


def scripted_models(
    chat_model: ScriptedChat, summariser: Summariser
) -> Callable[[Settings], AbstractContextManager[ChatModels]]:
    """Returns what `open_service` takes as `models`."""

    @contextmanager
    def opened(settings: Settings) -> Iterator[ChatModels]:
        with ModelCaller() as caller:
            yield ScriptedModels(settings, caller, chat_model, summariser)

    return opened
