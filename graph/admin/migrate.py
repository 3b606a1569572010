"""Migrates a SQLite file to an empty Postgres, and verifies the rows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Table, insert, select, text

from graph.core.text import plain_text, plain_value
from graph.store.database import Database
from graph.store.schema import POSTGRES_TABLES, lease_table, message_table
from graph.store.search import index_message
from graph.store.sqlite.file import alone
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.value.error import DatabaseError, NotADatabaseError

_BATCH: Final = 500
_ESCAPED: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
# Keeps servers from adding sessions, and a second migration from starting.
_LOCK: Final = text("LOCK TABLE session IN SHARE ROW EXCLUSIVE MODE")
_SET_COUNTER: Final = "SELECT setval(pg_get_serial_sequence('{0}', 'sequence'), (SELECT max(sequence) FROM {0}))"

Row = dict[str, Any]


@dataclass(frozen=True)
class Migrated:
    """The result of a migration.

    Attributes:
        row_counts: By table.
        replaced: Rows with characters that Postgres can't store, replaced by U+FFFD.
    """

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

    Args:
        source: The SQLite file; no server may use it meanwhile.
        target: An open Postgres without rows.
        busy_timeout_seconds: Maximum wait for another process that uses the file.

    Raises:
        NotADatabaseError: There is no such file, or it is no database of ours.
        DatabaseBusyError: A server uses the file.
        OlderDatabaseError: The file is too old to be migrated.
        DatabaseError: The target has rows already, or the moved rows differ; the subclass may name another error.
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
        said = json.loads(content)
    except ValueError:
        return content  # a damaged row is moved unchanged
    plain = plain_value(said)
    return content if plain == said else json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
