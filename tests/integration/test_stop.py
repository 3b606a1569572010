from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from langchain_core.tools import BaseTool, StructuredTool

from graph.error import NotFoundError
from graph.event import TurnFinished, TurnStopped
from graph.service import ChatService
from tests.fake.body import content_of, faults, raw_turns, roles, shape
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, hang, text, tools
from tests.fake.openai_server import FakeOpenAI


def test_stop_before_the_first_token_ends_the_call(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang(is_silent=True))
    chat.start(question(1))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    chat.service.turns.stop(chat.session_id)
    assert chat.events()[-1] == TurnStopped(1, "")
    server.wait_until(lambda fake: fake.exchanges[0].is_closed_early)
    assert (chat.last_turn.status, chat.last_turn.answer_text) == ("stopped", "")


def test_stop_in_the_middle_keeps_what_was_said(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("반쯤 ", "말한 답"))
    chat.start(question(1))
    events = chat.stop_when(lambda live: live.text == "반쯤 말한 답")
    assert events[-1] == TurnStopped(1, "반쯤 말한 답")
    server.wait_until(lambda fake: fake.exchanges[0].is_closed_early)
    turn = chat.last_turn
    assert (turn.status, turn.answer_text, turn.error_code) == ("stopped", "반쯤 말한 답", "")
    chat.ask(2, 2)
    body = server.bodies("chat")[-1]
    assert content_of(body["messages"][2]) == "반쯤 말한 답"
    assert raw_turns(body) == [1, 2]
    assert faults(body["messages"]) == []


def test_a_stopped_turn_without_a_word_leaves_no_blank_answer(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang())
    chat.start(question(1))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    chat.service.turns.stop(chat.session_id)
    chat.events()
    chat.ask(2, 2)
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_a_stopped_turn_can_be_retried_under_its_number(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("반쯤"))
    chat.start(question(1))
    chat.stop_when(lambda live: live.text == "반쯤")
    ending = chat.retry()[-1]
    assert isinstance(ending, TurnFinished)
    assert ending.turn == 1
    assert len(chat.turns) == 1
    assert "반쯤" not in chat.last_turn.answer_text


def test_stop_ends_the_wait_for_a_fold(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    hanging = server.script(hang(is_silent=True), kind="summary")
    chat.say(question(3))
    server.wait_until(lambda _: hanging.is_asked_for)
    chat.start(question(4))
    events = chat.stop_when(lambda live: live.phase == "folding")
    assert names(events) == ["TurnStarted", "FoldWaiting", "TurnStopped"]
    assert len(server.bodies("chat")) == 3
    assert chat.last_turn.status == "stopped"


@pytest.fixture
def slow_tool() -> Iterator[StructuredTool]:
    gate = threading.Event()

    def slow() -> str:
        gate.wait(30)
        return "늦은 결과"

    yield StructuredTool.from_function(slow, name="slow", description="Waits.")
    gate.set()


def test_stop_while_a_tool_runs_leaves_no_orphan_call(
    open_chat: OpenChat, server: FakeOpenAI, slow_tool: BaseTool
) -> None:
    chat = open_chat(tools=[slow_tool])
    server.script(tools(ScriptedCall("slow", "{}", "call-1"), answer="찾아보겠습니다."))
    chat.start(question(1))
    events = chat.stop_when(lambda live: live.phase == "tool")
    assert names(events) == ["TurnStarted", "TokenDelta", "ToolStarted", "TurnStopped"]
    assert chat.last_turn.status == "stopped"
    assert [step.status for step in chat.last_turn.steps] == ["error"]
    chat.ask(2, 2)
    body = server.bodies("chat")[-1]
    assert roles(body) == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert faults(body["messages"]) == []


def test_stop_does_nothing_when_nothing_runs(chat: Chat) -> None:
    chat.ask(1, 1)
    chat.service.turns.stop(chat.session_id)
    with pytest.raises(NotFoundError):
        chat.service.turns.stop("no-such-session")
    assert chat.last_turn.status == "finished"
    chat.ask(2, 2)


def test_another_server_of_the_same_files_sees_and_stops_the_turn(
    chat: Chat, open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.script(hang("여기까지"))
    chat.start(question(1))
    other = open_chat().service
    chat.wait_until(lambda: (live := other.turns.live(chat.session_id)) is not None and live.text == "여기까지")
    live = other.turns.live(chat.session_id)
    assert live is not None
    assert live.phase == "answering"
    assert other.sessions.list()[0].is_running
    other.turns.stop(chat.session_id)
    assert chat.events()[-1] == TurnStopped(1, "여기까지")
    assert other.turns.transcript(chat.session_id).turns[-1].status == "stopped"
    assert not other.sessions.list()[0].is_running


def test_closing_the_server_stops_its_turns_and_keeps_what_they_said(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.script(hang("여기까지"))
    with open_chat() as chat:
        chat.start(question(1))
        chat.wait_until_live(lambda live: bool(live.text))
    with open_chat(chat.session_id) as chat:
        turn = chat.last_turn
        assert (turn.status, turn.answer_text) == ("stopped", "여기까지")
        chat.ask(2, 2)
    assert shape(server.bodies("chat")[-1]) == [1, 2]
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_two_sessions_run_side_by_side_and_stop_alone(service: ChatService, server: FakeOpenAI) -> None:
    hanging = server.script(hang("하나"), to=question(1))
    server.script(text("둘"), to=question(2))
    first, second = Chat(service), Chat(service)
    first.start(question(1))
    server.wait_until(lambda _: hanging.is_asked_for)
    assert isinstance(second.say(question(2))[-1], TurnFinished)
    assert first.view.is_running
    service.turns.stop(first.session_id)
    assert isinstance(first.events()[-1], TurnStopped)
