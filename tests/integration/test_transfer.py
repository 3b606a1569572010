from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from graph.admin.__main__ import main
from graph.store.database import Database
from graph.store.postgres.postgres_database import open_postgres
from graph.store.schema import rule_agreement_table
from graph.store.stores import open_database
from graph.store.transfer import Imported, export_lines, import_lines
from graph.value.error import InputError
from graph.value.view import TurnOptions
from tests.fake.body import system_prompt
from tests.fake.chat import Chat, question
from tests.fake.context_source import FRONT, ScriptedContext
from tests.fake.logs import restored_logging
from tests.fake.open_chat import MakeSettings, OpenChat, chat_opener, settings_maker
from tests.fake.openai_server import FakeOpenAI
from tests.fake.postgres import PostgresServer


@pytest.fixture(scope="module")
def exported(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("exported")
    make_settings = settings_maker(folder, endpoint.url)
    with chat_opener(make_settings) as open_chat:
        chat = open_chat("exported", context=ScriptedContext(), project_roots=(folder,))
        chat.say(question(1), options=TurnOptions(project_root=str(folder), has_memory=False))
        chat.ask(2, 4)
        chat.service._engine.stores.owner.agreements.agree("local", str(folder), digest="aa", rules="{}")  # noqa: SLF001  # nobody but a test has to know
    with closing(open_database(make_settings())) as database:
        return list(export_lines(database))


@pytest.fixture
def empty(make_settings: MakeSettings) -> Iterator[Database]:
    with closing(open_database(make_settings())) as database:
        yield database


def row_of(lines: list[str], table: str) -> int:
    """Where the first row of the table stands."""
    return next(index for index, line in enumerate(lines) if json.loads(line).get("table") == table)


def changed(lines: list[str], table: str, change: Callable[[dict[str, Any]], object]) -> tuple[list[str], int]:
    """Changes the first row of a table; returns the lines and the number of the changed one."""
    index = row_of(lines, table)
    entry = json.loads(lines[index])
    change(entry["row"])
    return [*lines[:index], json.dumps(entry), *lines[index + 1 :]], index + 1


def refusal(database: Database, lines: list[str]) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        import_lines(database, lines, owner="me")
    return caught.value.reason, caught.value.detail


def test_import_belongs_to_the_owner_who_imports(
    exported: list[str], open_chat: OpenChat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "all.jsonl").write_text("\n".join(exported))
    monkeypatch.setenv("TURNFOLD_DATA_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("TURNFOLD_OWNER", "somebody-else")
    with restored_logging():
        assert main(["import", str(tmp_path / "all.jsonl")]) == 0
    chat = open_chat("exported", turnfold_data_dir=tmp_path / "other", turnfold_owner="somebody-else")
    assert [item.session_id for item in chat.service.sessions.list()] == ["exported"]
    assert [turn.status for turn in chat.turns] == ["finished"] * 4
    for table in NEEDED:
        assert chat.rows(f"SELECT DISTINCT owner FROM {table}") == [("somebody-else",)]  # noqa: S608  # names of our own
    chat.ask(5, 5)
    assert chat.covered == [(1, 2, 3)]


NEEDED = {
    "session": ("title", "title_folded", "created_at", "turn_count", "strategy"),
    "turn": ("number", "status", "user_message_id", "history_tokens"),
    "message": ("position", "message_id", "role", "content", "tokens"),
    "record": ("id", "kind", "summary", "turns", "source_key"),
    "model_call": ("id", "manifest", "sent_tokens", "error_code"),
    "context_block": ("kind", "version", "text"),
}
OF_ANOTHER_KIND = [
    ("session", "turn_count", "four"),
    ("session", "turn_count", True),
    ("session", "compression_rate", "0.3"),
    ("session", "created_at", "2026-03-01T12:00:00"),
    ("session", "created_at", "yesterday"),
    ("turn", "stop_requested", "no"),
    ("message", "content", 7),
    ("session", "has_memory", "yes"),
    ("context_block", "version", "one"),
]


def test_row_that_is_spoilt_or_stands_twice_is_named_by_its_line_and_nothing_is_imported(
    exported: list[str], empty: Database
) -> None:
    changes: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
        (table, methodcaller("update", {column: value}))
        for table, columns in NEEDED.items()
        for column in columns
        for value in (None, ["x"])
    ]
    changes += [(table, methodcaller("pop", column)) for table, columns in NEEDED.items() for column in columns]
    changes += [(table, methodcaller("update", {column: value})) for table, column, value in OF_ANOTHER_KIND]
    for table, change in changes:
        lines, number = changed(exported, table, change)
        assert refusal(empty, lines) == ("not_an_export", str(number)), lines[number - 1]
    for table in set(NEEDED) - {"session"}:
        lines = [*exported, exported[row_of(exported, table)]]
        assert refusal(empty, lines) == ("not_an_export", str(len(lines)))
    assert len(list(export_lines(empty))) == 1


def test_columns_that_an_older_version_had_not_yet_may_lack(exported: list[str], empty: Database) -> None:
    lines = exported
    for column in ("context_from_position", "project_root", "has_memory"):
        lines, _ = changed(lines, "session", methodcaller("pop", column))
    assert import_lines(empty, lines, owner="me").session_count == 1
    assert "rule_agreement" not in {json.loads(line).get("table") for line in exported}  # it stays on its machine
    with empty.read() as connection:
        assert connection.execute(rule_agreement_table.select()).all() == []


def test_inputs_with_blocks_are_rebuilt_where_they_were_imported(
    exported: list[str], empty: Database, open_chat: OpenChat, server: FakeOpenAI
) -> None:
    import_lines(empty, exported, owner="local")
    source = ScriptedContext()
    chat = open_chat("exported", context=source)
    for call in [call for turn in range(1, 5) for call in chat.service.inputs.of_turn("exported", turn)]:
        assert call.is_verified
    chat.ask(5, 5)
    assert FRONT in system_prompt(server.bodies("chat")[-1])
    assert (source.requests[0].front, source.requests[0].has_memory) == (FRONT, False)
    assert chat.rows("SELECT version FROM context_block WHERE kind = 'front'") == [(1,)]


def test_one_session_is_exported_with_the_lines_that_it_has_among_all(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.ask(1, 4)
    other = Chat(chat.service)
    other.ask(1, 1)
    head, *lines = chat.service.sessions.export(chat.session_id)
    assert json.loads(head)["format"] == "turnfold-export"
    with closing(open_database(chat.service.settings)) as database:
        everything = list(export_lines(database))
    assert everything[0] == head
    own = [line for line in everything[1:] if json.loads(line)["row"]["session_id"] == chat.session_id]
    assert lines == own
    assert len(everything) > len(own) + 1


@pytest.mark.slow
@pytest.mark.postgres
def test_of_two_imports_at_once_one_skips_what_the_other_adds(
    exported: list[str], postgres_head_url: str, postgres: PostgresServer
) -> None:
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with (
        closing(open_postgres(SecretStr(postgres_head_url), busy_timeout_seconds=30)) as database,
        ThreadPoolExecutor(1) as pool,
    ):

        def lines() -> Iterator[str]:
            yield from exported[:3]
            others.append(pool.submit(import_lines, database, exported, owner="me"))
            while not (others[0].done() or postgres.execute(waits)):
                time.sleep(0.05)
            yield from exported[3:]

        others: list[Future[Imported]] = []
        assert import_lines(database, lines(), owner="me") == Imported(1, 0)
        assert others[0].result(60) == Imported(0, 1)
