from __future__ import annotations

import threading
from functools import partial

import pytest

from graph.event import TurnFinished
from graph.offline.chat_model import OfflineChat
from tests.fake.chat import names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, failure, hang
from tests.fake.openai_responder import answer_body
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rolling import ROLLING, prompts, row, sent


def test_edge_case_first_and_second_message(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ROLLING)
    chat.say(question(1))
    assert sent(server) == question(1)
    chat.say(question(2))
    assert sent(server).startswith(f"[RECENT MESSAGES]\nUSER: {question(1)}\nASSISTANT: ")
    assert sent(server).endswith(f"[CURRENT MESSAGE]\n{question(2)}")


def test_a_long_chat_sends_summary_recent_messages_and_the_current_one_in_one_message(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(**ROLLING)
    chat.ask(1, 6)
    text_sent = sent(server)
    assert text_sent.startswith("[CONVERSATION CONTEXT]\nThe following is a summary of our earlier conversation:\n")
    assert text_sent.endswith(f"[CURRENT MESSAGE]\n{question(6)}")
    (record,) = chat.service.folds.records(chat.session_id)
    assert record.summary in text_sent


def test_the_summary_is_asked_for_as_the_seed_says(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ROLLING, chat_summary_model="a-small-model")
    chat.ask(1, 4)
    body = server.bodies("summary")[0]
    assert body["model"] == "a-small-model"
    # The seed's 1,024 tokens bound the summary; a reasoning model's thoughts count as its answer, too.
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 4 * 1_024
    chat.ask(5, 5)
    assert 0 < max(record.summary_tokens for record in chat.service.folds.records(chat.session_id)) <= 1_024
    assert prompts(server)[0].startswith("Summarize the following conversation concisely")
    assert 'Conversation:\n<m turn="1" from="user">질문 1번' in prompts(server)[0]
    assert chat.service.settings.fold_deadline_seconds == 60


def test_versions_grow_from_the_summary_before_and_the_new_messages(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ROLLING)
    chat.ask(1, 10)
    rows = row(chat, "version, status, from_position, to_position, covered_until_message_id, covered_message_count")
    assert len(rows) >= 3
    assert [version for version, *_ in rows] == list(range(1, len(rows) + 1))
    assert {status for _, status, *_ in rows} == {"COMPLETED"}
    for _, _, first, last, until, count in rows:
        ids = chat.rows("SELECT message_id FROM message WHERE session_id = ? ORDER BY position", chat.session_id)
        assert (first, count) == (1, last)
        assert ids[int(str(last)) - 1] == (until,)
    first_summary = chat.rows("SELECT summary FROM record WHERE version = 1")[0][0]
    second = prompts(server)[1]
    assert f"Previous summary:\n{first_summary}\n\nNew messages since last summary:\n" in second
    assert 'from="user">질문 1번' not in second.partition("New messages since last summary:")[2]


def test_each_message_is_kept_with_its_tokens_and_records_add_them_up(open_chat: OpenChat) -> None:
    chat = open_chat(**ROLLING)
    chat.ask(1, 4)
    ((last, covered_tokens),) = row(chat, "to_position, covered_token_count")
    total = chat.rows("SELECT sum(tokens), min(tokens) FROM message WHERE position <= ?", last)
    assert total[0][0] == covered_tokens
    assert total[0][1] > 0


def test_edge_case_a_message_while_summarising_starts_no_second_summary(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(**ROLLING)
    server.script(hang(is_silent=True), kind="summary")
    for number in range(1, 9):
        assert isinstance(chat.say(question(number))[-1], TurnFinished)
    assert len(server.bodies("summary")) == 1
    assert row(chat, "status") == [("IN_PROGRESS",)]


def test_no_turn_waits_for_a_summary(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ROLLING)
    server.script(hang(is_silent=True), kind="summary")
    events = [event for number in range(1, 8) for event in chat.say(question(number))]
    assert "FoldWaiting" not in names(events)


def test_a_summary_slower_than_several_turns_is_still_adopted(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat, answers_are_out = open_chat(**ROLLING), threading.Event()

    def slow(body: Body) -> Reply:
        assert answers_are_out.wait(60)
        return answer_body(body)

    server.script(slow, kind="summary")
    _ = [chat.say(question(number)) for number in range(1, 7)]
    begun_with = int(row(chat, "to_position")[0][0])  # type: ignore[call-overload]  # SQLite's own integer
    answers_are_out.set()
    chat.wait_for_folds()
    chat.say(question(7))
    (record,) = chat.service.folds.records(chat.session_id)
    assert 2 * record.turns[-1] == begun_with < 12
    assert f"USER: {question(record.turns[-1])}" not in sent(server)
    assert f"USER: {question(record.turns[-1] + 1)}" in sent(server) or begun_with <= 6


def test_edge_case_a_failure_is_kept_and_tried_again_after_the_next_answer(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(context_strategy="rolling", app_context_threshold=1_000)
    server.script(failure(500), kind="summary")
    done = 0
    while not server.bodies("summary"):
        done += 1
        chat.ask(done, done)
    assert row(chat, "status, error_code") == [("FAILED", "provider")]
    assert chat.view.fold_failures == 1
    chat.ask(done + 1, done + 1)
    assert row(chat, "status") == [("FAILED",), ("COMPLETED",)]
    chat.ask(done + 2, done + 2)
    assert chat.view.fold_failures == 0


def test_three_failures_of_a_later_version_are_told(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ROLLING)
    chat.ask(1, 5)
    ((made,),) = chat.rows("SELECT max(version) FROM record")
    server.respond_with(lambda body: failure(500) if "<source>" in str(body) else answer_body(body))
    failures = []
    for number in range(6, 12):
        chat.ask(number, number)
        failures.append(chat.view.fold_failures)
        if failures[-1] == 3:
            break
    assert failures[-3:] == [1, 2, 3]
    assert chat.view.fold_error_code == "provider"
    chat.ask(number + 1, number + 1)
    (record,) = chat.service.folds.records(chat.session_id)
    assert (record.kind, record.version, record.outcome) == ("rolling", made + 1, "picked")


def test_edge_case_no_key_skips_the_summary_and_the_chat_goes_on(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ROLLING)
    server.respond_with(
        lambda body: failure(401, code="invalid_api_key") if "<source>" in str(body) else answer_body(body)
    )
    chat.ask(1, 5)
    assert {status for (status,) in row(chat, "status")} == {"FAILED"}
    assert chat.view.fold_error_code == "authentication"
    assert f"USER: {question(4)}" in sent(server)
    chat.ask(6, 6)
    assert [record.outcome for record in chat.service.folds.records(chat.session_id)] == ["picked"]


def test_without_any_key_the_offline_model_summarises_by_itself(
    open_chat: OpenChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.model.factory.OfflineChat", partial(OfflineChat, pause_seconds=0))
    chat = open_chat(**ROLLING, openai_api_key=None, openai_base_url=None, chat_model=None)
    for number in range(1, 7):
        assert isinstance(chat.say(question(number))[-1], TurnFinished)
        chat.wait_for_folds()
    assert chat.rows("SELECT DISTINCT status, model FROM record") == [("COMPLETED", "extractive")]


@pytest.mark.parametrize("length", [2_000, 2_001])
def test_edge_case_2000_characters_in_the_input(open_chat: OpenChat, server: FakeOpenAI, length: int) -> None:
    chat = open_chat(context_strategy="rolling", app_context_threshold=100_000)
    long = "가" * length
    chat.say(long)
    chat.say("다음 질문이 이어집니다.")
    assert (f"USER: {long}\n" in sent(server)) is (length == 2_000)
    assert f"USER: {'가' * 1_999}" in sent(server)


@pytest.mark.parametrize("length", [3_000, 3_001])
def test_edge_case_3000_characters_in_the_summary_prompt(open_chat: OpenChat, server: FakeOpenAI, length: int) -> None:
    chat = open_chat(**ROLLING)
    long = "가" * length
    chat.say(long)
    chat.ask(2, 2)
    chat.wait_for_folds()
    assert (f'from="user">{long}</m>\n' in prompts(server)[0]) is (length == 3_000)
    assert f'from="user">{"가" * 2_999}' in prompts(server)[0]


def test_edge_case_switched_off_the_current_message_goes_alone(
    open_chat: OpenChat, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APP_CONTEXT_ENABLED", "false")
    chat = open_chat()
    chat.ask(1, 5)
    assert chat.view.strategy == "window"
    assert [len(body["messages"]) for body in server.bodies("chat")] == [2] * 5
    assert sent(server) == question(5)
    assert server.bodies("summary") == []
