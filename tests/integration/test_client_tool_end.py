from __future__ import annotations

import pytest

from graph.event import TurnFinished
from tests.fake.body import faults, roles
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.store import MovableClock
from tests.fake.waiting_turn import FIRST, LOOK, answer, refusal, required, resume, status_of, waiting

CLOCK = ScriptedCall("get_current_time", "{}", "call-clock")


@pytest.mark.parametrize("how", ["page", "program"])
def test_a_new_message_closes_what_waits(chat: Chat, server: FakeOpenAI, how: str) -> None:
    waiting(chat, server, CLOCK, FIRST)
    events = chat.say(question(2), options=LOOK if how == "program" else None)
    assert isinstance(events[-1], TurnFinished)
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    assert [turn.status for turn in chat.turns] == ["stopped", "finished"]
    assert refusal(chat, answer("call-1"))[0] == "unknown_call"


def test_what_waits_for_half_an_hour_is_closed_by_whoever_comes_next(open_chat: OpenChat, server: FakeOpenAI) -> None:
    clock = MovableClock()
    chat = open_chat(clock=clock)
    waiting(chat, server)
    clock.move(30 * 60 - 1)
    assert status_of(chat) == "requires_action"
    clock.move(1)
    assert status_of(chat) == "stopped"
    assert chat.rows("SELECT status FROM turn") == [("requires_action",)]
    assert refusal(chat, answer("call-1"))[0] == "unknown_call"
    assert chat.rows("SELECT status FROM turn") == [("stopped",)]
    assert isinstance(chat.say(question(2))[-1], TurnFinished)


def test_stop_closes_what_waits(chat: Chat, server: FakeOpenAI) -> None:
    waiting(chat, server)
    chat.service.turns.stop(chat.session_id)
    assert chat.rows("SELECT status FROM turn") == [("stopped",)]
    assert chat.last_turn.answer_text == "보겠습니다."


@pytest.mark.parametrize("again", [Chat.retry, Chat.regenerate])
def test_a_waiting_turn_can_be_run_again_from_its_question(chat: Chat, server: FakeOpenAI, again: object) -> None:
    waiting(chat, server)
    assert callable(again)
    assert isinstance(again(chat)[-1], TurnFinished)
    assert roles(server.bodies("chat")[-1]) == ["system", "user"]
    assert (chat.last_turn.attempt, chat.last_turn.status, chat.last_turn.steps) == (2, "finished", ())


def test_a_reset_closes_what_waits(chat: Chat, server: FakeOpenAI) -> None:
    waiting(chat, server)
    chat.service.folds.reset(chat.session_id)
    assert chat.last_turn.status == "stopped"
    chat.say(question(2))
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_a_compaction_leaves_what_waits_open(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(preserve_recent_messages=2)
    chat.ask(1, 5)
    server.script(tools(FIRST))
    required(chat.say(question(6), options=LOOK))
    record = chat.service.folds.compact(chat.session_id)
    assert record.turns[-1] < 6
    assert isinstance(resume(chat, answer("call-1"))[-1], TurnFinished)
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    assert chat.last_turn.status == "finished"


def test_a_session_with_a_waiting_turn_can_be_deleted(chat: Chat, server: FakeOpenAI) -> None:
    waiting(chat, server)
    chat.service.sessions.delete(chat.session_id)
    assert chat.rows("SELECT count(*) FROM message") == [(0,)]


def test_no_fold_counts_a_waiting_turn_as_complete(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    server.script(tools(FIRST))
    required(chat.say(question(3), options=LOOK))
    chat.wait_for_folds()
    assert chat.rows("SELECT count(*) FROM record") == [(0,)]
    assert chat.service.folds.next_fold(chat.session_id, strategy="").turns_left == 1
    resume(chat, answer("call-1"))
    chat.wait_for_folds()
    assert chat.rows("SELECT turns FROM record") == [("[1,2,3]",)]


def test_a_failed_call_behind_an_answer_closes_the_turn_and_it_can_be_tried_again(
    chat: Chat, server: FakeOpenAI
) -> None:
    waiting(chat, server)
    server.script(failure(400))
    resume(chat, answer("call-1"))
    assert chat.last_turn.status == "failed"
    assert isinstance(chat.retry()[-1], TurnFinished)
