"""Stopping a turn, and watching one that runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from langchain_core.tools import BaseTool, StructuredTool

from graph.value.error import NotFoundError
from graph.value.event import TurnFinished, TurnStopped
from tests.fake.body import content_of, faults, raw_turns, roles, shape
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, hang, tools
from tests.fake.openai_server import FakeOpenAI

LONG_SECONDS = 20.0


def test_stop_before_the_first_token_ends_the_call_and_leaves_no_blank_answer(chat: Chat, server: FakeOpenAI) -> None:
    chat.say("Please list the steps of the move.")
    server.script(hang(is_silent=True))
    chat.start("1 + 1 = ?")
    server.wait_until(lambda fake: fake.hanging_count == 1)
    chat.service.turns.stop(chat.session_id)
    assert chat.events()[-1] == TurnStopped(2, "")
    server.wait_until(lambda fake: fake.exchanges[1].is_closed_early)
    assert (chat.last_turn.status, chat.last_turn.answer_text) == ("stopped", "")
    chat.ask(3, 3)
    messages = server.bodies("chat")[-1]["messages"]
    assert faults(messages) == []
    assert content_of(messages[4]) == "(The user stopped the answer.)"  # in the language of the session


def test_stop_in_the_middle_keeps_what_was_said_until_the_turn_is_retried(chat: Chat, server: FakeOpenAI) -> None:
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
    server.script(hang("또 반쯤"))
    chat.start(question(3))
    chat.stop_when(lambda live: live.text == "또 반쯤")
    ending = chat.retry()[-1]
    assert isinstance(ending, TurnFinished)
    assert (ending.turn, len(chat.turns)) == (3, 3)
    assert "또 반쯤" not in chat.last_turn.answer_text


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


def test_stop_where_nothing_runs_does_nothing(chat: Chat) -> None:
    chat.ask(1, 1)
    chat.service.turns.stop(chat.session_id)
    with pytest.raises(NotFoundError):
        chat.service.turns.stop("no-such-session")
    assert chat.last_turn.status == "finished"
    chat.ask(2, 2)


def test_session_is_stopped_alone(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("하나"), to=question(1))
    second = Chat(chat.service)
    chat.start(question(1))
    chat.wait_until_live(lambda live: bool(live.text))
    assert isinstance(second.say(question(2))[-1], TurnFinished)
    assert chat.view.is_running
    chat.service.turns.stop(chat.session_id)
    assert isinstance(chat.events()[-1], TurnStopped)


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


def test_waiting_for_news_ends_with_them_or_in_time(chat: Chat, server: FakeOpenAI) -> None:
    turns, session_id = chat.service.turns, chat.session_id
    server.script(hang("첫 마디"))
    chat.start(question(1))
    seen = None
    while seen is None or seen.text != "첫 마디":
        seen = turns.live(session_id, seen=seen, wait_seconds=LONG_SECONDS)
    assert turns.live(session_id, seen=seen, wait_seconds=0.05) == seen
    stopping = threading.Timer(0.2, turns.stop, (session_id,))
    stopping.start()
    after = turns.live(session_id, seen=seen, wait_seconds=LONG_SECONDS)
    while after is not None:
        after = turns.live(session_id, seen=after, wait_seconds=LONG_SECONDS)
    stopping.join()
    assert chat.last_turn.status == "stopped"
    assert turns.live(session_id, wait_seconds=LONG_SECONDS) is None  # an idle session is not waited for
