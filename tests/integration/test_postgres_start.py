from __future__ import annotations

import socket
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import text

from graph.error import DatabaseError, DatabaseUnreachableError, SettingsError
from graph.store.postgres.postgres_database import open_postgres
from tests.fake.postgres import PostgresServer

pytestmark = pytest.mark.postgres


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


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("/test_", "/nowhere_"), DatabaseUnreachableError),
        (("127.0.0.1:", "127.0.0.1:1"), (DatabaseUnreachableError, SettingsError)),
        (("postgresql://turnfold@", "postgresql://nobody:pass-word@"), DatabaseUnreachableError),
        (("postgresql://", "postgresql://%zz:pass-word@"), SettingsError),
    ],
)
def test_a_server_that_cannot_be_reached_is_said_to_be_so_without_the_password(
    postgres_url: str, change: tuple[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        open_postgres(SecretStr(postgres_url.replace(*change)), busy_timeout_seconds=30)
    assert "pass-word" not in "".join(traceback.format_exception(caught.value))


def test_what_is_in_the_way_is_told_and_nothing_is_left_behind(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE lease (in_the_way text)")
    with pytest.raises(DatabaseError, match="DuplicateTable"):
        open_postgres(SecretStr(postgres_url), busy_timeout_seconds=30)
    assert tables_of(postgres_url) == {"lease"}
