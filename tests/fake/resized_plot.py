"""Plays what may make an input too long for its model, and checks that none is, and that what was cut is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, PrivateAttr

from graph.core.text import estimate_tokens, sum_tokens
from graph.service import ChatService, open_service
from graph.tool.registry import ToolContext
from graph.value.client import ClientOptions
from graph.value.view import CallInput, TurnOptions
from prompt.system.framing import BLOCK_CUT
from tests.fake.oracle import check_cover, check_request, read_truth
from tests.fake.plot import Plot
from tests.fake.program import PROGRAM
from tests.fake.scripted_model import ScriptedAnswer, ScriptedChat, scripted_models
from tests.fake.waiting_tool import tools_and_wait

_SENTENCE = "구매 담당자 {}번이 지난주 회의에서 정한 내용을 정리해 두었고 다음 달 {}일까지 검토합니다. "


class ReportingChat(ScriptedChat):
    """Reports so many times of what it was sent, counted as we do; nothing for 0."""

    _share: float = PrivateAttr(default=0.0)

    def report(self, share: float) -> None:
        self._share = share

    async def _astream(
        self,
        messages: list[BaseMessage],
        *args: Any,  # noqa: ANN401  # handed on as it came
        **kwargs: Any,  # noqa: ANN401  # handed on as it came
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in super()._astream(messages, *args, **kwargs):
            yield chunk
        if self._share:
            sent = int(sum_tokens(messages) * self._share)  # type: ignore[arg-type]  # whoever calls sends messages of these kinds
            usage = {"input_tokens": sent, "output_tokens": 9, "total_tokens": sent + 9}
            yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=usage))  # type: ignore[arg-type]  # a dict with just these keys


class _Length(BaseModel):
    sentences: int


class ResizedPlot(Plot):
    """One session whose model's window changes; each public method but `check` is a step."""

    model: ReportingChat
    _client: ClientOptions | None = None

    def _new_model(self) -> ReportingChat:
        return ReportingChat()

    def resize(self, window_tokens: int) -> None:
        self._changes["model_window_tokens"] = window_tokens
        self._open(self.settings.turnfold_data_dir)

    def report(self, share: float) -> None:
        self.model.report(share)

    def read(self, rounds: int, sentences: int) -> None:
        """The model reads so much again and again."""
        arguments = json.dumps({"sentences": sentences})
        self.model.script(*[ScriptedAnswer([_SENTENCE], tool="read", arguments=arguments)] * rounds)
        self.ask()

    def instruct(self, lines: int) -> None:
        """A program asks, with instructions of so many lines or a sixth of the window, which stay for later turns."""
        assert self.settings.model_window_tokens is not None
        most = self.settings.model_window_tokens // 6 // estimate_tokens(_SENTENCE.format(999, 999))
        text = "\n".join(_SENTENCE.format(number, number) for number in range(min(lines, most)))
        self._client = replace(PROGRAM, system=text)
        self.ask()
        self._client = None

    def check(self) -> None:
        """Checks every input since the last check."""
        self.chat.wait_for_folds()
        if self.turn_count == 0:
            return
        inputs = self.model.inputs[self._checked_inputs :]
        for sent in inputs:
            check_request(sent, self.chat.turns[-1].user_text)
        check_cover(read_truth(self.chat), self._started)
        self._checked_inputs = len(self.model.inputs)
        if inputs:
            self._check_sizes()

    def _check_sizes(self) -> None:
        window, pins = self.settings.model_window_tokens, self.chat.service.folds.pins(self._session_id)
        unsent = {pinned.message_id for pinned in pins.messages if not pinned.is_sent}
        assert window is not None
        attempt = self.chat.last_turn.attempt
        for call in self.chat.service.inputs.of_turn(self._session_id, self.turn_count):
            assert call.is_verified
            if call.attempt == attempt:
                assert call.sent_tokens < window * self.settings.guard_share
                assert unsent.isdisjoint(block.id for block in call.blocks if block.kind == "pin")
                self._check_instructions(call)

    def _check_instructions(self, call: CallInput) -> None:
        """They are sent whole, or end with the note that they aren't."""
        query = "SELECT text FROM context_block WHERE session_id = ? AND kind = 'client' ORDER BY version DESC LIMIT 1"
        newest = "".join(text for (text,) in self.chat.rows(query, self._session_id))
        sent = next((block.text for block in call.blocks if block.id == "client"), None) or ""
        retained = sent.removesuffix(BLOCK_CUT["ko"])
        assert sent == newest or (retained != sent and newest.startswith(retained))

    def _options(self) -> TurnOptions:
        return replace(super()._options(), client=self._client)

    def _served(self) -> AbstractContextManager[ChatService]:
        models = scripted_models(self.model, self.summariser)
        return open_service(self.settings, models=models, tools=_tools, context=self._project.source)


def _tools(context: ToolContext) -> list[BaseTool]:
    def read(sentences: int) -> str:
        return "".join(_SENTENCE.format(number, number % 28) for number in range(sentences))

    tool = StructuredTool(name="read", description="Reads.", args_schema=_Length, func=read)
    return [*tools_and_wait(context), tool]
