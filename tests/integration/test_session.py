from __future__ import annotations

import threading
from pathlib import Path

import pytest

from graph.error import BusyError, InputError, NotFoundError
from graph.event import TurnFinished, TurnStopped
from graph.service import ChatService
from graph.view import TurnOptions
from tests.fake.body import raw_turns
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI


def test_the_same_message_sent_twice_is_one_turn(chat: Chat, server: FakeOpenAI) -> None:
    service, session_id = chat.service, chat.session_id
    assert service.turns.send(session_id, question(1), message_id="user-1") == 1
    assert service.turns.send(session_id, question(1), message_id="user-1") == 1
    chat.events()
    assert service.turns.send(session_id, question(1), message_id="user-1") == 1
    assert len(chat.turns) == 1
    chat.ask(2, 2)
    assert service.turns.send(session_id, question(1), message_id="user-1") == 1
    assert raw_turns(server.bodies("chat")[-1]) == [1, 2]
    assert len(server.bodies("chat")) == 2


def test_one_message_from_many_threads_at_once_is_one_turn(chat: Chat, server: FakeOpenAI) -> None:
    numbers: list[int] = []
    together = threading.Barrier(8)

    def send() -> None:
        together.wait()
        numbers.append(chat.service.turns.send(chat.session_id, question(1), message_id="user-1"))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers == [1] * 8
    chat.events()
    assert len(server.bodies("chat")) == 1


def test_a_busy_session_refuses_unless_told_to_wait(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("여기까지"))
    chat.start(question(1))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    with pytest.raises(BusyError):
        chat.start(question(2))
    with pytest.raises(BusyError):
        chat.service.turns.regenerate(chat.session_id)
    numbers: list[int] = []
    waiting = threading.Thread(
        target=lambda: numbers.append(chat.service.turns.send(chat.session_id, question(2), wait_seconds=20))
    )
    waiting.start()
    chat.service.turns.stop(chat.session_id)
    waiting.join()
    assert numbers == [2]
    assert isinstance(chat.events()[-1], TurnFinished)
    assert [turn.status for turn in chat.turns] == ["stopped", "finished"]


def test_sessions_are_listed_newest_first_and_found_by_title(service: ChatService) -> None:
    first, second = Chat(service), Chat(service)
    first.say("파이썬 3.13의 새 기능을 알려 주세요")
    second.say("100% 국산 콩 두부 요리를 알려 주세요")
    assert [item.session_id for item in service.sessions.list()] == [second.session_id, first.session_id]
    assert [item.title for item in service.sessions.list()] == [
        "100% 국산 콩 두부 요리를 알려 주세요",
        "파이썬 3.13의 새 기능을 알려 주세요",
    ]
    assert [item.session_id for item in service.sessions.list(search="파이썬")] == [first.session_id]
    assert [item.session_id for item in service.sessions.list(search="%")] == [second.session_id]
    first.say("하나 더 물을게요, 성능은 어떤가요?")
    assert [item.turn_count for item in service.sessions.list()] == [2, 1]
    assert not any(item.is_running for item in service.sessions.list())


def test_a_session_can_be_renamed(chat: Chat) -> None:
    chat.ask(1, 1)
    chat.service.sessions.rename(chat.session_id, "  서버 이전 계획  ")
    assert chat.view.title == "서버 이전 계획"
    for nothing in (" \n ", "\u200b\u3164"):
        with pytest.raises(InputError):
            chat.service.sessions.rename(chat.session_id, nothing)
    with pytest.raises(NotFoundError):
        chat.service.sessions.rename("no-such-session", "이름")


def test_a_deleted_session_leaves_nothing_behind(service: ChatService) -> None:
    gone, kept = Chat(service), Chat(service)
    gone.ask(1, 4)
    kept.ask(1, 1)
    service.sessions.delete(gone.session_id)
    for table in ("session", "turn", "message", "record", "context_reset", "model_call", "lease"):
        assert kept.rows(f"SELECT count(*) FROM {table} WHERE session_id = ?", gone.session_id) == [(0,)]  # noqa: S608  # names of our own
    assert [item.session_id for item in service.sessions.list()] == [kept.session_id]
    with pytest.raises(NotFoundError):
        service.turns.transcript(gone.session_id)
    kept.ask(2, 2)


def test_a_running_session_is_ended_and_deleted(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("여기까지"))
    chat.start(question(1))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    heard = chat.service.turns.follow(chat.session_id, timeout_seconds=30)
    chat.service.sessions.delete(chat.session_id)
    assert isinstance(list(heard)[-1], TurnStopped)
    server.wait_until(lambda fake: fake.open_count == 0)
    assert chat.rows("SELECT count(*) FROM message") == [(0,)]
    assert chat.service.sessions.list() == ()


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("", None),
        (" \n\t ", None),
        ("\u200b", None),
        ("가" * 1_001, None),
        ("안녕하세요", TurnOptions(compression_rate=0.6)),
        ("안녕하세요", TurnOptions(compression_rate=0.0)),
        ("안녕하세요", TurnOptions(strategy="magic")),
    ],
)
def test_what_cannot_be_taken_leaves_no_trace(open_chat: OpenChat, words: str, options: TurnOptions | None) -> None:
    chat = open_chat(message_chars=1_000)
    with pytest.raises(InputError):
        chat.start(words, options=options)
    assert chat.rows("SELECT count(*) FROM session") == [(0,)]
    assert chat.service.sessions.list() == ()


def test_another_owner_sees_and_touches_nothing(chat: Chat, open_chat: OpenChat) -> None:
    chat.ask(1, 1)
    other = open_chat(turnfold_owner="somebody-else").service
    assert other.sessions.list() == ()
    for action in (other.turns.transcript, other.sessions.get, other.sessions.delete, other.turns.retry):
        with pytest.raises(NotFoundError):
            action(chat.session_id)
    with pytest.raises(NotFoundError):
        other.turns.send(chat.session_id, question(2))
    assert len(chat.turns) == 1


def test_settings_of_a_session_hold_over_a_restart(open_chat: OpenChat) -> None:
    with open_chat() as chat:
        chat.ask(1, 1)
        chat.service.sessions.configure(chat.session_id, compression_rate=0.45, model="scripted-model")
    with open_chat(chat.session_id) as chat:
        view = chat.view
        assert (view.compression_rate, view.model, view.turn_count) == (0.45, "scripted-model", 1)


def test_the_transcript_shows_the_newest_and_counts_the_rest(chat: Chat) -> None:
    chat.ask(1, 5)
    shown = chat.service.turns.transcript(chat.session_id, last=2)
    assert [turn.number for turn in shown.turns] == [4, 5]
    assert shown.earlier_count == 3
    assert [turn.is_last for turn in shown.turns] == [False, True]


def test_the_files_are_the_owners_alone(chat: Chat) -> None:
    chat.ask(1, 1)
    files = [file for file in Path(chat.service.settings.turnfold_data_dir).iterdir() if ".db" in file.name]
    assert {file.stat().st_mode & 0o077 for file in files} == {0}
