from __future__ import annotations

import logging

import pytest

from graph.event import TurnFailed, TurnFinished
from tests.fake.body import content_of, faults, raw_turns
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Reply, close_early, failure, hang, raw, refusal, reset, text
from tests.fake.openai_server import FakeOpenAI

PARTIAL = "여기까지는 들었습니다."

FAILURES = {
    "authentication": failure(401),
    "access_denied": failure(403),
    "model_missing": failure(404),
    "rate_limit": failure(429, headers={"Retry-After": "1"}),
    "quota": failure(429, code="insufficient_quota"),
    "provider": failure(500),
    "unreachable": reset(),
    "refused": refusal("I can't."),
    "bad_response": raw("{not json"),
    "empty_answer": text(""),
    "cut_stream": close_early(PARTIAL),
    "deadline": hang(is_silent=True),
}


def deadline_seconds(code: str) -> float:
    return 1.5 if code == "deadline" else 20


@pytest.mark.parametrize(("code", "reply"), FAILURES.items(), ids=FAILURES)
def test_a_failed_turn_keeps_its_message_and_works_when_retried(
    open_chat: OpenChat, server: FakeOpenAI, code: str, reply: Reply
) -> None:
    chat = open_chat(model_deadline_seconds=deadline_seconds(code))
    chat.ask(1, 1)
    server.script(reply)
    failed = chat.say(question(2))[-1]
    assert isinstance(failed, TurnFailed)
    assert (failed.turn, failed.code) == (2, code)
    turn = chat.last_turn
    assert (turn.status, turn.error_code, turn.user_text, turn.is_last) == ("failed", code, question(2), True)
    assert turn.answer_text == (PARTIAL if code == "cut_stream" else "")

    retried = chat.retry()[-1]
    assert isinstance(retried, TurnFinished)
    assert retried.turn == 2
    assert (chat.last_turn.status, chat.last_turn.attempt) == ("finished", 2)
    chat.ask(3, 3)
    assert [turn.number for turn in chat.turns] == [1, 2, 3]
    retried_body, third_body = server.bodies("chat")[-2:]
    assert raw_turns(retried_body) == [1, 2]
    assert raw_turns(third_body) == [1, 2, 3]
    assert faults(third_body["messages"]) == []
    assert PARTIAL not in str(third_body)


@pytest.mark.parametrize(("code", "reply"), FAILURES.items(), ids=FAILURES)
def test_the_chat_goes_on_behind_a_failed_turn(
    open_chat: OpenChat, server: FakeOpenAI, code: str, reply: Reply
) -> None:
    chat = open_chat(model_deadline_seconds=deadline_seconds(code))
    server.script(reply)
    assert isinstance(chat.say(question(1))[-1], TurnFailed)
    assert isinstance(chat.say(question(2))[-1], TurnFinished)
    assert [turn.status for turn in chat.turns] == ["failed", "finished"]
    body = server.bodies("chat")[-1]
    assert raw_turns(body) == [1, 2]
    assert faults(body["messages"]) == []
    answer = content_of(body["messages"][2])
    assert answer == (PARTIAL if code == "cut_stream" else "(답변을 만들지 못했습니다.)")


def test_a_failure_that_passes_is_not_even_seen(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(model_attempts=3)
    server.script(failure(500), failure(429, headers={"Retry-After": "0"}))
    assert names(chat.say(question(1))) == ["TurnStarted", "TokenDelta", "TurnFinished"]
    assert (chat.last_turn.status, chat.last_turn.attempt) == ("finished", 1)
    assert len(server.bodies("chat")) == 3


def test_nothing_is_listening(open_chat: OpenChat) -> None:
    chat = open_chat(openai_base_url="http://127.0.0.1:9/v1")
    failed = chat.say(question(1))[-1]
    assert isinstance(failed, TurnFailed)
    assert failed.code == "unreachable"
    assert chat.last_turn.user_text == question(1)


def test_a_failed_turn_is_folded_like_any_other(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    server.script(failure(500))
    chat.say(question(3))
    chat.wait_for_folds()
    chat.ask(4, 4)
    assert chat.covered == [(1, 2, 3)]
    assert question(3) in str(server.bodies("summary")[0])


def test_a_turn_that_fails_at_the_fold_keeps_the_fold(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    server.script(failure(500))
    assert names(chat.say(question(4))) == ["TurnStarted", "Folded", "TurnFailed"]
    assert chat.covered == [(1, 2, 3)]
    assert isinstance(chat.retry()[-1], TurnFinished)
    assert chat.covered == [(1, 2, 3)]
    assert len(server.bodies("summary")) == 1
    first, again = server.bodies("chat")[-2:]
    assert first["messages"] == again["messages"]


def test_neither_the_key_nor_what_was_said_is_logged(
    chat: Chat, server: FakeOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script(failure(401, "Incorrect API key provided: sk-scripted-key-of-the-tests"), text("비밀스러운 답"))
    failed = chat.say(question(1))[-1]
    chat.say(question(2))
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("graph"))
    assert "turn 1" in ours
    for secret in ("sk-scripted-key-of-the-tests", "김민수", "비밀스러운"):
        assert secret not in ours
        assert secret not in repr(failed)
    assert not chat.rows("SELECT 1 FROM turn WHERE error_detail LIKE '%sk-scripted%'")
