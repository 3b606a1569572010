"""Backs up and restores the SQLite database, and moves it to Postgres."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Table, insert, select, text, update

from graph.core.text import plain_text, plain_value
from graph.store.database import Database
from graph.store.schema import POSTGRES_TABLES, lease_table, message_table
from graph.store.search import index_message
from graph.store.sqlite.file import alone, check_integrity, connect, make_private_file, set_up_lock
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.value.error import DatabaseError, NotADatabaseError

_CHECK_SECONDS: Final = 60.0
_SIDE_FILES: Final = ("-wal", "-shm")


def back_up(source: Path, target: Path, *, busy_timeout_seconds: float) -> None:
    """Copies the database, as one snapshot, to a new file, while servers may use it; raises `DatabaseError`."""
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
    """Replaces the database by a backup, migrated to this version; returns the new path of the replaced file.

    Raises:
        NotADatabaseError: The backup is damaged or no database of ours; nothing is changed.
        NewerDatabaseError: A newer version wrote the backup; nothing is changed.
        OlderDatabaseError: The backup is too old to be migrated; nothing is changed.
        DatabaseBusyError: A server is using the database; nothing is changed.
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
            retained = _set_aside(target, now)
            copy.rename(target)
    return retained


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
    retained = path.with_name(f"{path.name}.before-{now:%Y%m%dT%H%M%S%fZ}")
    for name in ("", *_SIDE_FILES):
        file = path.with_name(path.name + name)
        if file.exists():
            file.rename(retained.with_name(retained.name + name))
    return retained


_BATCH: Final = 500
_ESCAPED: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
# Keeps servers from adding sessions, and a second migration from starting.
_LOCK: Final = text("LOCK TABLE session IN SHARE ROW EXCLUSIVE MODE")
_SET_COUNTER: Final = "SELECT setval(pg_get_serial_sequence('{0}', 'sequence'), (SELECT max(sequence) FROM {0}))"

Row = dict[str, Any]


@dataclass(frozen=True)
class Migrated:
    """Row counts by table, and rows with characters that Postgres can't store, replaced by U+FFFD."""

    row_counts: Mapping[str, int]
    replaced: tuple[str, ...]


@dataclass
class _Sum:
    """Number of rows, and a sum of their hashes independent of their order."""

    count: int = 0
    total: int = 0

    def add(self, row: Row) -> None:
        digest = hashlib.sha256(repr(sorted(row.items())).encode()).digest()
        self.count += 1
        self.total = (self.total + int.from_bytes(digest)) % 2**256


def migrate(source: Path, target: Database, *, busy_timeout_seconds: float) -> Migrated:
    """Moves all rows of all tables in one transaction: everything or, even after a kill, nothing.

    An older file is first migrated to the newest revision; otherwise the file is unchanged. Leases are moved as free.

    Raises:
        NotADatabaseError: There is no such file, or it is no database of ours.
        DatabaseBusyError: A server uses the file.
        OlderDatabaseError: The file is too old to be migrated.
        DatabaseError: The target has rows already, or the moved rows differ.
    """
    if not source.is_file():
        raise NotADatabaseError(str(source))
    with (
        alone(source),
        closing(open_sqlite(source, busy_timeout_seconds=busy_timeout_seconds)) as file,
        file.read() as reader,
        target.write() as writer,
    ):
        writer.execute(_LOCK)
        for table in POSTGRES_TABLES:
            if writer.execute(select(table).limit(1)).first() is not None:
                detail = f"the table {table.name} of the target has rows already; name an empty database"
                raise DatabaseError(detail)
        replaced: list[str] = []
        counts = {table.name: _move(table, reader, writer, replaced) for table in POSTGRES_TABLES}
    return Migrated(counts, tuple(replaced))


def _move(table: Table, reader: Connection, writer: Connection, replaced: list[str]) -> int:
    """Moves the rows of a table, adds changed ones to `replaced`, and returns their number."""
    sent, arrived = _Sum(), _Sum()
    rows = _plain_rows(table, reader, replaced)
    while batch := list(islice(rows, _BATCH)):
        writer.execute(insert(table), batch)
        for row in batch:
            sent.add(row)
            if table is message_table:
                index_message(writer, row)
    for found in _rows(table, writer):
        arrived.add(found)
    if sent != arrived:
        detail = (
            f"{table.name}: {sent.count} rows were sent, and {arrived.count} or other ones arrived; nothing is moved"
        )
        raise DatabaseError(detail)
    if table.autoincrement_column is not None:
        writer.execute(text(_SET_COUNTER.format(table.name)))
    return sent.count


def _rows(table: Table, connection: Connection) -> Iterator[Row]:
    found = connection.execute(select(table).execution_options(yield_per=_BATCH))
    return (dict(row) for row in found.mappings())


def _plain_rows(table: Table, reader: Connection, replaced: list[str]) -> Iterator[Row]:
    for row in _rows(table, reader):
        values = {name: plain_text(value) if isinstance(value, str) else value for name, value in row.items()}
        if table is message_table:
            values["content"] = _plain_content(values["content"])
        if values != row:
            place = ", ".join(f"{column.name} {values[column.name]}" for column in table.primary_key)
            replaced.append(f"{table.name}: {place}")
        if table is lease_table:
            values |= {"owner": "", "expires_at": None}
        yield values


def _plain_content(content: str) -> str:
    """Returns a message's JSON without escapes of characters that Postgres can't store, as in some old rows."""
    if not _ESCAPED.search(content):
        return content
    try:
        plain_source = json.loads(content)
    except ValueError:
        return content  # a damaged row is moved unchanged
    plain = plain_value(plain_source)
    return content if plain == plain_source else json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
