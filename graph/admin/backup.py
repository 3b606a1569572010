"""Copies the source-of-truth database while it's in use, and puts a copy back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from sqlalchemy import update

from graph.error import DatabaseError, NotADatabaseError
from graph.store.database import open_database
from graph.store.schema import lease_table
from graph.store.sqlite.file import alone, check_integrity, is_new, make_private_file, set_up_lock, to_database_error

_CHECK_SECONDS: Final = 60.0
_SIDE_FILES: Final = ("-wal", "-shm")


def back_up(source: Path, target: Path, *, busy_timeout_seconds: float) -> None:
    """Copies the database to a new file as it stands at one moment; servers go on reading and writing meanwhile.

    Raises:
        DatabaseError: Or one of its kinds: the source can't be read, the target can't be written or is there already.
    """
    if not source.is_file():
        raise NotADatabaseError(str(source))
    if target.exists():
        detail = f"{target} is there already"
        raise DatabaseError(detail)
    check_integrity(source, busy_timeout_seconds=busy_timeout_seconds, limit_seconds=_CHECK_SECONDS)
    half = target.with_name(f"{target.name}.half")
    half.unlink(missing_ok=True)
    make_private_file(half)
    try:
        _copy(source, half, busy_timeout_seconds)
        check_integrity(half, busy_timeout_seconds=busy_timeout_seconds, limit_seconds=_CHECK_SECONDS)
        half.rename(target)
    finally:
        for name in ("", *_SIDE_FILES):
            half.with_name(half.name + name).unlink(missing_ok=True)


def restore(source: Path, target: Path, *, now: datetime, busy_timeout_seconds: float) -> Path | None:
    """Puts a backup in the database's place, brought to this version's tables; what was there is kept beside it.

    Args:
        source: The backup; it stays as it is.
        target: The database.
        now: For the name of the copy of what was there.
        busy_timeout_seconds: How long to wait for a lock.

    Returns:
        Where what was there is kept, None if nothing was.

    Raises:
        NotADatabaseError: The backup is no database of ours, or damaged; nothing is changed.
        NewerDatabaseError: A newer version wrote it; nothing is changed.
        DatabaseBusyError: A server is using the database; nothing is changed.
        DatabaseError: Or another of its kinds, for what SQLite refused.
    """
    if not source.is_file():
        raise NotADatabaseError(str(source))
    check_integrity(source, busy_timeout_seconds=busy_timeout_seconds, limit_seconds=_CHECK_SECONDS)
    half = target.with_name(f"{target.name}.half")
    half.unlink(missing_ok=True)
    make_private_file(half)
    try:
        _copy(source, half, busy_timeout_seconds)
        if is_new(half):
            raise NotADatabaseError(str(source))
        with (
            closing(open_database(half, busy_timeout_seconds=busy_timeout_seconds)) as database,
            database.write() as connection,
        ):
            # Who held a session was of the moment of the backup.
            connection.execute(update(lease_table).values(owner="", expires_at=None))
        with set_up_lock(target, wait_seconds=busy_timeout_seconds), alone(target):
            kept = _set_aside(target, now)
            half.rename(target)
    finally:
        for name in ("", *_SIDE_FILES, ".lock"):
            half.with_name(half.name + name).unlink(missing_ok=True)
    return kept


def _set_aside(path: Path, now: datetime) -> Path | None:
    """Moves the database away with its journal, which belongs to it."""
    if not path.exists():
        return None
    kept = path.with_name(f"{path.name}.before-{now:%Y%m%dT%H%M%S%fZ}")
    for name in ("", *_SIDE_FILES):
        file = path.with_name(path.name + name)
        if file.exists():
            file.rename(kept.with_name(kept.name + name))
    return kept


def _copy(source: Path, target: Path, busy_timeout_seconds: float) -> None:
    """Copies all pages as one reader sees them: it holds no writer up, and none makes it begin anew."""
    with (
        _errors_as_ours(source),
        closing(sqlite3.connect(source, timeout=busy_timeout_seconds)) as reader,
        closing(sqlite3.connect(target, timeout=busy_timeout_seconds)) as writer,
    ):
        reader.backup(writer)


@contextmanager
def _errors_as_ours(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise to_database_error(error, path) from error
