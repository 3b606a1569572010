"""Writes all sessions as lines of JSON, and reads them back without loss."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Table, TypeDecorator, insert, select
from sqlalchemy.exc import IntegrityError

from graph.error import InputError, NewerDatabaseError
from graph.store.database import HEAD_REVISION, Database
from graph.store.schema import METADATA, lease_table, session_table

_FORMAT: Final = "turnfold-export"
_VERSION: Final = 1
# Who holds a session is of this moment and this machine alone.
_TABLES: Final = {table.name: table for table in METADATA.sorted_tables if table is not lease_table}
# Counted by each database for itself; the order of the lines keeps what it says.
_LEFT_OUT: Final = {"record": {"sequence"}}


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    session_count: int
    skipped_count: int
    row_count: int


def export_lines(database: Database) -> Iterator[str]:
    """Yields a head line, then each row of every session: messages, turns, all records with their versions, calls.

    All lines are of one moment, whatever is written meanwhile.
    """
    with database.read() as connection:
        yield json.dumps({"format": _FORMAT, "version": _VERSION, "revision": HEAD_REVISION})
        ids = connection.execute(select(session_table.c.session_id).order_by(session_table.c.created_at)).scalars()
        for session_id in list(ids):
            for table in _TABLES.values():
                for row in _rows(connection, table, session_id):
                    yield json.dumps({"table": table.name, "row": row})


def import_lines(database: Database, lines: Iterable[str], *, owner: str) -> Imported:
    """Reads an export in one transaction: all of it or nothing. A session that is there already is left as it is.

    Args:
        database: Where to.
        lines: The export.
        owner: Whose the sessions are from now on, whoever's they were where they come from.

    Raises:
        InputError: `not_an_export`: a line isn't what an export has; `detail` is its number. Nothing is changed.
        NewerDatabaseError: A newer version wrote the export. Nothing is changed.
    """
    numbered = enumerate(lines, start=1)
    _check_head(next(numbered, (1, "")))
    taken, skipped, row_count = set[str](), set[str](), 0
    with database.write() as connection:
        for number, line in numbered:
            table, row = _parse(number, line)
            session_id = row["session_id"]
            if table is session_table:
                known = select(session_table.c.session_id).where(session_table.c.session_id == session_id)
                is_known = connection.execute(known).first() is not None
                (skipped if is_known else taken).add(session_id)
            if session_id in skipped:
                continue
            if session_id not in taken:
                raise InputError("not_an_export", str(number))
            _insert(connection, table, {**row, "owner": owner}, number)
            row_count += 1
    return Imported(len(taken), len(skipped), row_count)


def _insert(connection: Connection, table: Table, row: dict[str, Any], number: int) -> None:
    """Writes a row; one that the table refuses, as it stands there already, is no row of an export."""
    try:
        connection.execute(insert(table).values(row))
    except IntegrityError:
        raise InputError("not_an_export", str(number)) from None


def _rows(connection: Connection, table: Table, session_id: str) -> Iterator[dict[str, Any]]:
    columns = [column for column in table.c if column.name not in _LEFT_OUT.get(table.name, ())]
    query = select(*columns).where(table.c.session_id == session_id).order_by(*table.primary_key.columns)
    for row in connection.execute(query).mappings():
        yield {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}


def _check_head(numbered: tuple[int, str]) -> None:
    head = _as_object(*numbered)
    if head.get("format") != _FORMAT:
        raise InputError("not_an_export", "1")
    if head.get("version") != _VERSION or str(head.get("revision")) > HEAD_REVISION:
        raise NewerDatabaseError(str(head.get("revision")))


def _parse(number: int, line: str) -> tuple[Table, dict[str, Any]]:
    entry = _as_object(number, line)
    table, row = _TABLES.get(str(entry.get("table"))), entry.get("row")
    if table is None or not isinstance(row, dict) or not isinstance(row.get("session_id"), str):
        raise InputError("not_an_export", str(number))
    known = [column for column in table.c if column.name not in _LEFT_OUT.get(table.name, ())]
    needed = [column.name for column in known if not column.nullable and column.server_default is None]
    if not row.keys() <= {column.name for column in known} or any(row.get(name) is None for name in needed):
        raise InputError("not_an_export", str(number))
    try:
        return table, {name: _value(table, name, value) for name, value in row.items()}
    except (ValueError, TypeError):
        raise InputError("not_an_export", str(number)) from None


def _as_object(number: int, line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if not isinstance(entry, dict):
        raise InputError("not_an_export", str(number))
    return entry


def _value(table: Table, name: str, value: object) -> object:
    """Returns the value as its column takes it; SQLite itself would take anything.

    Raises:
        ValueError: It's of another kind.
    """
    if value is None:
        return None
    column = table.c[name].type
    kind = (column.impl_instance if isinstance(column, TypeDecorator) else column).python_type
    if kind is datetime:
        moment = datetime.fromisoformat(str(value))
        if moment.tzinfo is None:
            raise ValueError(name)
        return moment
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise ValueError(name)
    return value
