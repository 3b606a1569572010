"""The database in Postgres: its connections, the lock of a session, and what is done when it is opened."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr
from sqlalchemy import Connection, Engine, Select, bindparam, create_engine, inspect, select, text

from graph.store.database import IS_HELD, VERSION_TABLE, Database, head_revision, read_revision
from graph.store.postgres import pooled_saver, vector_index
from graph.store.postgres.connection import errors_as_ours, with_patience
from graph.store.schema import METADATA, POSTGRES_TABLES, lease_table, session_table
from graph.value.error import SettingsError

_POOL_SIZE: Final = 8
_POOL_OVERFLOW: Final = 4
_RECYCLE_SECONDS: Final = 1_800
# Nothing but this number is shared by servers that start at once. Of the transaction: PgBouncer knows no other locks.
_LOCK: Final = text("SELECT pg_advisory_xact_lock(8204412087)")
# Another server's migration, and an index of ours over millions of rows, take longer than the limits of the role. For
# the locks of tables these hold: behind one that is waited for all other servers would wait.
_ALONE: Final = (
    text("SET LOCAL statement_timeout = 0"),
    text("SET LOCAL lock_timeout = 0"),
    _LOCK,
    text("SET LOCAL lock_timeout TO DEFAULT"),
)
_SESSION: Final = (
    select(session_table.c.session_id)
    .where(session_table.c.session_id == bindparam("session_id"))
    .with_for_update(key_share=True)
)


class PostgresDatabase(Database):
    """A database that any number of servers share; each session has one writer at a time.

    Whoever writes to a session has its row locked, so what it reads there holds until it commits. Times are those of
    the database's clock.

    Args:
        url: As `CHAT_DATABASE_URL` names it; also through PgBouncer, in transaction mode.
        busy_timeout_seconds: How long to wait for a connection when all are in use.
    """

    # The session is locked first, as by everybody, and then the lease, so that nobody takes it meanwhile.
    is_held: ClassVar[Select[int]] = IS_HELD.join_from(
        session_table, lease_table, session_table.c.session_id == lease_table.c.session_id
    ).with_for_update(key_share=True)

    def __init__(self, url: SecretStr, *, busy_timeout_seconds: float) -> None:
        engine = _make_engine(url.get_secret_value(), busy_timeout_seconds)
        reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        super().__init__(reader, engine)

    def errors_as_ours(self) -> AbstractContextManager[None]:
        """Raises Postgres's errors as ours."""
        return errors_as_ours()

    def _turn_to_write(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _lock_session(self, connection: Connection, session_id: str) -> None:
        connection.execute(_SESSION, {"session_id": session_id})


def open_postgres(url: SecretStr, *, busy_timeout_seconds: float) -> PostgresDatabase:
    """Opens the database; makes its tables, or migrates them to the newest revision, first, if needed.

    Safe when several servers start at once on an empty database: it is all one transaction, and they take turns.

    Raises:
        SettingsError: The URL can't be understood.
        NewerDatabaseError: A newer version of Turnfold made the tables.
        OlderDatabaseError: A version made them that is too old to be migrated.
        DatabaseUnreachableError: No server answers there, or it lets nobody in by this URL.
        DatabaseError: Postgres reports another error; the subclass says which.
    """
    try:
        place = conninfo_to_dict(url.get_secret_value())
    except psycopg.ProgrammingError:
        msg = "CHAT_DATABASE_URL: takes postgresql://user:password@host:port/database"
        raise SettingsError(msg) from None
    database = PostgresDatabase(url, busy_timeout_seconds=busy_timeout_seconds)
    try:
        with database.write() as connection:
            for statement in _ALONE:
                connection.execute(statement)
            _set_up(connection, f"{place.get('host', '')}/{place.get('dbname', '')}")
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
    pooled_saver.set_up(connection)


def _write_revision(connection: Connection) -> None:
    connection.execute(text(f"CREATE TABLE {VERSION_TABLE} (version_num text PRIMARY KEY)"))
    written = text(f"INSERT INTO {VERSION_TABLE} (version_num) VALUES (:revision)")  # noqa: S608  # a name of our own
    connection.execute(written, {"revision": head_revision()})


def _make_engine(url: str, busy_timeout_seconds: float) -> Engine:
    conninfo = with_patience(url)
    return create_engine(
        "postgresql+psycopg://",
        # A name that the server keeps for a statement means another one, or none, behind PgBouncer.
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
