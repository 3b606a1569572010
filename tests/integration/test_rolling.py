from __future__ import annotations

import threading

import pytest

from graph.server.settings import Settings
from tests.fake.body import content_of, roles
from tests.fake.chat import Chat, names, question
from tests.fake.draft import VARIED
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, failure, hang, text
from tests.fake.openai_responder import answer_body
from tests.fake.openai_server import FakeOpenAI
from tests.fake.sent import last_kinds, last_manifest
from tests.fake.summary_text import split_facts

ROLLING = {"context_strategy": "rolling", "app_context_threshold": 500}
SENTENCE = "서버 이전은 김민수가 맡아 10월에 하기로 했습니다. "


def sent(server: FakeOpenAI, index: int = -1) -> str:
    """The one user message of a chat call."""
    body = server.bodies("chat")[index]
    assert roles(body) == ["system", "user"]
    return content_of(body["messages"][1])


def prompts(server: FakeOpenAI) -> list[str]:
    return [content_of(body["messages"][-1]) for body in server.bodies("summary")]


def rows(chat: Chat, columns: str) -> list[tuple[object, ...]]:
    return chat.rows(f"SELECT {columns} FROM record WHERE session_id = ? ORDER BY sequence", chat.session_id)  # noqa: S608  # columns are the test's own


def test_a_summary_the_recent_messages_and_the_current_one_go_in_one_message(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**ROLLING)
    chat.ask(1, 1)
    assert sent(server) == question(1)
    started: set[str] = set()
    for number in range(2, 10):
        chat.ask(number, number)
        # Right after a version, too, the newest exchange is raw, and no message is left out.
        newest = f"USER: {question(number - 1)}\nASSISTANT: {chat.turns[number - 2].answer_text}\n"
        assert newest in sent(server)
        assert sent(server).endswith(f"[CURRENT MESSAGE]\n{question(number)}")
        assert chat.view.unsent_messages == 0
        for record in chat.service.folds.records(chat.session_id):
            if record.id not in started:
                assert record.turns[-1] < number - 1
                assert question(record.turns[-1] + 1) in sent(server)
            started.add(record.id)
    assert len(started) >= 3
    assert sent(server, 1).startswith(f"[RECENT MESSAGES]\nUSER: {question(1)}\nASSISTANT: ")
    (record,) = chat.service.folds.records(chat.session_id)
    summary = "[CONVERSATION CONTEXT]\nThe following is a summary of our earlier conversation:\n"
    assert sent(server).startswith(f"{summary}{record.summary}")
    assert last_manifest(chat)[0][:2] == ("system", "chat-ko")
    assert "record" in last_kinds(chat)


def test_versions_grow_from_the_summary_before_and_the_new_messages(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**ROLLING)
    chat.ask(1, 8)
    made = rows(
        chat,
        "version, status, from_position, to_position, covered_until_message_id, covered_message_count, "
        "covered_token_count, summary",
    )
    assert len(made) >= 3
    assert [version for version, *_ in made] == list(range(1, len(made) + 1))
    query = "SELECT message_id, tokens FROM message WHERE session_id = ? ORDER BY position"
    messages = chat.rows(query, chat.session_id)
    for _, status, first, last, until, count, tokens, _ in made:
        assert (status, first, count) == ("COMPLETED", 1, last)
        assert messages[int(str(last)) - 1][0] == until
        assert tokens == sum(each for _, each in messages[: int(str(last))])
    second = prompts(server)[1]
    assert f"Previous summary:\n{made[0][-1]}\n\nNew messages since last summary:\n" in second
    assert 'from="user">질문 1번' not in second.partition("New messages since last summary:")[2]


def test_the_summary_is_asked_for_as_the_seed_says_and_ends_with_a_whole_sentence_where_it_is_cut(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    dates = "".join(f"10월 {number}일에 하고 예산은 {number}20만 원입니다. " for number in range(1, 6))
    cut = text(f"{SENTENCE}{dates}{''.join(VARIED[:10])}"[:-5], finish_reason="length")
    server.script(cut, cut, kind="summary")
    chat = chat_with(**ROLLING, chat_summary_model="a-small-model")
    chat.ask(1, 5)
    body = server.bodies("summary")[0]
    assert body["model"] == "a-small-model"
    # The seed's 1,024 tokens bound the summary; a reasoning model's thoughts count as its answer, too.
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 4 * 1_024
    assert prompts(server)[0].startswith("Summarize the following conversation concisely")
    assert 'Conversation:\n<m turn="1" from="user">질문 1번' in prompts(server)[0]
    (record,) = chat.service.folds.records(chat.session_id)
    assert (record.outcome, split_facts(record.summary)[0]) == (
        "shortened",
        f"{SENTENCE}{dates}{''.join(VARIED[:9])}".strip(),
    )
    assert 0 < record.summary_tokens <= 1_024


def test_no_turn_waits_for_a_summary_nor_starts_a_second_one(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**ROLLING)
    asked = server.script(hang(is_silent=True), kind="summary")
    events = [event for number in range(1, 9) for event in chat.say(question(number))]
    server.wait_until(lambda _: asked.is_asked_for)
    assert "FoldWaiting" not in names(events)
    assert names(events).count("TurnFinished") == 8
    assert len(server.bodies("summary")) == 1
    assert rows(chat, "status") == [("IN_PROGRESS",)]


def test_a_summary_slower_than_several_turns_is_still_adopted(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat, answers_are_out = chat_with(**ROLLING), threading.Event()

    def slow(body: Body) -> Reply:
        assert answers_are_out.wait(60)
        return answer_body(body)

    server.script(slow, kind="summary")
    for number in range(1, 7):
        chat.say(question(number))
    started_with = int(str(rows(chat, "to_position")[0][0]))
    answers_are_out.set()
    chat.wait_for_folds()
    chat.say(question(7))
    (record,) = chat.service.folds.records(chat.session_id)
    assert 2 * record.turns[-1] == started_with < 12
    assert f"USER: {question(record.turns[-1])}" not in sent(server)
    assert f"USER: {question(record.turns[-1] + 1)}" in sent(server)


def test_a_failure_is_kept_and_tried_again_after_the_next_answer(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**ROLLING)
    server.script(failure(500), kind="summary")
    while not server.bodies("summary"):
        chat.ask(number := len(server.bodies("chat")) + 1, number)
    assert rows(chat, "status, error_code") == [("FAILED", "provider")]
    assert chat.view.fold_failures == 1
    chat.ask(number + 1, number + 2)
    assert rows(chat, "status")[:2] == [("FAILED",), ("COMPLETED",)]
    assert chat.view.fold_failures == 0


def test_three_failures_of_a_later_version_are_told_and_sentences_picked(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**ROLLING)
    chat.ask(1, 5)
    made = max(int(str(version)) for (version,) in rows(chat, "version"))
    no_key = failure(401, code="invalid_api_key")
    server.respond_with(lambda body: no_key if "<source>" in str(body) else answer_body(body))
    failures = []
    for number in range(6, 12):
        chat.ask(number, number)
        failures.append(chat.view.fold_failures)
        if failures[-1] == 3:
            break
    assert failures[-3:] == [1, 2, 3]
    assert chat.view.fold_error_code == "authentication"
    assert f"USER: {question(number - 1)}" in sent(server)
    chat.ask(number + 1, number + 1)
    (record,) = chat.service.folds.records(chat.session_id)
    assert (record.kind, record.version, record.outcome) == ("rolling", made + 1, "picked")


def test_a_regenerated_answer_takes_its_summary_along(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**ROLLING)
    chat.ask(1, 2)
    server.script(text("옛 답은 파랑입니다. " * 30), text("새 답은 초록입니다. " * 30))
    chat.ask(3, 3)
    chat.regenerate()
    chat.wait_for_folds()
    chat.ask(4, 6)
    assert "초록" in prompts(server)[-1]
    (record,) = chat.service.folds.records(chat.session_id)
    assert not any("파랑" in words for words in (prompts(server)[-1], record.summary, sent(server)))


def test_messages_neither_summarised_nor_sent_are_counted(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(
        context_strategy="rolling",
        app_context_threshold=100_000,
        app_context_recent_messages=4,
        rolling_sends_unsummarised=False,
    )
    counts = []
    for number in range(1, 6):
        chat.say(question(number))
        counts.append(chat.view.unsent_messages)
    assert counts == [0, 0, 2, 4, 6]
    assert f"USER: {question(2)}" not in sent(server)
    assert f"USER: {question(3)}" in sent(server)


def test_the_settings_keep_the_names_of_the_seed_and_switched_off_the_current_message_goes_alone(
    open_chat: OpenChat, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APP_CONTEXT_ENABLED", "false")
    monkeypatch.setenv("APP_CONTEXT_THRESHOLD", "16000")
    monkeypatch.setenv("APP_CONTEXT_RECENT_MESSAGES", "8")
    settings = Settings(_env_file=None)  # type: ignore[call-arg]  # the base class's own argument
    assert not settings.app_context_enabled
    assert settings.limits.app_context_threshold == 16_000
    assert settings.limits.app_context_recent_messages == 8
    chat = open_chat()
    chat.ask(1, 4)
    assert chat.view.strategy == "window"
    assert [sent(server, index) for index in range(4)] == [question(number) for number in range(1, 5)]
    assert server.bodies("summary") == []
