from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from graph.core.turn import EMBEDDED_MODEL
from graph.model.caller import ChatRunnable, ModelCaller
from graph.model.chunk import Answer
from graph.offline.chat_model import OfflineChat
from graph.offline.phrase import KOREAN

INPUT: list[AnyMessage] = [
    SystemMessage("당신은 유용한 AI 어시스턴트입니다."),
    HumanMessage("지금 도쿄는 몇 시야?", id="h1"),
]


@tool
def get_current_time(timezone: str = "") -> str:
    """Tells the time."""
    return f"2026-11-21 08:50:12 Saturday, {timezone} (UTC+09:00)"


@pytest.fixture
def caller() -> Iterator[ModelCaller]:
    with ModelCaller() as caller:
        yield caller


def ask(caller: ModelCaller, model: ChatRunnable, messages: list[AnyMessage], heard: list[str] | None = None) -> Answer:
    on_text = (heard if heard is not None else []).append
    return caller.call(model, messages, stop=threading.Event(), deadline_seconds=10, attempts=1, on_text=on_text)


def test_it_streams_word_by_word_and_reports_no_usage(caller: ModelCaller) -> None:
    heard: list[str] = []
    answer = ask(caller, OfflineChat(pause_seconds=0), [HumanMessage("안녕하세요")], heard)
    assert answer.message.content == "".join(heard) == f"{KOREAN['greeting']}\n\n{KOREAN['introduction']}"
    assert len(heard) == len(str(answer.message.content).split())
    assert answer.usage is None
    assert answer.message.response_metadata == {"model_name": EMBEDDED_MODEL, "finish_reason": "stop"}


def test_it_asks_the_clock_and_tells_what_it_said(caller: ModelCaller) -> None:
    model = OfflineChat(pause_seconds=0).bind_tools([get_current_time])
    call = ask(caller, model, INPUT).message
    assert [(c["name"], c["args"]) for c in call.tool_calls] == [("get_current_time", {"timezone": "Asia/Tokyo"})]
    assert call.response_metadata["finish_reason"] == "tool_calls"
    result = get_current_time.invoke(call.tool_calls[0])
    assert isinstance(result, ToolMessage)
    answer = ask(caller, model, [*INPUT, call, result]).message
    assert "도쿄는 2026년 11월 21일 토요일 오전 8시 50분" in str(answer.content)
    assert answer.tool_calls == []


def test_it_calls_nothing_when_told_to_call_nothing(caller: ModelCaller) -> None:
    model = OfflineChat(pause_seconds=0).bind_tools([get_current_time], tool_choice="none")
    answer = ask(caller, model, INPUT).message
    assert answer.tool_calls == []
    assert answer.content == ask(caller, OfflineChat(pause_seconds=0), INPUT).message.content


def test_calls_of_different_turns_have_different_ids(caller: ModelCaller) -> None:
    model = OfflineChat(pause_seconds=0).bind_tools([get_current_time])
    ids = {
        ask(caller, model, messages).message.tool_calls[0]["id"]
        for messages in (INPUT, INPUT, [INPUT[0], HumanMessage("지금 도쿄는 몇 시야?", id="h2")])
    }
    assert len(ids) == 2


def test_without_tools_it_calls_none(caller: ModelCaller) -> None:
    assert ask(caller, OfflineChat(pause_seconds=0), INPUT).message.tool_calls == []


def test_it_answers_whole_what_it_would_stream() -> None:
    model = OfflineChat(pause_seconds=0)
    streamed = "".join(str(chunk.content) for chunk in model.stream([HumanMessage("안녕하세요")]))
    assert model.invoke([HumanMessage("안녕하세요")]).content == streamed
    called = model.bind_tools([get_current_time]).invoke(INPUT)
    assert isinstance(called, AIMessage)
    assert called.tool_calls[0]["args"] == {"timezone": "Asia/Tokyo"}
