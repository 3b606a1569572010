from __future__ import annotations

import pytest

from graph.error import NotFoundError, TurnfoldError
from graph.event import TurnFinished, TurnStopped
from graph.service.deletion import KEPT_SECONDS
from tests.fake.body import shape
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI
from tests.fake.owners import Owners
from tests.fake.resending import begin


def make_older(chat: Chat, seconds: float) -> None:
    """Has all deleted sessions be deleted that much earlier."""
    is_sqlite = chat.service.settings.chat_database_url is None
    part = f"{round(seconds * 1_000_000)}" if is_sqlite else f"interval '{seconds} seconds'"
    chat.change(f"UPDATE session SET deleted_at = deleted_at - {part}")  # noqa: S608  # a number of our own


def is_stored(chat: Chat, session_id: str) -> bool:
    return bool(chat.rows("SELECT 1 FROM session WHERE session_id = ?", session_id))


def test_deleted_sessions_are_gone_at_once_and_can_be_brought_back(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    kept = Chat(chat.service)
    kept.ask(1, 1)
    sessions, session_id = chat.service.sessions, chat.session_id
    shown = chat.turns, chat.covered
    assert sessions.delete_many([session_id, "no-such-session", session_id]) == (session_id,)
    assert [item.session_id for item in sessions.list()] == [kept.session_id]
    assert sessions.count() == len(sessions.list(also=session_id)) == 1
    assert [item.session_id for item in sessions.list(search="김민수")] == [kept.session_id]
    for use in (
        sessions.get,
        sessions.delete,
        chat.service.turns.transcript,
        sessions.export,
        chat.service.folds.reset,
    ):
        with pytest.raises(NotFoundError):
            use(session_id)
    with pytest.raises(NotFoundError):
        chat.start(question(5))
    assert sessions.delete_many([session_id]) == ()
    assert sessions.undo_delete([session_id, kept.session_id, "no-such-session"]) == (session_id,)
    assert sessions.undo_delete([session_id]) == ()
    assert (chat.turns, chat.covered) == shown
    chat.ask(5, 5)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5]


def test_a_running_turn_is_stopped_and_shown_so_once_its_session_is_back(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("여기까지"), to=question(1))
    chat.start(question(1))
    chat.wait_until_live(lambda live: live.text == "여기까지")
    log = chat.service._access.runner.log(chat.session_id)  # noqa: SLF001  # of a session that is hidden, nothing is told
    chat.service.sessions.delete_many([chat.session_id])
    assert log is not None
    log.wait_for_end(20)
    assert log.is_over
    chat.service.sessions.undo_delete([chat.session_id])
    assert isinstance(chat.events()[-1], TurnStopped)
    assert chat.last_turn.answer_text == "여기까지"
    chat.ask(2, 2)


def test_what_was_deleted_a_minute_ago_is_erased_by_the_next_list(chat: Chat) -> None:
    chat.ask(1, 1)
    sessions = chat.service.sessions
    sessions.delete_many([chat.session_id])
    make_older(chat, KEPT_SECONDS)
    sessions.list()
    assert is_stored(chat, chat.session_id)
    assert sessions.undo_delete([chat.session_id]) == ()
    leaving = chat.service._access.leaving  # noqa: SLF001  # a minute passes for this test alone
    leaving[chat.session_id] -= KEPT_SECONDS
    chat.service.for_owner("second").sessions.list()
    assert not is_stored(chat, chat.session_id)
    assert not leaving


def test_what_can_still_be_brought_back_is_not_erased(chat: Chat, open_chat: OpenChat) -> None:
    chat.ask(1, 1)
    sessions = chat.service.sessions
    sessions.delete_many([chat.session_id])
    make_older(chat, KEPT_SECONDS / 2)
    chat.service._access.leaving[chat.session_id] = 0.0  # noqa: SLF001  # as if this server's clock ran ahead
    sessions.list()
    open_chat().service.sessions.list()
    assert sessions.undo_delete([chat.session_id]) == (chat.session_id,)
    assert isinstance(chat.say(question(2))[-1], TurnFinished)


def test_a_server_that_starts_erases_what_others_left(open_chat: OpenChat) -> None:
    first = open_chat(turnfold_owner="first")
    first.ask(1, 1)
    kept = Chat(first.service)
    kept.ask(1, 1)
    first.service.sessions.delete_many([first.session_id])
    make_older(first, KEPT_SECONDS)
    first.close()
    again = open_chat(turnfold_owner="second")
    assert not is_stored(again, first.session_id)
    assert is_stored(again, kept.session_id)


def test_what_could_still_be_brought_back_at_a_start_is_erased_by_a_later_list(open_chat: OpenChat) -> None:
    first = open_chat()
    first.ask(1, 1)
    first.service.sessions.delete_many([first.session_id])
    first.close()
    again = open_chat()
    assert is_stored(again, first.session_id)
    leaving = again.service._access.leaving  # noqa: SLF001  # a minute passes for this test alone
    make_older(again, KEPT_SECONDS)
    leaving.update({session_id: moment - KEPT_SECONDS for session_id, moment in leaving.items()})
    again.service.sessions.list()
    assert not is_stored(again, first.session_id)


def test_nobody_deletes_or_brings_back_what_is_anothers(owners: Owners) -> None:
    mine, theirs, session_id = owners.chat.service.sessions, owners.other.sessions, owners.chat.session_id
    assert theirs.delete_many([session_id]) == ()
    assert mine.count() == 1
    assert mine.delete_many([session_id]) == (session_id,)
    assert theirs.undo_delete([session_id]) == ()
    assert mine.undo_delete([session_id]) == (session_id,)


def test_a_program_begins_anew_where_its_session_was_deleted(chat: Chat) -> None:
    program = begin(chat)
    program.ask(question(1))
    before = chat.service.sessions.list()
    chat.service.sessions.delete_many(item.session_id for item in before)
    program.ask(question(2))
    after = chat.service.sessions.list()
    assert {item.session_id for item in after}.isdisjoint(item.session_id for item in before)
    assert len(after) == 1


def test_the_example_is_brought_back_by_opening_it(chat: Chat) -> None:
    sessions = chat.service.sessions
    example = sessions.open_example("ko")
    sessions.rename(example, "내 보기")
    sessions.delete_many([example])
    assert sessions.open_example("ko") == example
    assert sessions.get(example).title == "내 보기"
    sessions.delete_many([example])
    make_older(chat, KEPT_SECONDS)
    assert sessions.open_example("ko") == example
    assert sessions.get(example).title != "내 보기"


def test_pinned_sessions_come_first_if_that_is_asked_for(chat: Chat) -> None:
    chats = [chat, Chat(chat.service), Chat(chat.service)]
    for each in chats:
        each.ask(1, 1)
    sessions, ids = chat.service.sessions, [each.session_id for each in chats]
    sessions.pin(ids[0], is_pinned=True)
    assert [item.session_id for item in sessions.list(pinned_first=True)] == [ids[0], ids[2], ids[1]]
    assert [item.is_pinned for item in sessions.list(pinned_first=True, last=2)] == [True, False]
    assert [item.session_id for item in sessions.list()] == [ids[2], ids[1], ids[0]]
    assert sessions.get(ids[0]).is_pinned
    branch = sessions.fork(ids[0], after_turn=1)
    assert not sessions.get(branch).is_pinned
    sessions.pin(ids[0], is_pinned=False)
    assert not any(item.is_pinned for item in sessions.list())
    with pytest.raises(TurnfoldError):
        sessions.pin("no-such-session", is_pinned=True)
