from __future__ import annotations

import json
import re
import threading
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event
from sqlalchemy.pool import Pool

from graph.store.schema import METADATA
from graph.store.transfer import export_lines
from graph.value.event import TurnFailed
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.resending import begin
from tests.fake.titled import wait_for_tries

# What isn't of one session, and so isn't distributed with the sessions.
OF_NO_SESSION = {
    "aside_call": "what a request costs that belongs to no session",
    "api_token": "of an owner",
    "own_instruction": "of an owner",
    "preset": "of an owner",
    "owner_use": "of an owner",
    "rule_agreement": "of an owner and a folder of the server",
    "server_key": "of all servers",
    "sign_in": "of an owner",
    "withdrawn_owner": "of an owner",
}
# Of SQLite alone: its full-text index has rows with integer keys.
OF_SQLITE = {"search_session"}
# Which statements on the tables of sessions name none, and why; each goes to all of them.
OF_ALL_SESSIONS = {
    r"FROM session LEFT OUTER JOIN turn .* WHERE session\.owner = \? AND session\.turn_count > \?": "an owner's list",
    r"SELECT count\(\*\) AS count_1 FROM session WHERE session\.owner = \?": "how long an owner's list is",
    r"FROM \(SELECT .* FROM message_search .* message\.owner = \?": "the search over an owner's sessions",
    r"FROM anchor JOIN turn .* WHERE anchor\.scope = \? AND .* AND anchor\.\w+ IN": "a program's session is recognised",
    r"FROM session JOIN model_call .* AND session\.owner = \? AND session\.deleted_at": "what an owner's calls cost",
    r"FROM session WHERE session\.owner = \? AND (.* AND )?session\.forked_from IN": "the branches of a session",
    r"^UPDATE session SET forked_from=.* WHERE session\.forked_from = \? AND session\.owner": "an erased branch",
    r"^SELECT session\.session_id FROM session WHERE session\.deleted_at IS NULL ORDER BY": "an export by the operator",
    r"^SELECT session\.session_id, session\.owner FROM session WHERE session\.deleted_at <=": "what is to be erased",
    r"^SELECT session\.session_id FROM session LIMIT": "the health check",
}
PARAMETER = re.compile(r"%\(\w+\)s(::[A-Z]\w+( WITH TIME ZONE)?)?")  # as psycopg writes one
SUBQUERY = re.compile(r"\(SELECT [^()]*(\([^()]*\)[^()]*)*\)")
NAMES_SESSION = re.compile(r"session_id(, [\w.]+)?\)? (= \?|IN \()|INTO \w+ \([^)]*session_id")


OF_SESSIONS = [table for table in METADATA.sorted_tables if table.name not in {*OF_NO_SESSION, *OF_SQLITE}]


def test_every_table_is_of_a_session_or_said_not_to_be() -> None:
    assert {table.name for table in METADATA.tables.values() if "session_id" not in table.c} == set(OF_NO_SESSION)


def test_keys_of_a_session_begin_with_it() -> None:
    for table in OF_SESSIONS:
        assert next(iter(table.primary_key.columns)).name == "session_id"
        for constraint in table.constraints:
            is_of_sqlite = constraint.name == "record_id"
            if hasattr(constraint, "columns") and not is_of_sqlite:
                assert next(iter(constraint.columns)).name == "session_id", table.name
        for key in table.foreign_keys:
            assert (key.parent.name, key.column.name) == ("session_id", "session_id")


@contextmanager
def statements() -> Iterator[list[str]]:
    """Collects what is sent to any database."""
    found: list[str] = []

    def collect(_: Connection, __: object, statement: str, *___: Any) -> None:  # noqa: ANN401  # SQLAlchemy's signature
        found.append(" ".join(PARAMETER.sub("?", statement).split()))

    event.listen(Engine, "before_cursor_execute", collect)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", collect)


@contextmanager
def second_connections() -> Iterator[set[str]]:
    """Collects who takes a connection from the pool while holding one: the innermost functions of ours."""
    held: dict[int, list[Any]] = defaultdict(list)
    found: set[str] = set()

    def take(_: object, record: Any, __: object) -> None:  # noqa: ANN401  # SQLAlchemy's signature
        holder = held[threading.get_ident()]
        if holder:
            names = [frame.name for frame in traceback.extract_stack() if "/graph/" in frame.filename]
            found.add(" > ".join(names[-6:]))
        holder.append(record)

    def give_back(_: object, record: Any) -> None:  # noqa: ANN401  # SQLAlchemy's signature
        for records in list(held.values()):
            if record in records:
                records.remove(record)

    event.listen(Pool, "checkout", take)
    event.listen(Pool, "checkin", give_back)
    try:
        yield found
    finally:
        event.remove(Pool, "checkout", take)
        event.remove(Pool, "checkin", give_back)


def on_sessions(found: Sequence[str], names: Sequence[str]) -> set[str]:
    """Those of the statements that read or write a table of sessions."""
    is_on_session = re.compile(rf"\b(FROM|JOIN|INTO|UPDATE) ({'|'.join(names)})\b")
    return {statement for statement in found if is_on_session.search(statement)}


def names_session(statement: str) -> bool:
    """Whether the rows of one session are looked at; a change must say so itself, and not what it looks up."""
    is_change = statement.startswith(("UPDATE", "DELETE"))
    return NAMES_SESSION.search(SUBQUERY.sub("", statement) if is_change else statement) is not None


def tell_story(chat: Chat, server: FakeOpenAI) -> None:
    """Does about everything once that a user, a program, a server or an operator can do."""
    service, sessions, folds = chat.service, chat.service.sessions, chat.service.folds
    chat.ask(1, 7)
    wait_for_tries(chat, 1)
    call = ScriptedCall("recall", json.dumps({"query": "서버 이전"}), "call-1")
    server.script(tools(call), text("찾았습니다."), to="찾아 주세요")
    chat.say("찾아 주세요")
    chat.regenerate()
    server.script(failure(400))
    assert isinstance(chat.say("안 됩니다")[-1], TurnFailed)
    chat.retry()
    sessions.configure(chat.session_id, title="이름", compression_rate=0.5, strategy="interval")
    for search in ("", "예산"):
        assert len(sessions.list(search=search)) == sessions.count(search=search) == 1
    folds.statistics(chat.session_id)
    folds.savings(chat.session_id)
    service.costs.of_session(chat.session_id)
    service.costs.of_all()
    folds.pin(chat.session_id, chat.turns[0].user_message_id)
    folds.pin(chat.session_id, chat.turns[1].user_message_id)
    folds.unpin(chat.session_id, chat.turns[1].user_message_id)
    made = folds.records(chat.session_id)[0].id
    folds.edit(chat.session_id, made, "서버는 10월에 옮깁니다.")
    folds.remake(chat.session_id, made, rate=0.5)
    folds.undo(chat.session_id, made)
    folds.use_version(chat.session_id, folds.versions(chat.session_id, made)[0].id)
    folds.compact(chat.session_id)
    folds.restore(chat.session_id, folds.compactions(chat.session_id)[0].id)
    folds.reset(chat.session_id)
    folds.undo_reset(chat.session_id)
    service.inputs.of_turn(chat.session_id, 7)
    sessions.siblings(chat.session_id)
    sessions.choose_attempt(chat.session_id, 8, 1)
    fork = Chat(service, service.turns.fork(chat.session_id, after_turn=5))
    fork.ask(6, 6)
    program = begin(fork)
    program.ask(question(1))
    program.ask(question(2), is_retry=True)
    sessions.pin(chat.session_id, is_pinned=True)
    sessions.undo_delete(sessions.delete_many([chat.session_id]))
    service._engine.eraser.erase_expired(has_others=True)  # noqa: SLF001  # as a server does when it begins
    fork_of_fork = Chat(service, service.turns.edit(fork.session_id, 2, question(2)))
    fork_of_fork.events()
    sessions.delete(fork_of_fork.session_id)
    list(export_lines(service._engine.stores.chat.database))  # noqa: SLF001  # as the operator's command does
    service._engine.stores.chat.database.check()  # noqa: SLF001  # as /health does
    sessions.delete(fork.session_id)


@pytest.mark.both_engines
def test_every_statement_names_its_session_but_those_of_all_and_nobody_takes_two_connections(
    open_chat: OpenChat, server: FakeOpenAI, engine: str
) -> None:
    names = [table.name for table in OF_SESSIONS]
    if engine == "postgres":
        names.append("message_search")  # a table of sessions there, and an index of SQLite's own here
    prices = '{"currency": "USD", "models": {"scripted-model": {"input": 1, "output": 2}}}'
    chat = open_chat(heartbeat_seconds=0.05, lease_seconds=5, auto_titles=True, model_prices=prices)
    with statements() as found, second_connections() as taken:
        tell_story(chat, server)
    assert taken == set()
    unnamed = {statement for statement in on_sessions(found, names) if not names_session(statement)}
    reasons = {statement: [said for said in OF_ALL_SESSIONS if re.search(said, statement)] for statement in unnamed}
    assert [statement for statement, said in reasons.items() if not said] == []
    assert {pattern for said in reasons.values() for pattern in said} == set(OF_ALL_SESSIONS)
