"""What is SQLite's own: private files, set-up by one process at a time, its errors as ours."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from graph.error import DatabaseBusyError, DatabaseError, DiskFullError, NotADatabaseError

PRIVATE_MODE = 0o600
_POLL_SECONDS = 0.02
_STEPS_BETWEEN_LOOKS = 10_000
_PRIMARY_CODE_MASK = 0xFF
_BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED_CODES = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}


def make_private_file(path: Path) -> None:
    """Makes the file and its folder if they aren't there; nobody but this user may read either file or journal.

    SQLite gives its `-wal` and `-shm` files the mode of the database, so it must be right before the first connection.

    Raises:
        DatabaseError: The folder or the file can't be made or opened for writing.
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
    """Lets one process (and one thread of it) at a time set up the database at `path`.

    SQLite's own locks don't cover this: a change of the journal mode may fail as busy without waiting.

    Raises:
        DatabaseBusyError: Another process held the lock for all of `wait_seconds`.
        DatabaseError: The lock file can't be made.
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
    """Says for the block's time that a server uses the database at `path`; ends with the process, however it ends."""
    with _use_lock(path).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Makes sure that no server uses the database at `path`, nor begins to in the block.

    Raises:
        DatabaseBusyError: One does.
    """
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


def use_write_ahead_log(path: Path, busy_timeout_seconds: float) -> None:
    """Lets readers go on while one writes; the mode stays in the file.

    Raises:
        DatabaseError: Or one of its kinds: the file is busy, damaged or can't be written.
    """
    try:
        with closing(sqlite3.connect(path, timeout=busy_timeout_seconds)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.Error as error:
        raise to_database_error(error, path) from error


def check_integrity(path: Path, *, busy_timeout_seconds: float, limit_seconds: float) -> None:
    """Looks for damage in the file; a file too large to be looked through in time is taken as sound.

    Raises:
        NotADatabaseError: It's damaged.
        DatabaseError: Or another of its kinds, for what SQLite refused.
    """
    until = time.monotonic() + limit_seconds
    try:
        with closing(sqlite3.connect(path, timeout=busy_timeout_seconds)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS_BETWEEN_LOOKS)
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            return
        raise to_database_error(error, path) from error
    if found != ("ok",):
        raise NotADatabaseError(str(path))


def is_new(path: Path) -> bool:
    """Whether nothing was ever kept in the database.

    Raises:
        DatabaseError: Or one of its kinds, for what SQLite refused.
    """
    try:
        with closing(sqlite3.connect(path)) as connection:
            return bool(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,))
    except sqlite3.Error as error:
        raise to_database_error(error, path) from error


def to_database_error(error: BaseException | None, path: Path) -> DatabaseError:
    """Turns what the driver raised into our error; only the driver's name of the fault is kept, never a value."""
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE_MASK
    if code in _BUSY_CODES:
        return DatabaseBusyError(str(path))
    if code == sqlite3.SQLITE_FULL:
        return DiskFullError(str(path))
    if code in _DAMAGED_CODES:
        return NotADatabaseError(str(path))
    return DatabaseError(getattr(error, "sqlite_errorname", type(error).__name__))
