from __future__ import annotations

import pytest

from graph.settings import Settings
from tests.fake.chat import question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rolling import ROLLING, prompts, row, sent
from tests.fake.sent import last_kinds, last_manifest


def test_the_settings_keep_the_names_of_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_CONTEXT_ENABLED", "false")
    monkeypatch.setenv("APP_CONTEXT_THRESHOLD", "16000")
    monkeypatch.setenv("APP_CONTEXT_RECENT_MESSAGES", "8")
    settings = Settings(_env_file=None)  # type: ignore[call-arg]  # the base class's own argument
    assert not settings.app_context_enabled
    assert settings.limits.app_context_threshold == 16_000
    assert settings.limits.app_context_recent_messages == 8


def test_messages_neither_summarised_nor_sent_are_counted(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(
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


def test_by_default_every_message_that_no_summary_covers_is_sent(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(context_strategy="rolling")
    chat.ask(1, 5)
    assert question(1) in sent(server)
    chat.ask(6, 8)
    assert chat.view.unsent_messages == 0
    assert all(f"USER: {question(number)}" in sent(server) for number in range(1, 8))


def test_right_after_a_version_the_newest_exchange_is_raw(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ROLLING)
    begun: set[str] = set()
    for number in range(1, 10):
        chat.ask(number, number)
        new = [r for r in chat.service.folds.records(chat.session_id) if r.id not in begun]
        begun |= {record.id for record in new}
        if number > 1:
            before = chat.turns[number - 2]
            assert f"USER: {question(number - 1)}\nASSISTANT: {before.answer_text}\n" in sent(server)
        for record in new:
            assert record.turns[-1] < number - 1
            assert question(record.turns[-1] + 1) in sent(server)
    assert len(begun) >= 3


def test_the_seeds_setting_summarises_the_newest_exchange_too(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ROLLING, rolling_sends_unsummarised=False)
    chat.ask(1, 4)
    (record,) = chat.service.folds.records(chat.session_id)
    assert record.turns == (1, 2, 3)
    assert "\nUSER: " not in sent(server)


def test_a_summary_left_in_progress_by_a_dead_process_is_made_anew(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ROLLING)
    chat.ask(1, 3)
    assert row(chat, "status") == [("COMPLETED",)]
    chat.change("UPDATE record SET status = 'IN_PROGRESS', summary = '', expires_at = 0")
    chat.close()
    chat = open_chat(chat.session_id, **ROLLING)
    chat.ask(4, 5)
    assert row(chat, "status, error_code") == [("FAILED", "expired"), ("COMPLETED", "")]
    assert len(chat.service.folds.records(chat.session_id)) == 1
    assert len(server.bodies("summary")) == 2


def test_summaries_go_with_their_session(open_chat: OpenChat) -> None:
    chat = open_chat(**ROLLING)
    chat.ask(1, 5)
    assert row(chat, "id")
    chat.service.sessions.delete(chat.session_id)
    assert chat.rows("SELECT count(*) FROM record") == [(0,)]


def test_a_regenerated_answer_takes_its_summary_along(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ROLLING)
    chat.ask(1, 2)
    old, new = "옛 답은 파랑입니다. " * 30, "새 답은 초록입니다. " * 30
    server.script(text(old), text(new))
    chat.ask(3, 3)
    chat.regenerate()
    chat.wait_for_folds()
    chat.ask(4, 6)
    assert "파랑" not in prompts(server)[-1]
    assert "초록" in prompts(server)[-1]
    (record,) = chat.service.folds.records(chat.session_id)
    assert "파랑" not in record.summary
    assert "파랑" not in sent(server)


def test_the_manifest_lists_what_was_sent(open_chat: OpenChat) -> None:
    chat = open_chat(**ROLLING)
    chat.ask(1, 6)
    manifest = last_manifest(chat)
    assert manifest[0][:2] == ("system", "chat-ko")
    assert "record" in last_kinds(chat)
