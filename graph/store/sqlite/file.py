"""SQLite files: private permissions, locks between processes, integrity checks, and mapping of SQLite's errors."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from graph.value.error import DatabaseBusyError, DatabaseError, DiskFullError, NotADatabaseError

PRIVATE_MODE = 0o600
_POLL_SECONDS = 0.02
_STEPS_BETWEEN_LOOKS = 10_000
_PRIMARY_CODE_MASK = 0xFF
_BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED_CODES = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}


def make_private_file(path: Path) -> None:
    """Creates the file and its folder if missing, readable by this user only.

    SQLite gives its `-wal` and `-shm` files the mode of the database, so it must be right before the first connection.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_MODE)
        try:
            if stat.S_IMODE(os.fstat(descriptor).st_mode) != PRIVATE_MODE:
                os.fchmod(descriptor, PRIVATE_MODE)
        finally:
            os.close(descriptor)
    except OSError as error:
        detail = f"{path}: {error.strerror}"
        raise DatabaseError(detail) from error


@contextmanager
def set_up_lock(path: Path, *, wait_seconds: float) -> Iterator[None]:
    """Serialises the setup of the database at `path` between processes and threads.

    SQLite's own locks don't cover this: a change of the journal mode may fail as busy without waiting. Raises
    `DatabaseBusyError` after `wait_seconds`.
    """
    lock_path = path.with_name(f"{path.name}.lock")
    make_private_file(lock_path)
    deadline = time.monotonic() + wait_seconds
    with lock_path.open("rb") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise DatabaseBusyError(str(path)) from error
                time.sleep(_POLL_SECONDS)
        yield


@contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Marks the database at `path` as used by a server, until the end of the block or of the process."""
    with _use_lock(path).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Ensures that no server uses the database during the block, else raises `DatabaseBusyError`."""
    with _use_lock(path).open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            detail = f"{path} is in use by a server"
            raise DatabaseBusyError(detail) from error
        yield


def _use_lock(path: Path) -> Path:
    lock_path = path.with_name(f"{path.name}.use")
    make_private_file(lock_path)
    return lock_path


@contextmanager
def connect(path: Path, busy_timeout_seconds: float) -> Iterator[sqlite3.Connection]:
    with errors_as_ours(path), closing(sqlite3.connect(path, timeout=busy_timeout_seconds)) as connection:
        yield connection


def check_integrity(path: Path, *, busy_timeout_seconds: float, limit_seconds: float) -> None:
    """Raises `NotADatabaseError` for a damaged file; a file too large for the time limit passes."""
    until = time.monotonic() + limit_seconds
    with connect(path, busy_timeout_seconds) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS_BETWEEN_LOOKS)
        try:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                return
            raise
    if found != ("ok",):
        raise NotADatabaseError(str(path))


@contextmanager
def errors_as_ours(path: Path) -> Iterator[None]:
    """Maps the driver's errors, also those wrapped by SQLAlchemy, to ours."""
    try:
        yield
    except DBAPIError as error:
        raise _to_database_error(error.orig, path) from error
    except sqlite3.Error as error:
        raise _to_database_error(error, path) from error


def _to_database_error(error: BaseException | None, path: Path) -> DatabaseError:
    """Maps an error of the driver by code; its message isn't used, as it may quote values."""
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE_MASK
    if code in _BUSY_CODES:
        return DatabaseBusyError(str(path))
    if code == sqlite3.SQLITE_FULL:
        return DiskFullError(str(path))
    if code in _DAMAGED_CODES:
        return NotADatabaseError(str(path))
    return DatabaseError(getattr(error, "sqlite_errorname", type(error).__name__))
