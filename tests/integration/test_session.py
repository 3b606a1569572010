"""Sessions: begun once, listed, searched, renamed, pinned, deleted and brought back."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import zip_longest
from pathlib import Path

import pytest

from graph.service import ChatService
from graph.service.deletion import RETENTION_SECONDS, SessionEraser
from graph.value.error import BusyError, InputError, NotFoundError, ServerBusyError, TurnfoldError
from graph.value.event import TurnFinished, TurnStopped
from graph.value.view import Outline, TurnOptions
from tests.fake.body import raw_turns, shape
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import close_early, hang, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.resending import begin

COUNT = 500


@pytest.fixture
def alone(module_service: ChatService, server: FakeOpenAI) -> Iterator[Chat]:
    """A chat of an owner who has no other."""
    chat = Chat(module_service.for_owner(f"owner-{uuid.uuid4().hex[:8]}"))
    yield chat
    server.end_hanging()


def ids(chat: Chat, **asked: object) -> list[str]:
    return [item.session_id for item in chat.service.sessions.list(**asked)]  # type: ignore[arg-type]  # as each test asks


def test_same_message_sent_again_or_by_many_at_once_is_one_turn(chat: Chat, server: FakeOpenAI) -> None:
    numbers: list[int] = []
    together = threading.Barrier(8)

    def send() -> None:
        numbers.append(chat.service.turns.send(chat.session_id, question(1), message_id="user-1"))

    def send_with_others() -> None:
        together.wait()
        send()

    threads = [threading.Thread(target=send_with_others) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chat.events()
    send()
    chat.ask(2, 2)
    send()
    assert numbers == [1] * 10
    assert raw_turns(server.bodies("chat")[-1]) == [1, 2]
    assert (len(chat.turns), len(server.bodies("chat"))) == (2, 2)


def test_busy_session_refuses_and_changes_nothing_unless_told_to_wait(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("여기까지"))
    chat.start(question(1))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    before = chat.view
    with pytest.raises(BusyError):
        chat.start(question(2), options=TurnOptions(compression_rate=0.5, strategy="window", model="another"))
    with pytest.raises(BusyError):
        chat.service.turns.regenerate(chat.session_id)
    assert chat.view == before
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


def test_the_next_message_has_what_there_is_of_an_unfinished_answer(chat: Chat, server: FakeOpenAI) -> None:
    parts = ("첫 문장입니다. 둘째 문장은 여기서", "끊긴 연결까지 온 답의")
    server.script(hang(parts[0]), close_early(parts[1]), text("이어진 답"))
    chat.start(question(1))
    partial = "SELECT partial_text FROM turn WHERE session_id = ?"
    chat.wait_until(lambda: chat.rows(partial, chat.session_id) == [(parts[0],)])
    chat.service.turns.stop(chat.session_id)
    assert isinstance(chat.events()[-1], TurnStopped)
    chat.say("계속")
    chat.say("계속")
    said = [(each["role"], each["content"]) for each in server.bodies("chat")[-1]["messages"][1:]]
    answers = [("assistant", part) for part in parts]
    asked = [("user", question(1)), *[("user", "계속")] * 2]
    assert said == [each for pair in zip_longest(asked, answers) for each in pair if each]


def test_session_that_is_compacted_by_hand_is_busy(chat: Chat) -> None:
    access = chat.service._engine.access  # noqa: SLF001  # below the service's own interface
    access.compacting[chat.session_id] = threading.Event()
    with pytest.raises(BusyError), access.between_turns(chat.session_id):
        pass


def test_refused_first_message_leaves_no_session(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(message_chars=1_000, concurrent_turns=1)
    good = "안녕하세요, 잘 지내시죠? 일정을 정해요"
    for words in ("", " \n\t ", "\u200b", "가" * 1_001):
        with pytest.raises(InputError):
            chat.start(words)
    for options in (TurnOptions(compression_rate=0.6), TurnOptions(compression_rate=0), TurnOptions(strategy="magic")):
        with pytest.raises(InputError):
            chat.start(good, options=options)
    assert chat.rows("SELECT count(*) FROM session") == [(0,)]
    server.script(hang(is_silent=True))
    chat.start(good)
    server.wait_until(lambda fake: fake.hanging_count == 1)
    with pytest.raises(ServerBusyError):
        Chat(chat.service).start(good)
    chat.service.turns.stop(chat.session_id)
    assert isinstance(chat.events()[-1], TurnStopped)
    chat.change("CREATE TRIGGER full_disk BEFORE INSERT ON message BEGIN SELECT RAISE(ABORT, 'refused'); END")
    with pytest.raises(Exception, match="database"):
        Chat(chat.service).start(good)
    assert chat.rows("SELECT session_id FROM session") == [(chat.session_id,)]
    assert ids(chat) == [chat.session_id]


def test_settings_of_a_session_hold_over_a_restart_and_files_are_the_owners_alone(open_chat: OpenChat) -> None:
    with open_chat() as chat:
        chat.ask(1, 1)
        chat.service.sessions.configure(chat.session_id, compression_rate=0.45, model="scripted-model")
        files = [file for file in Path(chat.service.settings.turnfold_data_dir).iterdir() if ".db" in file.name]
        assert {file.stat().st_mode & 0o077 for file in files} == {0}
    with open_chat(chat.session_id) as chat:
        view = chat.view
        assert (view.compression_rate, view.model, view.turn_count) == (0.45, "scripted-model", 1)


def test_transcript_shows_the_newest_and_a_name_says_something(chat: Chat) -> None:
    chat.ask(1, 3)
    shown = chat.service.turns.transcript(chat.session_id, last=2)
    assert [(turn.number, turn.is_last) for turn in shown.turns] == [(2, False), (3, True)]
    assert shown.earlier_count == 1
    rename = chat.service.sessions.rename
    rename(chat.session_id, "  서버 이전 계획  ")
    assert chat.view.title == "서버 이전 계획"
    for nothing in (" \n ", "\u200b\u3164"):
        with pytest.raises(InputError):
            rename(chat.session_id, nothing)
    with pytest.raises(NotFoundError):
        rename("no-such-session", "이름")


def test_sessions_are_listed_newest_first_or_pinned_first_and_found_by_title(alone: Chat) -> None:
    sessions = alone.service.sessions
    second = Chat(alone.service)
    alone.say("파이썬 3.13의 새 기능을 알려 주세요")
    second.say("100% 국산 콩 두부 요리를 알려 주세요")
    assert ids(alone) == [second.session_id, alone.session_id]
    assert [item.title for item in sessions.list()] == [
        "100% 국산 콩 두부 요리를 알려 주세요",
        "파이썬 3.13의 새 기능을 알려 주세요",
    ]
    assert ids(alone, search="파이썬") == [alone.session_id]
    assert ids(alone, search="%") == [second.session_id]
    for long in ("가" * 60_000, "x" * 200_000, "% _ " * 50_000, "은는 " * 60_000, "😀" * 60_000):
        assert ids(alone, search=long) == []
        assert alone.service.sessions.count(search=long) == 0
    assert ids(alone, search="파이썬 " * 20_000) == [alone.session_id]
    alone.say("하나 더 물을게요, 성능은 어떤가요?")
    assert [item.turn_count for item in sessions.list()] == [2, 1]
    assert not any(item.is_running for item in sessions.list())
    sessions.pin(second.session_id, is_pinned=True)
    assert ids(alone, pinned_first=True) == [second.session_id, alone.session_id]
    assert [item.is_pinned for item in sessions.list(pinned_first=True, last=2)] == [True, False]
    assert ids(alone) == [alone.session_id, second.session_id]
    assert sessions.get(second.session_id).is_pinned
    assert not sessions.get(alone.service.turns.fork(second.session_id, after_turn=1)).is_pinned
    sessions.pin(second.session_id, is_pinned=False)
    assert not any(item.is_pinned for item in sessions.list())
    with pytest.raises(TurnfoldError):
        sessions.pin("no-such-session", is_pinned=True)


def test_each_of_many_sessions_is_listed_once_whatever_moves_between_two_pages(open_chat: OpenChat) -> None:
    chat = open_chat()
    sessions, first_id = chat.service.sessions, chat.session_id
    chat.ask(1, 1)
    chat.copy(COUNT - 1)
    number = f"CAST(substr(session_id, {len(first_id) + 2}) AS INTEGER)"
    chat.change(
        f"UPDATE session SET title = '대화 ' || {number} || '번', title_folded = '대화 ' || {number} || '번', "  # noqa: S608  # names of our own
        f"updated_at = updated_at - {number} * 3600000000"
    )
    everything = ids(chat)
    assert everything == [first_id, *(f"{first_id}-{number}" for number in range(1, COUNT))]
    assert sessions.count() == COUNT
    assert ids(chat, last=30) == everything[:30]
    assert ids(chat, search="대화 499번") == [everything[499]]
    assert (sessions.count(search="대화 4"), len(sessions.list(search="대화 4", last=10))) == (111, 10)
    first = sessions.list(last=30)
    chat.change(f"UPDATE session SET updated_at = updated_at * 2 WHERE {number} IN (29, 40)")  # noqa: S608  # see above
    second = ids(chat, last=30, before=(first[-1].updated_at, first[-1].session_id))
    assert second == [everything[number] for number in range(30, 61) if number != 40]
    chat.change("UPDATE session SET updated_at = (SELECT max(updated_at) FROM session) WHERE session_id LIKE '%7'")
    for search in ("", "대화 4"):
        pages, before = [], None
        while page := sessions.list(search=search, last=30, before=before):
            pages += [item.session_id for item in page]
            before = page[-1].updated_at, page[-1].session_id
        assert pages == ids(chat, search=search)
    # Sessions whose first message was refused hide no chat.
    chat.change(f"UPDATE session SET turn_count = 0 WHERE {number} > 0")  # noqa: S608  # see above
    assert ids(chat) == ids(chat, last=1) == [first_id]
    assert sessions.count() == 1


def test_chat_is_found_by_what_was_said_in_it(alone: Chat, server: FakeOpenAI) -> None:
    sessions = alone.service.sessions
    server.script(text("야간버스는 서면에서 탑니다. 예약 번호는 KX-7781입니다."))
    alone.say("부산 여행 표를 부탁해요.")
    (item,) = sessions.list(search="예약 번호가")
    assert (item.session_id, item.found_turn) == (alone.session_id, 1)
    assert item.found_text == "예약 번호는 KX-7781입니다."
    assert sessions.count(search="예약 번호가") == 1
    (titled,) = sessions.list(search="부산 여행")
    assert (titled.found_turn, titled.found_text) == (None, "")
    assert (ids(alone, search="낙하산"), sessions.count(search="낙하산")) == ([], 0)
    assert sessions.list()[0].found_turn is None
    alone.say(f"{'아주 길게 이어지는 이야기 끝에 ' * 8}호텔 이름은 해오름장이라고 적어 둡니다")
    (item,) = sessions.list(search="해오름장")
    assert "해오름장" in item.found_text
    assert len(item.found_text) <= 50


def test_all_turns_of_a_chat_with_the_words_are_counted_and_found_in_order(alone: Chat, server: FakeOpenAI) -> None:
    sessions = alone.service.sessions
    server.script(text("The budgets were cut."), text("숙소는 서면입니다."), text("It's a budget of 30."), text("네."))
    for asked in ("예산은 120만 원이야.", "숙소는 어디지?", "예산의 절반은?\n또 예산!", "Is budgeting hard?"):
        alone.say(asked)
    (item,) = sessions.list(search="budget")
    assert (item.found_count, item.found_turn, item.found_text) == (3, 4, "Is budgeting hard?")
    # The title has it, but so do two turns.
    (item,) = sessions.list(search="예산이")
    assert (item.found_count, item.found_turn) == (2, 3)
    identifier = alone.session_id
    found = sessions.outline(identifier, search="budget")
    lines = [(1, "The budgets were cut."), (3, "It's a budget of 30."), (4, "Is budgeting hard?")]
    assert [(place.turn, place.text) for place in found.places] == lines
    assert found.marks == ("budget", "budgeting", "budgets")
    assert [(place.turn, place.hits) for place in sessions.outline(identifier, search="예산은").places] == [
        (1, 1),
        (3, 2),
    ]
    assert sessions.outline(identifier, search="예산은 숙소") == Outline(())
    questions = sessions.outline(identifier).places
    assert [place.text for place in questions] == [
        "예산은 120만 원이야.",
        "숙소는 어디지?",
        "예산의 절반은?",
        "Is budgeting hard?",
    ]
    assert [place.started_at for place in questions] == [turn.started_at for turn in alone.turns]
    stranger = alone.service.for_owner("stranger").sessions
    with pytest.raises(NotFoundError):
        stranger.outline(identifier, search="예산")


def test_deleted_session_leaves_nothing_behind_also_if_it_ran(alone: Chat, server: FakeOpenAI) -> None:
    retained = Chat(alone.service)
    retained.ask(1, 1)
    alone.ask(1, 4)
    server.script(hang("여기까지"))
    alone.start(question(5))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    heard = alone.service.turns.follow(alone.session_id, timeout_seconds=30)
    alone.service.sessions.delete(alone.session_id)
    assert isinstance(list(heard)[-1], TurnStopped)
    server.wait_until(lambda fake: fake.open_count == 0)
    for table in ("session", "turn", "message", "record", "context_reset", "model_call", "lease"):
        assert retained.rows(f"SELECT count(*) FROM {table} WHERE session_id = ?", alone.session_id) == [(0,)]  # noqa: S608  # names of our own
    assert ids(retained) == [retained.session_id]
    with pytest.raises(NotFoundError):
        alone.service.turns.transcript(alone.session_id)
    retained.ask(2, 2)


def make_older(chat: Chat, seconds: float) -> None:
    """Has all deleted sessions be deleted that much earlier."""
    chat.change(f"UPDATE session SET deleted_at = deleted_at - {round(seconds * 1_000_000)}")  # noqa: S608  # a number of our own


def is_stored(chat: Chat, session_id: str) -> bool:
    return bool(chat.rows("SELECT 1 FROM session WHERE session_id = ?", session_id))


def is_erased(chat: Chat, session_id: str) -> bool:
    return not is_stored(chat, session_id)


def test_deleted_sessions_are_gone_at_once_and_can_be_brought_back(alone: Chat, server: FakeOpenAI) -> None:
    alone.ask(1, 4)
    retained = Chat(alone.service)
    retained.ask(1, 1)
    sessions, session_id = alone.service.sessions, alone.session_id
    shown = alone.turns, alone.covered
    assert sessions.delete_many([session_id, "no-such-session", session_id]) == (session_id,)
    assert ids(alone) == ids(alone, also=session_id) == ids(alone, search="김민수") == [retained.session_id]
    assert sessions.count() == 1
    for use in (
        sessions.get,
        sessions.delete,
        alone.service.turns.transcript,
        sessions.export,
        alone.service.folds.reset,
    ):
        with pytest.raises(NotFoundError):
            use(session_id)
    with pytest.raises(NotFoundError):
        alone.start(question(5))
    assert sessions.delete_many([session_id]) == ()
    assert list(sessions.just_deleted()) == [session_id]
    assert sessions.undo_delete([session_id, retained.session_id, "no-such-session"]) == (session_id,)
    assert sessions.undo_delete([session_id]) == ()
    assert sessions.just_deleted() == {}
    assert (alone.turns, alone.covered) == shown
    alone.ask(5, 5)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5]


def test_running_turn_is_stopped_and_shown_so_once_its_deleted_session_is_back(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("여기까지"), to=question(1))
    chat.start(question(1))
    chat.wait_until_live(lambda live: live.text == "여기까지")
    log = chat.service._engine.access.runner.log(chat.session_id)  # noqa: SLF001  # of a session that is hidden, nothing is told
    chat.service.sessions.delete_many([chat.session_id])
    assert log is not None
    log.wait_for_end(20)
    assert log.is_over
    chat.service.sessions.undo_delete([chat.session_id])
    assert isinstance(chat.events()[-1], TurnStopped)
    assert chat.last_turn.answer_text == "여기까지"
    chat.ask(2, 2)


def test_what_was_deleted_is_kept_for_a_minute_and_no_list_erases_it(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.ask(1, 1)
    sessions, session_id = chat.service.sessions, chat.session_id
    eraser = chat.service._engine.eraser  # noqa: SLF001  # a minute passes for this test alone
    sessions.delete_many([session_id])
    make_older(chat, RETENTION_SECONDS / 2)
    eraser.leaving[session_id] = 0.0  # as if this server's clock ran ahead
    eraser.erase_expired()
    open_chat().service.sessions.list()
    assert sessions.undo_delete([session_id]) == (session_id,)
    assert isinstance(chat.say(question(2))[-1], TurnFinished)
    sessions.delete_many([session_id])
    make_older(chat, RETENTION_SECONDS)
    assert sessions.undo_delete([session_id]) == ()
    eraser.leaving[session_id] -= RETENTION_SECONDS
    sessions.list()
    assert is_stored(chat, session_id)
    eraser.erase_expired()
    assert not is_stored(chat, session_id)
    assert not eraser.leaving


def test_what_was_deleted_is_erased_in_the_background_also_of_other_owners(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.ask(1, 1)
    engine = chat.service._engine  # noqa: SLF001  # a minute takes a tenth of a second for this test alone
    eraser = SessionEraser(
        stores=engine.stores.chat,
        runner=engine.access.runner,
        fold_worker=engine.fold_worker,
        contexts=engine.contexts,
        project_turns=None,
        retention_seconds=0.1,
    )
    with closing(eraser):
        for _ in range(2):  # what waits is looked at again
            other = Chat(chat.service.for_owner("second"))
            other.ask(1, 1)
            other.service.sessions.delete_many([other.session_id])
            eraser.erase_later(other.session_id)
            other.wait_until(partial(is_erased, chat, other.session_id))
        assert is_stored(chat, chat.session_id)
        chat.service.sessions.delete_many([chat.session_id])


def test_what_is_busy_when_it_is_to_be_erased_is_erased_the_next_time(
    open_chat: OpenChat, caplog: pytest.LogCaptureFixture
) -> None:
    chat = open_chat()
    chat.ask(1, 1)
    later = Chat(chat.service)
    later.ask(1, 1)
    eraser, leases = chat.service._engine.eraser, chat.service._engine.stores.chat.leases  # noqa: SLF001  # a minute passes, and another worker holds the session
    lease = leases.acquire(chat.session_id)
    chat.service.sessions.delete_many([chat.session_id])
    make_older(chat, RETENTION_SECONDS)
    eraser.leaving[chat.session_id] -= RETENTION_SECONDS
    eraser.erase_expired()
    assert is_stored(chat, chat.session_id)
    assert "a deleted session was not erased: busy" in caplog.messages
    leases.release(lease)
    chat.service.sessions.delete_many([later.session_id])  # not due yet
    eraser.leaving[chat.session_id] -= RETENTION_SECONDS
    eraser.erase_expired()
    assert [is_stored(chat, each.session_id) for each in (chat, later)] == [False, True]
    make_older(chat, RETENTION_SECONDS)
    eraser.leaving[later.session_id] -= RETENTION_SECONDS
    eraser.erase_expired()
    assert not is_stored(chat, later.session_id)


def test_server_that_starts_erases_what_others_left(open_chat: OpenChat) -> None:
    first = open_chat(turnfold_owner="first")
    chats = [first, Chat(first.service), Chat(first.service)]
    for chat in chats:
        chat.ask(1, 1)
    old, young, retained = (chat.session_id for chat in chats)
    first.service.sessions.delete_many([old])
    make_older(first, RETENTION_SECONDS)
    first.service.sessions.delete_many([young])
    first.close()
    again = open_chat(turnfold_owner="second")
    assert [is_stored(again, each) for each in (old, young, retained)] == [False, True, True]
    eraser = again.service._engine.eraser  # noqa: SLF001  # a minute passes for this test alone
    make_older(again, RETENTION_SECONDS)
    eraser.leaving.update({session_id: moment - RETENTION_SECONDS for session_id, moment in eraser.leaving.items()})
    eraser.erase_expired()
    assert [is_stored(again, each) for each in (young, retained)] == [False, True]


def test_program_begins_anew_where_its_session_was_deleted(alone: Chat) -> None:
    program = begin(alone)
    program.ask(question(1))
    before = ids(alone)
    alone.service.sessions.delete_many(before)
    program.ask(question(2))
    (after,) = ids(alone)
    assert after not in before


@pytest.mark.parametrize("act", ["stop", "delete and undo"])
def test_a_turn_whose_server_died_was_stopped_by_nobody(alone: Chat, act: str) -> None:
    alone.say(question(1))
    alone.change(f"UPDATE turn SET status = 'running' WHERE session_id = '{alone.session_id}'")  # noqa: S608  # a name of our own
    sessions = alone.service.sessions
    if act == "stop":
        alone.service.turns.stop(alone.session_id)
    else:
        assert sessions.undo_delete(sessions.delete_many([alone.session_id])) == (alone.session_id,)
    alone.change(f"DELETE FROM message WHERE role = 'ai' AND session_id = '{alone.session_id}'")  # noqa: S608  # a name of our own
    alone.say(question(2))
    assert [turn.status for turn in alone.turns] == ["failed", "finished"]


def test_any_name_of_a_message_makes_an_id(alone: Chat) -> None:
    names = ("m-1", "안녕", "\ud800", "")
    made = [alone.service.sessions.new_id(name) for name in names]
    assert made == [alone.service.sessions.new_id(name) for name in names]
    assert len(set(made)) == len(names)
