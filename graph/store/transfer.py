"""Exports sessions as JSON Lines, and imports them without loss."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from datetime import MAXYEAR, MINYEAR, datetime
from typing import Any, Final, NamedTuple, NoReturn, cast

from sqlalchemy import Column, Connection, Table, TypeDecorator, insert, not_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.types import TypeEngine

from graph.core.text import plain_value
from graph.store.active import IS_IN_PROGRESS
from graph.store.column import JsonTuple, add_once, next_sequence
from graph.store.database import Database, head_revision
from graph.store.row import pack_facts, unpack_facts
from graph.store.schema import (
    METADATA,
    anchor_table,
    image_table,
    lease_table,
    message_table,
    message_vector_table,
    record_table,
    search_session_table,
    session_table,
)
from graph.store.search import index_message
from graph.value.error import InputError, NewerDatabaseError

_FORMAT: Final = "turnfold-export"
_VERSION: Final = 1
# Integer columns have 31 bits in Postgres; counters need room above an imported number.
_LARGEST_NUMBER: Final = 2**30
# A lease is valid only now, a response fingerprint only with the server's key; index and vectors are derived from
# messages.
# Rows without a session aren't exported either.
_NOT_EXPORTED: Final = (anchor_table, lease_table, message_vector_table, search_session_table)
_TABLES: Final = {
    table.name: table for table in METADATA.sorted_tables if "session_id" in table.c and table not in _NOT_EXPORTED
}
# Each database numbers its own rows; the order of the lines preserves the order of `sequence`.
_LEFT_OUT: Final = {"record": {"sequence", "facts"}}
# Columns that an earlier version exported.
_DROPPED: Final = {"turn": {"rating"}}
# Columns of a line unpacked from one column of the row.
_SPELLED: Final = {"record": (Column("kept_facts", JsonTuple), Column("missing_facts", JsonTuple))}
# Errors of parsing a malformed line.
_MALFORMED: Final = (ValueError, TypeError, LookupError, OverflowError, RecursionError)


class Imported(NamedTuple):
    session_count: int
    skipped_count: int


class ReadRow(NamedTuple):
    """A row of an export, and the number of its line."""

    line_number: int
    table: Table
    row: dict[str, Any]


def export_lines(
    database: Database, *, only: str = "", with_images: bool = True, with_whole: bool = True
) -> Iterator[str]:
    """Yields a header line, then all rows of all sessions (or of `only`), from one snapshot.

    Without images, the messages still refer to them. Without the whole of long results and files, the messages have as
    much of them as models are sent.
    """
    tables = [table for table in _TABLES.values() if with_images or table is not image_table]
    wanted = select(session_table.c.session_id).where(session_table.c.deleted_at.is_(None))
    wanted = wanted.order_by(session_table.c.created_at)
    if only:
        wanted = wanted.where(session_table.c.session_id == only)
    with database.read() as connection:
        yield json.dumps({"format": _FORMAT, "version": _VERSION, "revision": head_revision()})
        ids = connection.execute(wanted).scalars()
        for session_id in list(ids):
            for table in tables:
                for row in _rows(connection, table, session_id):
                    if table is message_table and not with_whole:
                        row["whole_text"] = ""
                    yield json.dumps({"table": table.name, "row": row})


def import_lines(database: Database, lines: Iterable[str], *, owner: str | None) -> Imported:
    """Imports an export in one transaction; existing sessions are skipped. Owner None keeps each session's owner.

    Raises:
        InputError: `not_an_export`: a line is invalid; `detail` is its number. Nothing is changed.
        NewerDatabaseError: A newer version wrote the export. Nothing is changed.
    """
    with database.write() as connection:
        is_new = add_rows(connection, read_rows(lines), owner=owner)
    session_count = sum(is_new.values())
    return Imported(session_count, len(is_new) - session_count)


def read_rows(lines: Iterable[str]) -> Iterator[ReadRow]:
    """Yields the rows of an export.

    Raises `InputError` `not_an_export` with the number of an invalid line, or `NewerDatabaseError`.
    """
    numbered = enumerate(lines, start=1)
    _check_head(next(numbered, (1, ""))[1])
    for number, line in numbered:
        try:
            table, row = _parse(line)
        except _MALFORMED:
            raise not_an_export(number) from None
        yield ReadRow(number, table, row)


def add_rows(connection: Connection, rows: Iterable[ReadRow], *, owner: str | None) -> dict[str, bool]:
    """Adds the rows of new sessions, each session's own row first; maps each session id to True if it was new.

    Raises `InputError` `not_an_export`, with the number of the line, for an invalid row.
    """
    is_new: dict[str, bool] = {}
    for number, table, row in rows:
        try:
            session_id = row["session_id"]
            owned = row if owner is None else {**row, "owner": owner}
            if table is session_table:  # waits for a concurrent import of the same session, then skips it
                adding = add_once(table).values(owned).returning(table.c.session_id)
                is_new[session_id] = connection.execute(adding).first() is not None
            elif is_new[session_id] and not _is_in_progress(table, row):
                connection.execute(insert(table).values(_packed(table, owned)))
                if table is message_table:
                    index_message(connection, row)
        except (*_MALFORMED, IntegrityError):
            raise not_an_export(number) from None
    return is_new


def _is_in_progress(table: Table, row: dict[str, Any]) -> bool:
    """True for an unfinished fold, as exported by an earlier version: no process here continues it."""
    return table is record_table and row["status"] == "IN_PROGRESS"


def not_an_export(line_number: int) -> InputError:
    return InputError("not_an_export", str(line_number))


def _rows(connection: Connection, table: Table, session_id: str) -> Iterator[dict[str, Any]]:
    query = select(table).where(table.c.session_id == session_id).order_by(*table.primary_key.columns)
    if table is record_table:
        query = query.where(not_(IS_IN_PROGRESS))
    for row in connection.execute(query).mappings():
        values = _spelled(table, dict(row))
        yield {column.name: _to_json(values[column.name]) for column in _columns(table)}


def _columns(table: Table) -> list[Column[Any]]:
    retained = [column for column in table.c if column.name not in _LEFT_OUT.get(table.name, ())]
    return [*retained, *_SPELLED.get(table.name, ())]


def _spelled(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    if table is not record_table:
        return row
    retained, missing = unpack_facts(row["facts"], row["summary"])
    return {**row, "kept_facts": retained, "missing_facts": missing}


def _packed(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    if table is not record_table:
        return row
    retained, missing = (row.pop(column.name, None) or () for column in _SPELLED[table.name])
    sequence = next_sequence(record_table, row["session_id"])
    return {**row, "sequence": sequence, "facts": pack_facts(retained, missing, row["summary"])}


def _check_head(line: str) -> None:
    try:
        head = json.loads(line)
    except ValueError:
        head = None
    if not isinstance(head, dict) or head.get("format") != _FORMAT:
        raise InputError("not_an_export", "1")
    if head.get("version") != _VERSION or str(head.get("revision")) > head_revision():
        raise NewerDatabaseError(str(head.get("revision")))


def _parse(line: str) -> tuple[Table, dict[str, Any]]:
    """Parses a line to a table and a row and cleans its text; raises one of `_MALFORMED`."""
    entry = plain_value(json.loads(line, parse_constant=_refuse))
    table, row = _TABLES[entry["table"]], entry["row"]
    columns = {column.name: column for column in _columns(table)}
    dropped = _DROPPED.get(table.name, set())
    needed = [name for name, column in columns.items() if not column.nullable and column.server_default is None]
    if (
        not isinstance(row, dict)
        or not row.keys() <= columns.keys() | dropped
        or any(row.get(name) is None for name in needed)
    ):
        raise ValueError(line)
    return table, {name: _from_json(columns[name].type, value) for name, value in row.items() if name in columns}


def _to_json(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return json.dumps(value) if isinstance(value, tuple) else value


def _from_json(column_type: TypeEngine[Any], value: object) -> object:
    """Converts a value to its column's type; raises `ValueError` or `OverflowError` if out of range."""
    if value is None:
        return None
    expected = (column_type.impl_instance if isinstance(column_type, TypeDecorator) else column_type).python_type
    if expected is datetime:
        moment = datetime.fromisoformat(str(value))
        if moment.tzinfo is None or not MINYEAR < moment.year < MAXYEAR:  # in some zones such a day is none
            raise ValueError(value)
        return moment
    if type(value) is not expected and not (expected is float and type(value) is int):
        raise ValueError(value)
    if expected is float and not math.isfinite(cast("float", value)):
        raise ValueError(value)
    if expected is int and abs(cast("int", value)) > _LARGEST_NUMBER:
        raise ValueError(value)
    return tuple(json.loads(str(value))) if isinstance(column_type, JsonTuple) else value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
