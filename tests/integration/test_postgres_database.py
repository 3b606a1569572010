from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.postgres.base import BasePostgresSaver
from pydantic import SecretStr
from sqlalchemy import Connection, Engine, event, insert, select, text, update

from graph.store.column import database_time
from graph.store.database import head_revision, read_revision
from graph.store.lease import LeaseStore
from graph.store.postgres.postgres_database import open_postgres
from graph.store.schema import lease_table, record_table, session_table
from graph.value.error import (
    BusyError,
    DatabaseBusyError,
    DatabaseError,
    DatabaseUnreachableError,
    LeaseLostError,
    NewerDatabaseError,
    NotFoundError,
    OlderDatabaseError,
    SettingsError,
)
from tests.fake.postgres import PostgresServer, cut_connections
from tests.fake.store import OWNER, SESSION, StoreSet
from tests.integration.test_distribution import OF_NO_SESSION
from tests.integration.test_store_database import differences

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
SIX_OPEN_AND_MAKE_A_SESSION = """
import sys
from pydantic import SecretStr
from graph.store.postgres.postgres_database import PostgresDatabase, open_postgres
from graph.store.session import SessionStore
from tests.fake.crowd import run_crowd

def work(number):
    database = open_postgres(SecretStr(sys.argv[1]), busy_timeout_seconds=30)
    SessionStore(database).create(f"s{number}", "alice", compression_rate=0.3, strategy="interval")
    database.close()

run_crowd(6, work)
"""
# Of langgraph-checkpoint-postgres 3.2; `checkpoint.set_up` runs them in its own way, so look at a new one first.
KNOWN_MIGRATIONS = "2b0cc7564b5744b6d068ef8703dfd504f461490fcc8a1b9c0c0119b15ca984dd"


@pytest.fixture
def engine() -> str:
    return "postgres"


def test_servers_that_start_at_once_on_an_empty_database_all_come_up(postgres_url: str) -> None:
    command = [sys.executable, "-c", SIX_OPEN_AND_MAKE_A_SESSION, postgres_url]
    crowd = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert crowd.returncode == 0, crowd.stderr
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (6,)
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(head_revision(),)]
        (broken,) = connection.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchone() or ()
        assert broken == 0


def test_the_savers_own_set_up_is_the_one_that_was_looked_at_and_finds_nothing_to_do(postgres_head_url: str) -> None:
    assert hashlib.sha256(json.dumps(BasePostgresSaver.MIGRATIONS).encode()).hexdigest() == KNOWN_MIGRATIONS
    with psycopg.connect(postgres_head_url) as connection:
        versions = connection.execute("SELECT v FROM checkpoint_migrations ORDER BY v").fetchall()
    assert versions == [(number,) for number in range(len(BasePostgresSaver.MIGRATIONS))]


@pytest.mark.parametrize(("revision", "error"), [("9999", NewerDatabaseError), ("0012", OlderDatabaseError)])
def test_tables_of_a_newer_or_too_old_version_are_refused_and_left_alone(
    postgres_head_url: str, revision: str, error: type[DatabaseError]
) -> None:
    with psycopg.connect(postgres_head_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", (revision,))
    with pytest.raises(error, match=revision):
        open_postgres(SecretStr(postgres_head_url), busy_timeout_seconds=30)
    with psycopg.connect(postgres_head_url) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(revision,)]


def test_tables_of_an_older_version_are_brought_to_head(postgres_head_url: str) -> None:
    with psycopg.connect(postgres_head_url) as connection:
        connection.execute("DROP TABLE sign_in")  # what 0014 adds
        connection.execute("ALTER TABLE turn DROP COLUMN thoughts, DROP COLUMN thought_seconds")  # 0016
        connection.execute("ALTER TABLE session DROP COLUMN thinking")
        connection.execute("ALTER TABLE record DROP COLUMN needed_rate, DROP COLUMN invented_facts")  # 0018
        connection.execute("DROP TABLE message_vector")  # 0019
        connection.execute("ALTER TABLE session DROP COLUMN language")  # 0020
        connection.execute("ALTER TABLE turn ADD COLUMN rating INTEGER NOT NULL DEFAULT 0")  # 0021
        connection.execute("DROP TABLE attempt")  # 0022
        connection.execute("DROP INDEX session_by_origin")
        connection.execute("DROP TABLE own_instruction")  # 0023
        connection.execute("ALTER TABLE session DROP COLUMN instructions")
        connection.execute("ALTER TABLE session DROP COLUMN mcp_tools, DROP COLUMN mcp_allowed")  # 0024
        connection.execute("ALTER TABLE turn DROP COLUMN asked_calls")
        connection.execute("ALTER TABLE message DROP COLUMN whole_text")
        connection.execute("ALTER TABLE api_token DROP COLUMN is_personal")  # 0025
        connection.execute('ALTER TABLE anchor DROP COLUMN "whole", DROP COLUMN frame')  # 0026
        connection.execute("ALTER TABLE record DROP COLUMN ledger, DROP COLUMN days")  # 0027, 0028
        connection.execute("ALTER TABLE session DROP COLUMN struck, DROP COLUMN fold_when")  # 0029
        connection.execute("DROP TABLE preset")  # 0030
        connection.execute("ALTER TABLE session DROP COLUMN brought_instructions")  # 0031
        connection.execute("ALTER TABLE lease DROP COLUMN revision, DROP COLUMN context_revision")  # 0033
        connection.execute("UPDATE alembic_version SET version_num = '0013'")
    with (
        closing(open_postgres(SecretStr(postgres_head_url), busy_timeout_seconds=30)) as database,
        database.read() as connection,
    ):
        assert read_revision(connection) == head_revision()
        assert differences(connection) == []


def test_the_key_of_every_table_of_a_session_begins_with_it(postgres_head_url: str) -> None:
    query = """
        SELECT relname, attname FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
        JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
        WHERE (indisprimary OR indisunique) AND relnamespace = 'public'::regnamespace
    """
    with psycopg.connect(postgres_head_url) as connection:
        firsts = connection.execute(query).fetchall()
    others = {name for name, first in firsts if first != "session_id" and not name.startswith("checkpoint")}
    assert others == {"alembic_version", *OF_NO_SESSION}


def test_a_connection_that_was_cut_is_made_anew(stores: StoreSet) -> None:
    stores.make_session()

    def rename_and_lose() -> None:
        with stores.database.write(session_id=SESSION) as connection:
            connection.execute(update(session_table).values(title="lost"))
            cut(stores)

    cut(stores)
    assert stores.sessions.get(SESSION, OWNER).title == ""
    with pytest.raises(DatabaseUnreachableError):
        rename_and_lose()
    assert stores.sessions.get(SESSION, OWNER).title == ""


def cut(stores: StoreSet) -> None:
    ended = cut_connections(stores.location[1])
    assert ended
    assert all(ended)


def test_what_takes_too_long_is_busy(stores: StoreSet) -> None:
    def write_in_a_hurry(setting: str) -> None:
        with stores.database.write() as connection:
            connection.execute(text(f"SET LOCAL {setting} = 50"))
            connection.execute(update(session_table).values(title="late"))
            connection.execute(update(lease_table).values(host="late"))

    stores.make_session()
    for setting in ("statement_timeout", "lock_timeout"):
        with stores.database.write(session_id=SESSION), pytest.raises(DatabaseBusyError):
            write_in_a_hurry(setting)
    assert stores.sessions.get(SESSION, OWNER).title == ""


def test_what_postgres_refuses_is_our_error_and_isnt_repeated_and_readers_cannot_write(stores: StoreSet) -> None:
    with pytest.raises(DatabaseError) as caught, stores.database.write() as connection:
        connection.execute(text("SELECT CAST(:value AS text)"), {"value": "my secret \0"})
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(DatabaseError, match="ReadOnlySqlTransaction"), stores.database.read() as connection:
        connection.execute(insert(session_table).values(session_id="s"))
    with pytest.raises(NotFoundError):
        stores.sessions.get("s", OWNER)


def test_pooled_connections_end_with_the_database(postgres_head_url: str, postgres: PostgresServer) -> None:
    with closing(open_postgres(SecretStr(postgres_head_url), busy_timeout_seconds=30)) as database:
        database.check()
    query = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        deadline = time.monotonic() + 30
        while connection.execute(query, (postgres_head_url.rpartition("/")[2],)).fetchall():
            assert time.monotonic() < deadline, "they stay open"


def tables_of(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {name for (name,) in rows}


def test_a_server_that_starts_waits_for_the_migration_of_another_beyond_the_limits_of_its_role(
    postgres_head_url: str, postgres: PostgresServer
) -> None:
    name = postgres_head_url.rpartition("/")[2]
    postgres.execute("ALTER DATABASE {} SET lock_timeout = 50", name)
    postgres.execute("ALTER DATABASE {} SET statement_timeout = 1000", name)
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND now() - query_start > '1200 ms'"
    with psycopg.connect(postgres_head_url) as migrating, ThreadPoolExecutor(1) as pool:
        migrating.execute("SELECT pg_advisory_xact_lock(8204412087)")
        starting = pool.submit(open_postgres, SecretStr(postgres_head_url), busy_timeout_seconds=30)
        while not (starting.done() or postgres.execute(waits)):
            time.sleep(0.05)
        migrating.rollback()
        with closing(starting.result(60)) as database, database.read() as connection:
            assert connection.execute(text("SHOW lock_timeout")).scalar_one() == "50ms"


def test_a_server_that_takes_connections_and_says_nothing_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(DatabaseUnreachableError):
        open_postgres(
            SecretStr(f"postgresql://turnfold@127.0.0.1:{silent.getsockname()[1]}/turnfold"), busy_timeout_seconds=30
        )


def test_the_silence_of_a_network_is_noticed_unless_the_url_says_otherwise(postgres_head_url: str) -> None:
    for more, wanted in (("", "10000"), ("?tcp_user_timeout=700", "700")):
        with (
            closing(open_postgres(SecretStr(postgres_head_url + more), busy_timeout_seconds=30)) as database,
            database.read() as connection,
        ):
            driver: Any = connection.connection.driver_connection
            assert driver.info.get_parameters()["tcp_user_timeout"] == wanted
            assert driver.info.get_parameters()["keepalives_idle"] == "5"


def test_a_server_that_cannot_be_reached_is_said_to_be_so_without_the_password(postgres_url: str) -> None:
    unreachable: tuple[type[Exception], ...] = (DatabaseUnreachableError,)
    for change, errors in (
        (("/test_", "/nowhere_"), unreachable),
        (("127.0.0.1:", "127.0.0.1:1"), (*unreachable, SettingsError)),
        (("postgresql://turnfold@", "postgresql://nobody:pass-word@"), unreachable),
        (("postgresql://", "postgresql://%zz:pass-word@"), (SettingsError,)),
    ):
        with pytest.raises(errors) as caught:
            open_postgres(SecretStr(postgres_url.replace(*change)), busy_timeout_seconds=30)
        assert "pass-word" not in "".join(traceback.format_exception(caught.value))


def test_what_is_in_the_way_is_told_and_nothing_is_left_behind(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE lease (in_the_way text)")
    with pytest.raises(DatabaseError, match="DuplicateTable"):
        open_postgres(SecretStr(postgres_url), busy_timeout_seconds=30)
    assert tables_of(postgres_url) == {"lease"}


def test_writers_of_one_session_take_turns_and_those_of_others_do_not_wait(stores: StoreSet) -> None:
    stores.make_session()
    stores.make_session("s2")
    inside, leave = threading.Event(), threading.Event()

    def rename_slowly() -> None:
        with stores.database.write(session_id=SESSION) as connection:
            inside.set()
            assert leave.wait(60)
            connection.execute(update(session_table).where(session_table.c.session_id == SESSION).values(title="first"))

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(rename_slowly)
        assert inside.wait(60)
        late = pool.submit(stores.sessions.rename, SESSION, OWNER, "second")
        stores.sessions.rename("s2", OWNER, "other")
        assert stores.sessions.get(SESSION, OWNER).title == ""
        leave.set()
        slow.result()
        late.result()
    assert stores.sessions.get(SESSION, OWNER).title == "second"


def test_while_a_holder_writes_nobody_takes_its_lease_or_writes_to_its_session(stores: StoreSet) -> None:
    locking = text(f"SELECT 1 FROM lease WHERE session_id = '{SESSION}' FOR NO KEY UPDATE NOWAIT")  # noqa: S608  # names of our own

    def lock() -> None:
        with stores.database.write() as connection:
            connection.execute(locking)

    lease = stores.make_session()
    with stores.database.write(lease), pytest.raises(DatabaseBusyError):
        lock()
    lock()


def test_a_lease_runs_out_by_the_databases_clock(stores: StoreSet) -> None:
    short = LeaseStore(stores.database, lease_seconds=0.2, heartbeat_seconds=60)
    lease = stores.make_session()
    stores.leases.release(lease)
    lost = short.acquire(SESSION)
    retained = stores.leases.acquire(SESSION, wait_seconds=60)
    assert retained.fence == lost.fence + 1
    with pytest.raises(LeaseLostError):
        stores.begin(lost, "q1")


def test_all_leases_are_renewed_by_one_statement_but_lost_ones_and_those_that_are_written_under(
    stores: StoreSet,
) -> None:
    leases = [stores.make_session(name) for name in (SESSION, "s2", "s3")]
    late = select(lease_table.c.session_id).where(lease_table.c.expires_at < database_time(15))

    def renew() -> tuple[bool, list[str]]:
        """Returns whether the next heartbeat may take its time, and which are late behind this one."""
        are_renewed = stores.leases._renew(leases)  # noqa: SLF001  # what the heartbeat calls
        with stores.database.read() as connection:
            return are_renewed, sorted(connection.execute(late).scalars())

    stores.clock.move(15)
    with ThreadPoolExecutor(1) as pool, stores.database.write(leases[0]):
        assert pool.submit(renew).result(60) == (False, [SESSION])
    assert set(stores.leases._held()) == set(leases)  # noqa: SLF001  # what the next heartbeat renews
    stores.clock.move(15)
    with stores.database.write() as connection:
        connection.execute(update(lease_table).where(lease_table.c.session_id == "s2").values(owner="another"))
    assert renew() == (True, ["s2"])
    assert {lease.session_id for lease in stores.leases._held()} == {SESSION, "s3"}  # noqa: SLF001  # the same


def test_a_heartbeat_just_before_a_lease_is_committed_does_not_lose_it(stores: StoreSet) -> None:
    stores.leases.release(stores.make_session())
    beats: list[Connection] = []

    def beat(connection: Connection) -> None:
        beats.append(connection)
        if len(beats) == 1:
            stores.leases._renew_all()  # noqa: SLF001  # what the heartbeat calls

    event.listen(Engine, "commit", beat)
    try:
        lease = stores.leases.acquire(SESSION)
    finally:
        event.remove(Engine, "commit", beat)
    assert beats
    assert stores.leases._held() == [lease]  # noqa: SLF001  # what the next heartbeat renews
    with pytest.raises(BusyError):
        stores.leases.acquire(SESSION)


def test_rows_are_in_order_within_a_session_and_over_all_whatever_the_clock_says(stores: StoreSet) -> None:
    for name in (SESSION, "s2"):
        stores.make_session(name)
    ahead = timedelta(days=365) // timedelta(microseconds=1)
    for number, name in enumerate((SESSION, "s2", SESSION, "s2")):
        record = stores.make_record(f"r{number}", number * 6 + 1, number * 6 + 6)
        assert stores.start(replace(record, thread_id=name))
        if number == 0:
            with stores.database.write() as connection:
                connection.execute(update(record_table).values(sequence=record_table.c.sequence + ahead))
    order = select(record_table.c.id).order_by(record_table.c.sequence)
    with stores.database.read() as connection:
        assert connection.execute(order).scalars().all() == ["r1", "r3", "r0", "r2"]
