"""The database as a SQLite file: connections, one writer at a time, and setup."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, inspect

from graph.store.column import to_microseconds
from graph.store.database import VERSION_TABLE, Clock, Database, head_revision, read_revision, utc_now
from graph.store.sqlite.file import check_integrity, connect, errors_as_ours, make_private_file, set_up_lock
from graph.value.error import DatabaseBusyError, NotADatabaseError

_POOL_SIZE: Final = 8
_CHECK_SECONDS: Final = 2.0


class SqliteDatabase(Database):
    """A file shared by the processes of one machine, with one writer at a time; `clock` is UTC."""

    def __init__(self, path: Path, *, busy_timeout_seconds: float, clock: Clock) -> None:
        reader = _make_engine(path, busy_timeout_seconds, clock)
        super().__init__(reader, reader.execution_options(begin="BEGIN IMMEDIATE"))
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        # SQLite lets a waiting writer sleep and poll; threads of one process queue here without that delay.
        self._write_lock = threading.Lock()

    def errors_as_ours(self) -> AbstractContextManager[None]:
        return errors_as_ours(self._path)

    @contextmanager
    def _turn_to_write(self) -> Iterator[None]:
        if not self._write_lock.acquire(timeout=self._busy_timeout_seconds):
            raise DatabaseBusyError(str(self._path))
        try:
            yield
        finally:
            self._write_lock.release()


def open_sqlite(path: Path, *, busy_timeout_seconds: float, clock: Clock = utc_now) -> SqliteDatabase:
    """Opens the database at `path`; creates it or migrates it to the newest revision if needed.

    Safe when several processes start at once on a new file.

    Raises:
        NotADatabaseError: The file is no database, is damaged, or belongs to another program.
        NewerDatabaseError: A newer version of Turnfold wrote the file.
        OlderDatabaseError: The file is too old to be migrated.
        DatabaseError: The file or its folder can't be created, read or written, or is locked.
    """
    make_private_file(path)
    database = SqliteDatabase(path, busy_timeout_seconds=busy_timeout_seconds, clock=clock)
    try:
        with set_up_lock(path, wait_seconds=busy_timeout_seconds):
            _set_up(database, path, busy_timeout_seconds)
        check_integrity(path, busy_timeout_seconds=busy_timeout_seconds, limit_seconds=_CHECK_SECONDS)
    except BaseException:
        database.close()
        raise
    return database


def _set_up(database: Database, path: Path, busy_timeout_seconds: float) -> None:
    with database.read() as connection:
        tables = inspect(connection).get_table_names()
        if tables and VERSION_TABLE not in tables:
            raise NotADatabaseError(str(path))
        revision = read_revision(connection) if tables else None
    if revision != head_revision():
        from graph.store.upgrade import upgrade  # noqa: PLC0415  # Alembic is slower to import than all the rest

        with database.write() as connection:
            upgrade(connection, revision, str(path))
    database.close()  # an open connection would keep reporting the old mode
    # Last, because it changes the file: a refused file must stay unchanged.
    with connect(path, busy_timeout_seconds) as plain:
        plain.execute("PRAGMA journal_mode=WAL")  # readers don't wait for a writer; the mode is kept in the file


def _make_engine(path: Path, busy_timeout_seconds: float, clock: Clock) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=QueuePool,
        pool_size=_POOL_SIZE,
        max_overflow=-1,
        connect_args={"timeout": busy_timeout_seconds, "check_same_thread": False},
        hide_parameters=True,  # a parameter may be message text
    )

    def database_time(after_seconds: float) -> int:
        return to_microseconds(clock() + timedelta(seconds=after_seconds))

    @event.listens_for(engine, "connect")
    def _prepare(driver: sqlite3.Connection, _: object) -> None:
        driver.isolation_level = None  # otherwise the driver starts transactions itself, and not for every statement
        driver.execute("PRAGMA foreign_keys=ON")
        driver.execute("PRAGMA synchronous=FULL")
        driver.create_function("database_time", 1, database_time)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # Sent to the driver directly for speed: a turn has dozens of transactions.
        statement = connection.get_execution_options().get("begin", "BEGIN")
        connection.connection.cursor().execute(statement)

    return engine
