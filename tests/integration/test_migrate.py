from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from graph.admin.__main__ import main
from graph.store.schema import METADATA, search_session_table
from graph.value.event import TurnFinished
from tests.fake.body import shape
from tests.fake.chat import question
from tests.fake.logs import restored_logging
from tests.fake.open_chat import MakeSettings, OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.resending import begin

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
Admin = Callable[..., int]
ROOT = Path(__file__).resolve().parents[2]
TABLES = [table.name for table in METADATA.sorted_tables if table is not search_session_table]


@pytest.fixture
def file(make_settings: MakeSettings) -> Path:
    return make_settings().database_path


@pytest.fixture
def admin(make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch) -> Admin:
    monkeypatch.setenv("TURNFOLD_DATA_DIR", str(make_settings().turnfold_data_dir))

    def run(*words: object) -> int:
        with restored_logging():
            return main([str(word) for word in words])

    return run


@pytest.fixture
def target(postgres_url: str) -> str:
    """The URL of a database without even tables."""
    return postgres_url


def counts_of(connection: Any) -> dict[str, int]:  # noqa: ANN401  # of either driver
    """How many rows each table has."""
    return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES}  # noqa: S608  # names of our own


def counts_in(target: str) -> dict[str, int]:
    with psycopg.connect(target) as connection:
        return counts_of(connection)


def has_rows(target: str) -> bool:
    """Whether anything was moved; a database without tables has none."""
    with psycopg.connect(target) as connection:
        found = connection.execute("SELECT to_regclass('session')").fetchone()
        return found != (None,) and any(counts_of(connection).values())


def write(file: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement, values)


def test_a_chat_goes_on_in_postgres_as_it_was(
    open_chat: OpenChat, server: FakeOpenAI, admin: Admin, file: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_chat() as chat:
        server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), text("낮입니다."))
        chat.say("지금은 몇 시입니까?")
        chat.ask(2, 6)
        chat.regenerate()
        server.script(failure(500))
        chat.say(question(7))
        chat.retry()
        chat.service.turns.fork(chat.session_id, after_turn=2)
        program = begin(chat)
        program.ask(question(1))
        before = chat.turns, chat.service.folds.records(chat.session_id), chat.service.sessions.list()
    assert admin("migrate", file, target) == 0
    with closing(sqlite3.connect(file)) as connection:
        counts = counts_of(connection)
    assert counts_in(target) == counts
    assert f"{sum(counts.values())} rows moved and compared, 0 with" in capsys.readouterr().out
    moved = open_chat(chat.session_id, chat_database_url=target)
    assert (moved.turns, moved.service.folds.records(moved.session_id), moved.service.sessions.list()) == before
    assert all(
        call.is_verified for turn in range(1, 8) for call in moved.service.inputs.of_turn(moved.session_id, turn)
    )
    found = moved.service.sessions.list(search="김민수")
    assert {item.session_id for item in found} >= {moved.session_id}
    moved.ask(8, 8)
    assert shape(server.bodies("chat")[-1])[:2] == [(1, 3), (4, 6)]
    program.service = moved.service
    assert program.ask(question(2)).matched == "history"


def test_a_migration_that_is_killed_leaves_nothing_and_can_be_repeated(
    open_chat: OpenChat, admin: Admin, file: Path, target: str
) -> None:
    with open_chat() as chat:
        chat.ask(1, 4)
    assert admin("migrate", file, target) == 0
    expected = counts_in(target)
    with psycopg.connect(target, autocommit=True) as holder:
        for name in reversed(TABLES):
            holder.execute(f"DELETE FROM {name}".encode())  # noqa: S608  # names of our own
        with holder.transaction():
            # It can read this table, and waits before it writes there: in the midst of all.
            holder.execute("LOCK TABLE record IN EXCLUSIVE MODE")
            command = [sys.executable, "-m", "graph.admin", "migrate", str(file), target]
            migration = subprocess.Popen(command, cwd=ROOT)
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'record'::regclass"
            while holder.execute(waits).fetchone() != (1,):
                assert migration.poll() is None
            migration.send_signal(signal.SIGKILL)
            migration.wait()
    assert not has_rows(target)
    assert admin("migrate", file, target) == 0
    assert counts_in(target) == expected


def test_a_target_with_rows_and_a_file_in_use_are_refused_and_stay_as_they_are(
    open_chat: OpenChat, admin: Admin, file: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_chat() as chat:
        chat.ask(1, 1)
        assert admin("migrate", file, target) == 1
        assert "in use by a server" in capsys.readouterr().err
        assert not has_rows(target)
    with open_chat(chat_database_url=target) as other:
        other.ask(1, 1)
    before = counts_in(target)
    assert admin("migrate", file, target) == 1
    assert "has rows already; name an empty database" in capsys.readouterr().err
    assert counts_in(target) == before


def test_what_arrives_otherwise_than_it_was_sent_is_found_and_nothing_is_moved(
    open_chat: OpenChat, admin: Admin, file: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_chat() as chat:
        chat.ask(1, 2)
    open_chat(chat_database_url=target).close()
    with psycopg.connect(target) as connection:
        connection.execute(
            "CREATE FUNCTION one_more() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN NEW.tokens := NEW.tokens + (NEW.position = 3)::int; RETURN NEW; END $$"
        )
        connection.execute("CREATE TRIGGER one_more BEFORE INSERT ON message FOR EACH ROW EXECUTE FUNCTION one_more()")
    assert admin("migrate", file, target) == 1
    assert "message: 4 rows were sent, and 4 or other ones arrived" in capsys.readouterr().err
    assert not has_rows(target)


def test_what_postgres_cannot_store_is_replaced_and_named(
    open_chat: OpenChat, admin: Admin, file: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_chat() as chat:
        chat.ask(1, 2)
    write(file, "UPDATE session SET title = ?", "제\x00목")
    write(file, "UPDATE message SET content = ? WHERE position = 1", r'"앞\u0000뒤 \ud83d 끝"')
    write(file, "UPDATE message SET content = ? WHERE position = 3", r'"말 그대로 \\u0000"')
    assert admin("migrate", file, target) == 0
    *replaced, total = [line for line in capsys.readouterr().out.splitlines() if "replaced" in line]
    assert total.endswith("2 with replaced characters")
    assert [line.partition(" in ")[2] for line in replaced] == [
        f"session: session_id {chat.session_id}",
        f"message: session_id {chat.session_id}, position 1",
    ]
    moved = open_chat(chat.session_id, chat_database_url=target)
    assert moved.view.title == "제\ufffd목"
    assert [turn.user_text for turn in moved.turns] == ["앞\ufffd뒤 \ufffd 끝", r"말 그대로 \u0000"]
    assert isinstance(moved.say("이어서 말해 주세요.")[-1], TurnFinished)


def test_a_target_that_is_none_is_told_without_its_password_and_postgres_is_backed_up_by_its_own_commands(
    open_chat: OpenChat,
    admin: Admin,
    file: Path,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    open_chat().close()
    for url in ("mysql://host/x", "postgresql://127.0.0.1:1/none", ""):
        assert admin("migrate", file, url.replace("//", "//user:hidden-word@")) == 1
        told = capsys.readouterr().err
        assert "Not done" in told
        assert "hidden-word" not in told
    monkeypatch.setenv("CHAT_DATABASE_URL", target)
    for words in (("backup",), ("restore", "kept.db")):
        assert admin(*words) == 1
        assert "pg_dump" in capsys.readouterr().err
