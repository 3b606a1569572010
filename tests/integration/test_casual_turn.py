from __future__ import annotations

import threading

from graph.event import TurnFinished
from tests.fake.body import raw_turns, roles, shape, tool_names
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, hang, text, tools
from tests.fake.openai_responder import answer_body
from tests.fake.openai_server import FakeOpenAI


def test_small_talk_is_one_call_over_the_same_input(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    chat.say("고마워요!")
    chat.ask(3, 3)
    asked, casual, after = server.bodies("chat")
    assert tool_names(asked)
    assert casual["messages"][:2] == asked["messages"]
    assert after["tools"] == asked["tools"]
    assert roles(after) == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [turn.number for turn in chat.turns] == [1, 2, 3]


def test_small_talk_at_a_fold_takes_what_is_ready(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    events = chat.say("thanks a lot!")
    assert names(events) == ["TurnStarted", "Folded", "TokenDelta", "TurnFinished"]
    assert shape(server.bodies("chat")[-1]) == [(1, 3)]
    assert chat.covered == [(1, 2, 3)]


def test_small_talk_waits_for_no_fold(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(fold_wait_seconds=0.1)
    server.script(hang(is_silent=True), kind="summary")
    for number in (1, 2, 3):
        chat.say(question(number))
    events = chat.say("정말 감사합니다!")
    assert names(events) == ["TurnStarted", "TokenDelta", "TurnFinished"]
    assert raw_turns(server.bodies("chat")[-1]) == [1, 2, 3]
    server.wait_until(lambda server: bool(server.bodies("summary")))


def test_small_talk_waits_when_two_blocks_are_due(chat: Chat, server: FakeOpenAI) -> None:
    first, second = threading.Event(), threading.Event()
    server.script(
        lambda body: answer_body(body) if first.wait(30) else failure(500),
        lambda body: answer_body(body) if second.wait(30) else failure(500),
        kind="summary",
    )
    for number in (1, 2, 3):
        chat.say(question(number))
    for _ in range(3):
        assert names(chat.say("고마워요!")) == ["TurnStarted", "TokenDelta", "TurnFinished"]
    chat.start("고마워요!")
    chat.wait_until_live(lambda live: live.phase == "folding")
    first.set()
    assert names(chat.events()) == ["TurnStarted", "FoldWaiting", "Folded", "TokenDelta", "TurnFinished"]
    second.set()
    assert chat.covered == [(1, 2, 3)]


def test_yes_after_a_question_of_the_assistant_is_no_small_talk(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("두 가지 방법이 있습니다. 첫 번째 방법으로 할까요?"), text("그렇게 하겠습니다."))
    chat.say(question(1))
    chat.say("네")
    assert tool_names(server.bodies("chat")[-1])
    assert "tool_choice" not in server.bodies("chat")[-1]


def test_yes_to_an_offered_search_can_search(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("시간대를 알아보겠습니다. 괜찮으면 '네'라고 답해 주세요."))
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), text("알아보았습니다."))
    chat.say(question(1))
    events = chat.say("네")
    assert names(events) == ["TurnStarted", "ToolStarted", "ToolFinished", "TokenDelta", "TurnFinished"]


def test_a_failed_small_talk_is_retried_as_small_talk(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    server.script(failure(500))
    chat.say("고마워요!")
    assert chat.last_turn.status == "failed"
    assert isinstance(chat.retry()[-1], TurnFinished)
    assert server.bodies("chat")[-1]["tool_choice"] == "none"
