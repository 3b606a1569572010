"""Moves everything from a SQLite file into an empty Postgres, and checks that it has arrived."""

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
# Until the end no server begins a session there, and no second migration starts.
_LOCK: Final = text("LOCK TABLE session IN SHARE ROW EXCLUSIVE MODE")
_SET_COUNTER: Final = "SELECT setval(pg_get_serial_sequence('{0}', 'sequence'), (SELECT max(sequence) FROM {0}))"

Row = dict[str, Any]


@dataclass(frozen=True)
class Migrated:
    """What a migration moved.

    Attributes:
        row_counts: By table.
        replaced: Which rows had characters that Postgres can't store, and have U+FFFD in their place.
    """

    row_counts: Mapping[str, int]
    replaced: tuple[str, ...]


@dataclass
class _Sum:
    """How many rows there are, and a sum of their hashes that doesn't depend on their order."""

    count: int = 0
    total: int = 0

    def add(self, row: Row) -> None:
        digest = hashlib.sha256(repr(sorted(row.items())).encode()).digest()
        self.count += 1
        self.total = (self.total + int.from_bytes(digest)) % 2**256


def migrate(source: Path, target: Database, *, busy_timeout_seconds: float) -> Migrated:
    """Moves all rows of all tables in one transaction: everything or, also after a kill, nothing.

    The file is migrated to the newest revision if it's older, and otherwise stays as it is. Leases are moved as free.

    Args:
        source: The SQLite file; no server may use it meanwhile.
        target: An opened Postgres without rows.
        busy_timeout_seconds: How long to wait for another process that uses the file.

    Raises:
        NotADatabaseError: There is no such file, or it's no database of ours.
        DatabaseBusyError: A server uses the file.
        OlderDatabaseError: A version wrote the file that is too old to be migrated.
        DatabaseError: The target has rows already, or what arrived differs; the subclass may say something else.
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
    """Moves the rows of a table, adds their names to `replaced` if they changed, and returns how many there are."""
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
    """Returns a message's JSON without the escapes of characters that Postgres can't store; some old rows have them."""
    if not _ESCAPED.search(content):
        return content
    try:
        said = json.loads(content)
    except ValueError:
        return content  # a damaged row is moved as it is
    plain = plain_value(said)
    return content if plain == said else json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
