"""A data folder of the version before the oldest migration that is run, and an export of one that is refused."""

from __future__ import annotations

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from alembic import command
from pydantic import SecretStr
from sqlalchemy import create_engine, inspect, text

from graph.admin.backup import migrate
from graph.service import ChatService
from graph.store.database import head_revision, read_revision
from graph.store.postgres.postgres_database import open_postgres
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.stores import open_database
from graph.store.transfer import Imported, import_lines
from graph.store.upgrade import make_config
from graph.value.client import ClientMessage
from graph.value.event import TurnFinished
from graph.value.record import Record
from tests.fake.body import faults, raw_turns, shape, system_prompt
from tests.fake.chat import Chat, question
from tests.fake.open_chat import MakeSettings, OpenChat
from tests.fake.openai_server import FakeOpenAI
from tests.fake.resending import Program
from tests.fake.summary_text import holds
from tests.integration.test_store_database import differences

RECORDED: Final = Path(__file__).with_name("recorded_database")
TURN: Final = "number attempt status user_text answer_text error_code client"
FOLD: Final = "id kind version edited wish summary original_chars source_tokens summary_tokens input_tokens"
STATISTICS: Final = (
    "record_count folded_turn_count original_chars summary_chars saved_percent unsent_tokens fold_tokens"
)
Json = dict[str, Any]


@pytest.fixture
def saved(tmp_path: Path) -> Json:
    """What the older version's user saw; its data and its project lie in the test's folder now."""
    with tarfile.open(RECORDED / "0013.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    with closing(sqlite3.connect(tmp_path / "data" / "turnfold.db")) as connection, connection:
        for table, column in (("session", "project_root"), ("rule_agreement", "root")):
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} != ''", (str(tmp_path / "shop"),))  # noqa: S608  # names of our own
    said = json.loads((tmp_path / "said.json").read_text(encoding="utf-8"))
    for told in said["sessions"].values():
        for turn in told["turns"]:
            del turn[-2]  # the rating, which is dropped by 0021
    return dict(said)


def seen(service: ChatService, searches: Json) -> Json:
    """All that its user sees of his sessions."""
    sessions = service.sessions.list()
    return {
        "sessions": {item.session_id: session(service, item.session_id) for item in sessions},
        "list": [[item.session_id, item.title, item.turn_count, item.client, item.is_pinned] for item in sessions],
        "found": {
            words: sorted([item.session_id, item.found_turn] for item in service.sessions.list(search=words))
            for words in searches
        },
    }


def session(service: ChatService, session_id: str) -> Json:
    view, folds = service.sessions.get(session_id), service.folds
    transcript = service.turns.transcript(session_id, last=1_000)
    records = folds.records(session_id)
    return {
        "settings": [*values(view, "strategy compression_rate model has_memory"), Path(view.project_root).name],
        "fork": values(view, "forked_from forked_after"),
        "turns": [
            [*values(turn, TURN), [values(step, "name arguments result") for step in turn.steps]]
            for turn in transcript.turns
        ],
        "resets": [list(transcript.reset_after), transcript.can_undo_reset],
        "memory": service.sessions.memory(session_id),
        "folds": [fold(record) for record in records],
        "versions": [[fold(version) for version in folds.versions(session_id, record.id)] for record in records],
        "past": [fold(record) for record in folds.past_records(session_id, last=9)],
        "compactions": [fold(record) for record in folds.compactions(session_id)],
        "pins": [values(pinned, "message_id turn tokens") for pinned in folds.pins(session_id).messages],
        "statistics": values(folds.statistics(session_id), STATISTICS),
        "chart": [values(point, "turn sent_tokens full_tokens has_fold") for point in folds.chart(session_id)],
        "verified": [
            [call.is_verified for call in service.inputs.of_turn(session_id, turn)]
            for turn in service.inputs.called_turns(session_id)
        ],
    }


def fold(record: Record) -> list[object]:
    return [*values(record, FOLD), *map(list, (record.turns, record.kept_facts, record.missing_facts))]


def values(thing: object, names: str) -> list[object]:
    return [getattr(thing, name) for name in names.split()]


def test_all_that_its_user_saw_is_there(saved: Json, open_chat: OpenChat, tmp_path: Path) -> None:
    service = open_chat(turnfold_data_dir=tmp_path / "data", project_roots=(tmp_path,)).service
    assert seen(service, saved["found"]) == {name: saved[name] for name in ("sessions", "list", "found")}
    project = service.projects.get(str(tmp_path / "shop"))
    assert [project.name, project.rules.state, [decision.text for decision in project.decisions]] == saved["project"]
    token = service.programs.find(saved["token"])
    assert token is not None
    assert (token.name, token.is_personal) == ("editor", True)
    with closing(open_database(service.settings)) as database, database.read() as connection:
        assert read_revision(connection) == head_revision()
        assert differences(connection) == []


def test_every_chat_goes_on(saved: Json, open_chat: OpenChat, server: FakeOpenAI, tmp_path: Path) -> None:
    service = open_chat(turnfold_data_dir=tmp_path / "data", project_roots=(tmp_path,)).service
    chats = {name: Chat(service, session_id) for name, session_id in saved["names"].items()}

    def ask(name: str, words: str) -> Any:  # noqa: ANN401  # the body of a request
        assert isinstance(chats[name].say(words)[-1], TurnFinished)
        chats[name].wait_for_folds()
        body = server.bodies("chat")[-1]
        assert faults(body["messages"]) == []
        return body

    assert chats["chat"].last_turn.status == "failed"
    assert isinstance(chats["chat"].retry()[-1], TurnFinished)
    retried = server.bodies("chat")[-1]
    edited, remade = chats["chat"].service.folds.records(saved["names"]["chat"])
    assert (edited.edited, remade.wish) == (True, "예산을 먼저")
    assert shape(retried) == [(1, 3), (4, 6), 7, 8]
    assert holds(retried, edited.summary)
    assert question(5) in system_prompt(retried)  # it is pinned
    assert "이전은 10월에 한다" in system_prompt(retried)  # the project's memory
    first, _ = service.folds.versions(saved["names"]["chat"], edited.id)
    service.folds.use_version(saved["names"]["chat"], first.id)
    assert holds(ask("chat", question(9)), first.summary)

    assert holds(ask("branch", question(7)), edited.summary)
    assert raw_turns(ask("reset", question(4))) == [4]
    (compaction,) = service.folds.compactions(saved["names"]["compacted"])
    compacted = ask("compacted", question(6))
    assert holds(compacted, compaction.summary)
    assert raw_turns(compacted)[-3:] == [4, 5, 6]
    rolled = service.folds.records(saved["names"]["rolling"])[-1].summary
    assert holds(ask("rolling", question(8)), rolled)

    program = Program(service, messages=[ClientMessage(role, words) for role, words in saved["sent"]])
    reading = program.ask(question(5))
    assert (reading.matched, reading.session_id, reading.turn) == ("history", saved["names"]["program"], 5)


def test_a_deleted_chat_leaves_nothing(saved: Json, open_chat: OpenChat, tmp_path: Path) -> None:
    chat = open_chat(turnfold_data_dir=tmp_path / "data", project_roots=(tmp_path,))
    for session_id in saved["sessions"]:
        chat.service.sessions.delete(session_id)
    with closing(open_database(chat.service.settings)) as database, database.read() as connection:
        for table in inspect(connection).get_table_names():
            if "session_id" in {column["name"] for column in inspect(connection).get_columns(table)}:
                assert connection.execute(text(f"SELECT * FROM {table}")).all() == [], table  # noqa: S608  # names of our own
    assert chat.service.sessions.list(search="김민수") == ()


@pytest.mark.slow
@pytest.mark.postgres
def test_it_is_moved_to_postgres(saved: Json, open_chat: OpenChat, tmp_path: Path, postgres_head_url: str) -> None:
    url = SecretStr(postgres_head_url)
    with closing(open_postgres(url, busy_timeout_seconds=30)) as target:
        migrate(tmp_path / "data" / "turnfold.db", target, busy_timeout_seconds=10)
    service = open_chat(chat_database_url=url, project_roots=(tmp_path,)).service
    assert seen(service, saved["found"]) == {name: saved[name] for name in ("sessions", "list", "found")}


def tables_of(path: Path) -> dict[str, str]:
    """The statement that makes each table and index, however it is spaced and quoted."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {name: " ".join(sql.replace('"', "").replace("('')", "''").split()) for name, sql in rows}


def test_the_first_migration_makes_the_tables_that_the_older_version_has(saved: Json, tmp_path: Path) -> None:
    assert saved
    config, engine = make_config(), create_engine(f"sqlite:///{tmp_path / 'new.db'}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0013")
    engine.dispose()
    assert tables_of(tmp_path / "new.db") == tables_of(tmp_path / "data" / "turnfold.db")


def test_the_index_that_was_rebuilt_is_the_one_of_a_new_database(
    saved: Json, open_chat: OpenChat, make_settings: MakeSettings, tmp_path: Path
) -> None:
    assert saved
    service = open_chat(turnfold_data_dir=tmp_path / "data", project_roots=(tmp_path,)).service
    assert [item.found_turn for item in service.sessions.list(search="arriving guest")] == [1]
    new = make_settings(turnfold_data_dir=tmp_path / "new").database_path
    with closing(open_sqlite(new, busy_timeout_seconds=10)):
        pass
    assert tables_of(new)["message_search"] == tables_of(tmp_path / "data" / "turnfold.db")["message_search"]


def test_what_was_stored_in_compatibility_forms_is_found_once_it_is_migrated(
    open_chat: OpenChat, make_settings: MakeSettings
) -> None:
    chat = open_chat()
    chat.say("계약 번호는 ＡＢＣ１２３이고 담당은 ㈜한국입니다.")
    chat.service.sessions.rename(chat.session_id, "Ｑ４ 예산")
    chat.close()
    with closing(sqlite3.connect(make_settings().database_path)) as connection, connection:
        connection.execute("INSERT INTO message_search(message_search) VALUES ('delete-all')")
        connection.execute("UPDATE session SET title_folded = 'ｑ４ 예산'")
        connection.execute("ALTER TABLE lease DROP COLUMN revision")  # 0033
        connection.execute("ALTER TABLE lease DROP COLUMN context_revision")
        connection.execute("UPDATE alembic_version SET version_num = '0031'")
    service = open_chat(chat.session_id).service
    for search in ("ABC123", "(주)한국", "q4"):
        assert [item.session_id for item in service.sessions.list(search=search)] == [chat.session_id], search
    service.sessions.delete(chat.session_id)
    with closing(sqlite3.connect(make_settings().database_path)) as connection:
        connection.execute("INSERT INTO message_search(message_search) VALUES ('integrity-check')")


def test_the_export_of_a_version_whose_database_is_refused_is_read(
    make_settings: MakeSettings, open_chat: OpenChat, server: FakeOpenAI
) -> None:
    lines = (RECORDED / "export_0003.jsonl").read_text(encoding="utf-8").splitlines()
    with closing(open_sqlite(make_settings().database_path, busy_timeout_seconds=10)) as database:
        assert import_lines(database, lines, owner="local") == Imported(1, 0)
    chat = open_chat(json.loads(lines[1])["row"]["session_id"])
    (copied,) = chat.service.sessions.import_session(lines)
    for read in (chat, Chat(chat.service, copied)):
        assert [turn.user_text for turn in read.turns] == [question(number) for number in range(1, 5)]
        read.ask(5, 5)
        assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5]
