"""Backs up the database while it is in use, and restores a backup."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from sqlalchemy import update

from graph.store.schema import lease_table
from graph.store.sqlite.file import alone, check_integrity, connect, make_private_file, set_up_lock
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.value.error import DatabaseError, NotADatabaseError

_CHECK_SECONDS: Final = 60.0
_SIDE_FILES: Final = ("-wal", "-shm")


def back_up(source: Path, target: Path, *, busy_timeout_seconds: float) -> None:
    """Copies the database, as one snapshot, to a new file; servers may read and write meanwhile.

    Raises:
        DatabaseError: The source can't be read, or the target exists or can't be written; the subclass says which.
    """
    if not source.is_file():
        raise NotADatabaseError(str(source))
    if target.exists():
        detail = f"{target} is there already"
        raise DatabaseError(detail)
    check_integrity(source, busy_timeout_seconds=busy_timeout_seconds, limit_seconds=_CHECK_SECONDS)
    with _temporary_copy(source, target, busy_timeout_seconds) as copy:
        check_integrity(copy, busy_timeout_seconds=busy_timeout_seconds, limit_seconds=_CHECK_SECONDS)
        copy.rename(target)


def restore(source: Path, target: Path, *, now: datetime, busy_timeout_seconds: float) -> Path | None:
    """Replaces the database by a backup, migrated to this version; the replaced file is renamed.

    Args:
        source: The backup; unchanged.
        target: The database.
        now: For the name of the replaced file.
        busy_timeout_seconds: Maximum wait for a lock.

    Returns:
        The new path of the replaced file, None if there was none.

    Raises:
        NotADatabaseError: The backup is damaged or no database of ours; nothing is changed.
        NewerDatabaseError: A newer version wrote the backup; nothing is changed.
        OlderDatabaseError: The backup is too old to be migrated; nothing is changed.
        DatabaseBusyError: A server is using the database; nothing is changed.
        DatabaseError: SQLite reports another error; the subclass says which.
    """
    if not source.is_file():
        raise NotADatabaseError(str(source))
    check_integrity(source, busy_timeout_seconds=busy_timeout_seconds, limit_seconds=_CHECK_SECONDS)
    with _temporary_copy(source, target, busy_timeout_seconds) as copy:
        with connect(copy, busy_timeout_seconds) as reader:
            (table_count,) = reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if table_count == 0:
            raise NotADatabaseError(str(source))
        with (
            closing(open_sqlite(copy, busy_timeout_seconds=busy_timeout_seconds)) as database,
            database.write() as connection,
        ):
            # The backup's leases are those held at its time.
            connection.execute(update(lease_table).values(owner="", expires_at=None))
        with set_up_lock(target, wait_seconds=busy_timeout_seconds), alone(target):
            kept = _set_aside(target, now)
            copy.rename(target)
    return kept


@contextmanager
def _temporary_copy(source: Path, target: Path, busy_timeout_seconds: float) -> Iterator[Path]:
    """Copies the database to a private file beside `target`, deleted after the block unless it was renamed."""
    copy = target.with_name(f"{target.name}.half")
    copy.unlink(missing_ok=True)
    make_private_file(copy)
    try:
        # All pages in one read transaction: it blocks no writer, and no writer makes it restart.
        with connect(copy, busy_timeout_seconds) as writer, connect(source, busy_timeout_seconds) as reader:
            reader.backup(writer)
        yield copy
    finally:
        for name in ("", *_SIDE_FILES, ".lock"):
            copy.with_name(copy.name + name).unlink(missing_ok=True)


def _set_aside(path: Path, now: datetime) -> Path | None:
    if not path.exists():
        return None
    kept = path.with_name(f"{path.name}.before-{now:%Y%m%dT%H%M%S%fZ}")
    for name in ("", *_SIDE_FILES):
        file = path.with_name(path.name + name)
        if file.exists():
            file.rename(kept.with_name(kept.name + name))
    return kept
