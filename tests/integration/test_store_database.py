from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import StatementError

from graph.store.database import head_revision
from graph.store.schema import METADATA, session_table
from graph.store.session import SessionStore
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.upgrade import make_config
from graph.value.error import (
    DatabaseBusyError,
    DatabaseError,
    DiskFullError,
    NewerDatabaseError,
    NotADatabaseError,
    NotFoundError,
    OlderDatabaseError,
)
from tests.fake.store import OWNER, SESSION, StoreSet, open_store_set

pytestmark = pytest.mark.both_engines

OF_OTHER_ENGINE = {"sqlite": {"record_id_in_session"}, "postgresql": {"record_id", "search_session"}}
ROOT = Path(__file__).resolve().parents[2]
EIGHT_OPEN_AND_MAKE_A_SESSION = """
import sys
from pathlib import Path
from graph.store.database import utc_now
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.session import SessionStore
from tests.fake.crowd import run_crowd

def work(number):
    database = open_sqlite(Path(sys.argv[1]), busy_timeout_seconds=30)
    sessions = SessionStore(database)
    sessions.create(f"s{number}", "alice", compression_rate=0.3, strategy="interval")
    database.close()

run_crowd(8, work)
"""


def tables_of(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def differences(connection: Connection) -> list[object]:
    """What the schema has otherwise than the database, but for index and checkpoints, which aren't the schema's."""
    names = {
        "include_name": lambda name, kind, _: kind != "table" or not name.startswith(("message_search", "checkpoint")),
        "include_object": lambda _, name, *__: name not in OF_OTHER_ENGINE[connection.dialect.name],
    }
    found: list[object] = compare_metadata(MigrationContext.configure(connection, opts=names), METADATA)
    return found


def test_files_and_folder_are_private_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "data" / "turnfold.db"

    def modes() -> dict[str, int]:
        with closing(open_sqlite(path, busy_timeout_seconds=1)) as database:
            SessionStore(database).create(SESSION, OWNER, compression_rate=0.3, strategy="interval")
            return {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}

    before = os.umask(0)
    try:
        found = modes()
    finally:
        os.umask(before)
    assert set(found) >= {"turnfold.db", "turnfold.db-wal", "turnfold.db-shm"}
    assert set(found.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    assert set(modes().values()) == {0o600}


def test_migrations_make_exactly_the_tables(stores: StoreSet) -> None:
    with stores.database.read() as connection:
        assert differences(connection) == []
    assert ScriptDirectory.from_config(make_config()).get_current_head() == head_revision()


@pytest.mark.sqlite
def test_durable_settings_hold_on_every_connection(stores: StoreSet) -> None:
    names = ("journal_mode", "synchronous", "foreign_keys")
    with stores.database.read() as one, stores.database.write() as other:
        for connection in (one, other):
            assert [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names] == ["wal", 2, 1]


@pytest.mark.slow
def test_eight_processes_start_at_once_on_no_file(tmp_path: Path) -> None:
    path = tmp_path / "turnfold.db"
    arguments = [sys.executable, "-c", EIGHT_OPEN_AND_MAKE_A_SESSION, str(path)]
    crowd = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert crowd.returncode == 0, crowd.stderr
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (8,)
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(head_revision(),)]


def test_file_that_is_not_ours_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "turnfold.db"
    path.write_text("my diary, " * 500)
    with pytest.raises(NotADatabaseError, match=r"turnfold\.db"):
        open_sqlite(path, busy_timeout_seconds=1)
    assert path.read_text() == "my diary, " * 500
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipe (name TEXT)")
    with pytest.raises(NotADatabaseError):
        open_sqlite(path, busy_timeout_seconds=1)
    assert tables_of(path) == {"recipe"}
    with pytest.raises(DatabaseError, match="data"):
        open_sqlite(path / "data" / "turnfold.db", busy_timeout_seconds=1)  # a folder that can't be made


@pytest.mark.parametrize(("revision", "error"), [("9999", NewerDatabaseError), ("0012", OlderDatabaseError)])
def test_database_of_a_newer_or_too_old_version_is_refused(
    tmp_path: Path, revision: str, error: type[DatabaseError]
) -> None:
    with open_store_set(tmp_path) as stores, stores.database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = ?", (revision,))
    with pytest.raises(error, match=revision):
        open_sqlite(tmp_path / "turnfold.db", busy_timeout_seconds=1)


def test_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "turnfold.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("CREATE TABLE lease (in_the_way TEXT)")
    with pytest.raises(DatabaseError):
        open_sqlite(path, busy_timeout_seconds=1)
    assert tables_of(path) == {"alembic_version", "lease"}


def test_damaged_pages_are_our_error_when_read(tmp_path: Path) -> None:
    with open_store_set(tmp_path) as stores:
        lease = stores.make_session()
        for number in range(40):
            stores.begin(lease, f"q{number}", "words " * 500)
    path = tmp_path / "turnfold.db"
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(NotADatabaseError):
        open_sqlite(path, busy_timeout_seconds=1).check()


def test_write_rolls_back_on_any_exception(stores: StoreSet) -> None:
    stores.make_session()

    def break_off() -> None:
        with stores.database.write() as connection:
            connection.execute(update(session_table).values(title="half"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert stores.sessions.get(SESSION, OWNER).title == ""


def test_threads_write_one_after_another(stores: StoreSet) -> None:
    stores.make_session()
    start = threading.Barrier(8)

    def count_up() -> None:
        start.wait()
        for _ in range(20):
            with stores.database.write(session_id=SESSION) as connection:
                count = connection.execute(select(session_table.c.turn_count)).scalar_one()
                connection.execute(update(session_table).values(turn_count=count + 1))

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(count_up) for _ in range(8)]:
            future.result()
    assert stores.sessions.get(SESSION, OWNER).turn_count == 160


def test_lock_held_by_another_process_is_busy(tmp_path: Path) -> None:
    with open_store_set(tmp_path):
        pass
    database = open_sqlite(tmp_path / "turnfold.db", busy_timeout_seconds=0.2)
    with closing(sqlite3.connect(tmp_path / "turnfold.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseBusyError), database.write():
            pass
    with database.write():
        database.check()
    database.close()


@pytest.mark.sqlite
def test_full_disk_rolls_back_and_the_database_goes_on(own_stores: StoreSet) -> None:
    stores = own_stores
    lease = stores.make_session()
    with stores.database.write() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskFullError):
        stores.begin(lease, "q1", "words " * 50_000)
    assert stores.turns.last(SESSION) is None
    with stores.database.write() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    assert stores.begin(lease, "q1", "words " * 50_000).number == 1


def test_error_says_nothing_of_the_values(stores: StoreSet) -> None:
    row = {
        "session_id": "twice",
        "owner": OWNER,
        "created_at": stores.clock(),
        "updated_at": stores.clock(),
        "compression_rate": 0.3,
        "strategy": "interval",
        "model": "",
        "turn_count": 0,
        "title": "my secret",
        "title_folded": "my secret",
    }
    with pytest.raises(DatabaseError) as caught, stores.database.write() as connection:
        connection.execute(insert(session_table).values([row, row]))
    assert str(caught.value) in {"database: SQLITE_CONSTRAINT_PRIMARYKEY", "database: UniqueViolation"}
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_times_come_back_aware_to_the_microsecond_and_are_written_with_a_zone_alone(stores: StoreSet) -> None:
    stores.clock.now = datetime(2026, 3, 1, 9, 30, 0, 987654, tzinfo=timezone(timedelta(hours=9)))
    found = stores.begin(stores.make_session(), "q1").started_at
    assert found.tzinfo is UTC
    assert found == datetime(2026, 3, 1, 0, 30, 0, 987654, tzinfo=UTC)
    naive = datetime(2026, 3, 1)  # noqa: DTZ001  # what must be refused
    with pytest.raises(StatementError, match="without a zone"), stores.database.write() as connection:
        connection.execute(update(session_table).values(updated_at=naive))


def test_health_check_fails_when_the_table_is_gone(own_stores: StoreSet) -> None:
    stores = own_stores
    stores.database.check()
    with stores.database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE session RENAME TO elsewhere")
    with pytest.raises(DatabaseError):
        stores.database.check()


def test_all_reads_of_a_block_see_one_state_and_those_of_other_threads_their_own(stores: StoreSet) -> None:
    stores.make_session()

    def title() -> str:
        return stores.sessions.get(SESSION, OWNER).title

    with ThreadPoolExecutor(1) as other:
        with stores.database.reading():
            assert title() == ""
            with stores.database.reading():
                stores.sessions.rename(SESSION, OWNER, "renamed")
                assert title() == ""
            assert title() == ""
            assert other.submit(title).result() == "renamed"
        assert title() == "renamed"
        with pytest.raises(NotFoundError), stores.database.reading():
            stores.sessions.get("nowhere", OWNER)
        assert title() == "renamed"


def test_blocks_of_writing_within_each_other_are_one_transaction(stores: StoreSet) -> None:
    stores.make_session()

    def rename(title: str) -> None:
        with stores.database.writing():
            with stores.database.writing():
                stores.sessions.rename(SESSION, OWNER, "inner")
            stores.sessions.rename(SESSION, OWNER, title)
            assert stores.sessions.get(SESSION, OWNER).title == title
            if not title:
                raise KeyboardInterrupt

    rename("outer")
    with pytest.raises(KeyboardInterrupt):
        rename("")
    assert stores.sessions.get(SESSION, OWNER).title == "outer"
