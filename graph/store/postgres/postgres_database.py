"""The database in Postgres: connections, row locks of sessions, and setup."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr
from sqlalchemy import Connection, Engine, create_engine, inspect, text

from graph.store.database import VERSION_TABLE, Database, head_revision, read_revision
from graph.store.postgres import checkpoint, vector_index
from graph.store.postgres.connection import errors_as_ours, with_patience
from graph.store.schema import METADATA, POSTGRES_TABLES
from graph.value.error import SettingsError

_POOL_SIZE: Final = 8
_POOL_OVERFLOW: Final = 4
_RECYCLE_SECONDS: Final = 1_800
# The number is shared by all servers. A transaction lock: PgBouncer supports no session locks.
_LOCK: Final = text("SELECT pg_advisory_xact_lock(8204412087)")
# Another server's migration, or indexing millions of rows, may exceed the role's timeouts. The lock timeout applies
# again to table locks: all other servers would queue behind a pending one.
_ALONE: Final = (
    text("SET LOCAL statement_timeout = 0"),
    text("SET LOCAL lock_timeout = 0"),
    _LOCK,
    text("SET LOCAL lock_timeout TO DEFAULT"),
)


class PostgresDatabase(Database):
    """A database shared by any number of servers; each session has one writer at a time.

    A writer locks the row of the session's lease, so its reads of the session hold until commit. Times are the
    database's. The URL may lead through PgBouncer in transaction mode.
    """

    def __init__(self, url: SecretStr, *, busy_timeout_seconds: float) -> None:
        engine = _make_engine(url.get_secret_value(), busy_timeout_seconds)
        reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        super().__init__(reader, engine)

    def errors_as_ours(self) -> AbstractContextManager[None]:
        return errors_as_ours()

    def _turn_to_write(self) -> AbstractContextManager[None]:
        return nullcontext()


def open_postgres(url: SecretStr, *, busy_timeout_seconds: float) -> PostgresDatabase:
    """Opens the database; creates the tables or migrates them to the newest revision if needed.

    Safe when several servers start at once on an empty database: one transaction under one lock.

    Raises:
        SettingsError: The URL can't be parsed.
        NewerDatabaseError: A newer version of Turnfold created the tables.
        OlderDatabaseError: The tables are too old to be migrated.
        DatabaseUnreachableError: The server can't be reached or refuses the login.
    """
    try:
        parameters = conninfo_to_dict(url.get_secret_value())
    except psycopg.ProgrammingError:
        msg = "CHAT_DATABASE_URL: takes postgresql://user:password@host:port/database"
        raise SettingsError(msg) from None
    database = PostgresDatabase(url, busy_timeout_seconds=busy_timeout_seconds)
    try:
        with database.write() as connection:
            for statement in _ALONE:
                connection.execute(statement)
            _set_up(connection, f"{parameters.get('host', '')}/{parameters.get('dbname', '')}")
    except BaseException:
        database.close()
        raise
    return database


def _set_up(connection: Connection, name: str) -> None:
    if not inspect(connection).has_table(VERSION_TABLE):
        METADATA.create_all(connection, tables=POSTGRES_TABLES, checkfirst=False)
        vector_index.create_index(connection)
        _write_revision(connection)
    elif (revision := read_revision(connection)) != head_revision():
        from graph.store.upgrade import upgrade  # noqa: PLC0415  # Alembic is slower to import than all the rest

        upgrade(connection, revision, name)
    checkpoint.set_up(connection)


def _write_revision(connection: Connection) -> None:
    connection.execute(text(f"CREATE TABLE {VERSION_TABLE} (version_num text PRIMARY KEY)"))
    written = text(f"INSERT INTO {VERSION_TABLE} (version_num) VALUES (:revision)")  # noqa: S608  # a name of our own
    connection.execute(written, {"revision": head_revision()})


def _make_engine(url: str, busy_timeout_seconds: float) -> Engine:
    conninfo = with_patience(url)
    return create_engine(
        "postgresql+psycopg://",
        # Behind PgBouncer, the name of a prepared statement may refer to a different statement or to none.
        creator=lambda: psycopg.connect(conninfo, prepare_threshold=None),
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_OVERFLOW,
        pool_timeout=busy_timeout_seconds,
        pool_pre_ping=True,
        pool_use_lifo=True,
        pool_recycle=_RECYCLE_SECONDS,
        use_native_hstore=False,
        hide_parameters=True,  # a parameter may be message text
    )
