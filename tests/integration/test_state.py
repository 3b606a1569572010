"""What is known of a session between two reads of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

from graph.value.view import TurnOptions
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.oracle import check_state

pytestmark = pytest.mark.both_engines

_WRITES: Final = re.compile(r"\s*(?:INSERT INTO|UPDATE|DELETE FROM) \"?(\w+)")
_OF_SESSIONS: Final = {"session", "turn", "attempt", "message", "pin", "record", "reset", "context_block", "call"}
_IS_RAISED: Final = re.compile(r"SET revision=|DO UPDATE SET revision")
# Texts that are still being written are told in another way; a new session has nothing that anybody knows.
_NOT_TOLD: Final = re.compile(r"UPDATE turn SET partial_text|INSERT INTO session ")


class Watched:
    """Notes the transactions that write to a session and don't raise its revision."""

    def __init__(self) -> None:
        self.silent: list[str] = []
        self._written: dict[int, list[str]] = {}

    def execute(self, connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:  # noqa: ANN401
        self._written.setdefault(id(connection.connection.dbapi_connection), []).append(" ".join(statement.split()))

    def commit(self, connection: Connection) -> None:
        statements = self._written.pop(id(connection.connection.dbapi_connection), [])
        changes = [
            statement
            for statement in statements
            if (found := _WRITES.match(statement)) and found[1] in _OF_SESSIONS and not _NOT_TOLD.match(statement)
        ]
        if changes and not any(_IS_RAISED.search(statement) for statement in statements):
            self.silent += changes

    def rollback(self, connection: Connection) -> None:
        self._written.pop(id(connection.connection.dbapi_connection), None)


@pytest.fixture
def watched() -> Iterator[Watched]:
    watched = Watched()
    listeners = (("before_cursor_execute", watched.execute), ("commit", watched.commit), ("rollback", watched.rollback))
    for name, listener in listeners:
        event.listen(Engine, name, listener)
    yield watched
    for name, listener in listeners:
        event.remove(Engine, name, listener)


@pytest.fixture
def chat(open_chat: OpenChat) -> Chat:
    return open_chat()


def test_every_change_of_a_session_raises_its_revision_and_is_known(chat: Chat, watched: Watched) -> None:
    chat.ask(1, 7)
    check_state(chat)
    service, session_id = chat.service, chat.session_id
    sessions, folds, turns = service.sessions, service.folds, service.turns
    record = folds.records(session_id)[0]
    pinned = chat.turns[0].answer_message_id
    steps = (
        lambda: sessions.rename(session_id, "another title"),
        lambda: sessions.configure(session_id, compression_rate=0.5, thinking="low"),
        lambda: folds.pin(session_id, pinned),
        lambda: folds.edit(session_id, record.id, "서버 이전은 10월 1일이고 담당자는 김민수입니다."),
        lambda: chat.say(question(8), options=TurnOptions(compression_rate=0.2)),
        chat.regenerate,
        lambda: folds.unpin(session_id, pinned),
        lambda: sessions.edit_answer(session_id, 8, "다른 답변입니다."),
        lambda: sessions.choose_attempt(session_id, 8, 1),
        lambda: turns.fork(session_id, after_turn=4),
        lambda: folds.reset(session_id),
        lambda: folds.undo_reset(session_id),
        lambda: chat.ask(9, 10),
        lambda: turns.stop(session_id),
    )
    for step in steps:
        step()
        chat.wait_for_folds()
        check_state(chat)
        assert watched.silent == []


def test_another_server_s_change_is_known_by_the_next_read(open_chat: OpenChat) -> None:
    here = open_chat()
    here.ask(1, 3)
    there = open_chat(here.session_id)
    for number in range(4, 10):
        chat, other = (there, here) if number % 2 else (here, there)
        chat.ask(number, number)
        for each in (chat, other):
            check_state(each)
        assert other.view.turn_count == number
