"""The source-of-truth database: opening, transactions, third-party errors as ours."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, QueuePool, bindparam, create_engine, event, inspect, select, text
from sqlalchemy.exc import DBAPIError

from graph.error import DatabaseBusyError, LeaseLostError, NotADatabaseError
from graph.store.schema import lease_table, session_table
from graph.store.sqlite.file import (
    check_integrity,
    make_private_file,
    set_up_lock,
    to_database_error,
    use_write_ahead_log,
)

Clock = Callable[[], datetime]

HEAD_REVISION = "0003"
_POOL_SIZE = 8
_CHECK_SECONDS = 2.0
_IS_HELD = select(lease_table.c.fence).where(
    lease_table.c.session_id == bindparam("session_id"),
    lease_table.c.owner == bindparam("holder"),
    lease_table.c.fence == bindparam("fence"),
    lease_table.c.expires_at > bindparam("now"),
)


def utc_now() -> datetime:
    """The time by this machine's clock, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Lease:
    """Fencing token of a session's lease; `Database.write` checks it with every write.

    Attributes:
        holder: Random id of the `LeaseStore` that took it.
        fence: Counts the leases of this session; a later one has a higher fence.
    """

    session_id: str
    holder: str
    fence: int


class Database:
    """Reads and writes in transactions, from any thread.

    Made by `open_database`. Every error of the driver leaves as ours: `DatabaseBusyError`, `DiskFullError`,
    `NotADatabaseError` or plain `DatabaseError`.
    """

    def __init__(self, path: Path, *, busy_timeout_seconds: float, clock: Clock) -> None:
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        self._clock = clock
        self._reader = _make_engine(path, busy_timeout_seconds)
        self._writer = self._reader.execution_options(begin="BEGIN IMMEDIATE")
        # SQLite makes a waiting writer sleep and ask again; threads of one process wait here without that delay.
        self._write_lock = threading.Lock()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Gives a connection that sees one state of the database to the end of the block."""
        with self._errors_as_ours(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def write(self, lease: Lease | None = None) -> Iterator[Connection]:
        """Gives a connection that alone may write; commits at the end of the block, rolls back on any exception.

        Args:
            lease: The caller's lease, checked in the same transaction: a worker that has lost it changes nothing.

        Raises:
            LeaseLostError: The lease has run out or somebody else has it.
        """
        if not self._write_lock.acquire(timeout=self._busy_timeout_seconds):
            raise DatabaseBusyError(str(self._path))
        try:
            with self._errors_as_ours(), self._writer.begin() as connection:
                if lease is not None:
                    self._verify(connection, lease)
                yield connection
        finally:
            self._write_lock.release()

    def check(self) -> None:
        """Reads a table, for the health check."""
        with self.read() as connection:
            connection.execute(select(session_table.c.session_id).limit(1)).first()

    def close(self) -> None:
        """Closes every pooled connection."""
        self._reader.dispose()

    def _verify(self, connection: Connection, lease: Lease) -> None:
        proof = {"session_id": lease.session_id, "holder": lease.holder, "fence": lease.fence, "now": self._clock()}
        if connection.execute(_IS_HELD, proof).first() is None:
            raise LeaseLostError

    @contextmanager
    def _errors_as_ours(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise to_database_error(error.orig, self._path) from error


def open_database(path: Path, *, busy_timeout_seconds: float, clock: Clock = utc_now) -> Database:
    """Opens the database at `path`; makes it or brings it to the newest revision first, if needed.

    Safe when several processes start at once on a file that isn't there yet.

    Raises:
        NotADatabaseError: The file is no database, a damaged one, or one of another program.
        NewerDatabaseError: A newer version of Turnfold wrote it.
        DatabaseBusyError: Another process kept it locked for longer than the busy timeout.
        DatabaseError: The file or its folder can't be made, read or written.
    """
    make_private_file(path)
    database = Database(path, busy_timeout_seconds=busy_timeout_seconds, clock=clock)
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
        revision = _read_revision(connection, path)
    if revision != HEAD_REVISION:
        from graph.store.upgrade import upgrade  # noqa: PLC0415  # Alembic is slower to import than all the rest

        with database.write() as connection:
            upgrade(connection, revision, path)
    database.close()  # a connection of before would go on reporting the old mode
    # Last, as it changes the file: one that isn't ours to use stays as it is.
    use_write_ahead_log(path, busy_timeout_seconds)


def _read_revision(connection: Connection, path: Path) -> str | None:
    """The revision in the file, None if it's a new one; plain SQL, as Alembic is slow to start."""
    tables = inspect(connection).get_table_names()
    if "alembic_version" in tables:
        found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return found
    if tables:
        raise NotADatabaseError(str(path))
    return None


def _make_engine(path: Path, busy_timeout_seconds: float) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=QueuePool,
        pool_size=_POOL_SIZE,
        max_overflow=-1,
        connect_args={"timeout": busy_timeout_seconds, "check_same_thread": False},
        hide_parameters=True,  # a parameter may be message text
    )

    @event.listens_for(engine, "connect")
    def _prepare(driver: Any, _: object) -> None:  # noqa: ANN401  # the driver's own connection
        driver.isolation_level = None  # the driver would begin transactions by itself, and not for every statement
        driver.execute("PRAGMA foreign_keys=ON")
        driver.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))

    return engine
