"""The source-of-truth database: opening, migrating, transactions, and third-party errors as ours."""

from __future__ import annotations

import sqlite3
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
from graph.store.sqlite.file import check_integrity, connect, make_private_file, set_up_lock, to_database_error

Clock = Callable[[], datetime]

_MIGRATIONS = Path(__file__).parent / "migration" / "versions"
_POOL_SIZE = 8
_CHECK_SECONDS = 2.0
_IS_HELD = select(lease_table.c.fence).where(
    lease_table.c.session_id == bindparam("session_id"),
    lease_table.c.owner == bindparam("holder"),
    lease_table.c.fence == bindparam("fence"),
    lease_table.c.expires_at > bindparam("now"),
)


def utc_now() -> datetime:
    """Returns the time by this machine's clock, in UTC."""
    return datetime.now(UTC)


def head_revision() -> str:
    """Returns the newest revision, by the names of the migration files: Alembic is slow to import."""
    return max(file.name.partition("_")[0] for file in _MIGRATIONS.glob("*.py"))


@dataclass(frozen=True)
class Lease:
    """Fencing token of a session's lease; `Database.write` checks it with every write.

    Attributes:
        holder: Random id of the `LeaseStore` that took it.
        fence: Number of the lease within its session; a later lease has a higher one.
    """

    session_id: str
    holder: str
    fence: int


class Database:
    """Reads and writes in transactions, from any thread; opened by `open_database`.

    Every error of the driver is raised as ours: `DatabaseBusyError`, `DiskFullError`, `NotADatabaseError` or plain
    `DatabaseError`.
    """

    def __init__(self, path: Path, *, busy_timeout_seconds: float, clock: Clock) -> None:
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        self._clock = clock
        self._reader = _make_engine(path, busy_timeout_seconds)
        self._writer = self._reader.execution_options(begin="BEGIN IMMEDIATE")
        # SQLite lets a waiting writer sleep and poll; threads of one process queue here without that delay.
        self._write_lock = threading.Lock()
        self._shared = threading.local()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yields a connection that sees one snapshot of the database until the end of the block.

        Within a block of `reading` it is that block's snapshot.
        """
        shared: Connection | None = getattr(self._shared, "connection", None)
        with self._errors_as_ours():
            if shared is not None:
                yield shared
                return
            with self._reader.begin() as connection:
                yield connection

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Has all reads of this thread within the block see one snapshot, in one transaction.

        What is written within the block isn't seen in it.
        """
        if getattr(self._shared, "connection", None) is not None:
            yield
            return
        with self.read() as connection:
            self._shared.connection = connection
            try:
                yield
            finally:
                self._shared.connection = None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Has all that this thread writes within the block committed at its end, or nothing of it after an exception.

        Reads within the block see what was written in it.

        Raises:
            DatabaseBusyError: Another thread or process kept on writing.
        """
        before = getattr(self._shared, "connection", None), getattr(self._shared, "writer", None)
        with self.write() as connection:
            self._shared.connection = self._shared.writer = connection
            try:
                yield
            finally:
                self._shared.connection, self._shared.writer = before

    @contextmanager
    def write(self, lease: Lease | None = None) -> Iterator[Connection]:
        """Yields the only connection that may write; commits at the end of the block, rolls back on any exception.

        Within a block of `writing` that block's end does so.

        Args:
            lease: The caller's lease, checked in the same transaction: a worker that lost it can write nothing.

        Raises:
            LeaseLostError: The lease has expired or was taken over.
        """
        shared: Connection | None = getattr(self._shared, "writer", None)
        if shared is not None:
            with self._errors_as_ours():
                if lease is not None:
                    self._verify(shared, lease)
                yield shared
            return
        if not self._write_lock.acquire(timeout=self._busy_timeout_seconds):
            raise DatabaseBusyError(str(self._path))
        try:
            with self._errors_as_ours(), self._writer.begin() as connection:
                if lease is not None:
                    self._verify(connection, lease)
                yield connection
        finally:
            self._write_lock.release()

    @property
    def engine(self) -> Engine:
        """What all connections come from, for figures of it."""
        return self._reader

    def check(self) -> None:
        """Reads from a table, for the health check."""
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
        except sqlite3.Error as error:
            raise to_database_error(error, self._path) from error


def open_database(path: Path, *, busy_timeout_seconds: float, clock: Clock = utc_now) -> Database:
    """Opens the database at `path`; creates it or migrates it to the newest revision first, if needed.

    Safe when several processes start at once on a file that doesn't exist yet.

    Raises:
        NotADatabaseError: The file is no database, a damaged one, or one of another program.
        NewerDatabaseError: A newer version of Turnfold wrote it.
        DatabaseBusyError: Another process kept it locked for longer than the busy timeout.
        DatabaseError: The file or its folder can't be created, read or written.
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
    if revision != head_revision():
        from graph.store.upgrade import upgrade  # noqa: PLC0415  # Alembic is slower to import than all the rest

        with database.write() as connection:
            upgrade(connection, revision, path)
    database.close()  # an open connection would keep reporting the old mode
    # Last, because it changes the file: one that we refuse must stay as it is.
    with connect(path, busy_timeout_seconds) as plain:
        plain.execute("PRAGMA journal_mode=WAL")  # readers don't wait for a writer; the mode is kept in the file


def _read_revision(connection: Connection, path: Path) -> str | None:
    """Returns the revision in the file, None if the file is new. Plain SQL, because Alembic is slow to import."""
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
        driver.isolation_level = None  # else the driver begins transactions itself, and not for every statement
        driver.execute("PRAGMA foreign_keys=ON")
        driver.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # Sent to the driver itself: there is one for each of dozens of transactions a turn.
        statement = connection.get_execution_options().get("begin", "BEGIN")
        connection.connection.cursor().execute(statement)

    return engine
