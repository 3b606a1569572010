"""Copies the first turns of a session to a new session, in the caller's transaction."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, delete, func, insert, literal, or_, select

from graph.core.attached import references_in
from graph.store.active import IS_COMPLETED, IS_PREPARED, invalidate_from
from graph.store.column import database_time, next_sequence
from graph.store.row import decode_message
from graph.store.schema import (
    attempt_table,
    context_block_table,
    image_table,
    message_table,
    pin_table,
    record_table,
    reset_table,
    session_table,
    turn_table,
)
from graph.store.search import index_message

_message = message_table.c
_image = image_table.c
_record = record_table.c
_pin = pin_table.c
_reset = reset_table.c
_turn = turn_table.c
_attempt = attempt_table.c
_block = context_block_table.c
# The cost of a fold or of a lost cache counts in the original session alone.
_PAID: Final = {"input_tokens": 0, "output_tokens": 0, "is_usage": False, "seconds": 0.0}


def copy_session(
    connection: Connection, origin_id: str, new_id: str, *, after_turn: int, client: str, group: str
) -> None:
    """Creates a session with the turns up to `after_turn`, with all their attempts, records and pins.

    Records that reach further are replaced by their sources or by raw turns. Positions and message ids are preserved;
    records get new ids. Model calls and response fingerprints aren't copied: they belong to the origin.

    Args:
        connection: In a write transaction.
        origin_id: An existing session.
        new_id: Id of the new session.
        after_turn: The last turn to copy; 0 for none.
        client: The program that requested the branch, "" for the page.
        group: The chat group of the branch, "" for none.
    """
    values = {
        "session_id": new_id,
        "created_at": database_time(),
        "updated_at": database_time(),
        "turn_count": after_turn,
        "context_from_position": _context_begin(connection, origin_id, after_turn),
        "client": client,
        "family": group,
        "forked_from": origin_id,
        "forked_after": after_turn,
        "is_pinned": False,
    }
    _copy(connection, session_table, session_table.c.session_id == origin_id, values)
    if after_turn == 0:
        return
    key = {"session_id": new_id}
    _copy(connection, turn_table, and_(_turn.session_id == origin_id, _turn.number <= after_turn), key)
    _copy(connection, attempt_table, and_(_attempt.session_id == origin_id, _attempt.turn <= after_turn), key)
    _copy(connection, reset_table, and_(_reset.session_id == origin_id, _reset.turn <= after_turn), key)
    _copy(connection, context_block_table, _is_newest_block(origin_id), {**key, "lost_tokens": 0})
    rows = _copy_messages(connection, origin_id, new_id, after_turn)
    references = references_in(
        decode_message(row["role"], row["message_id"], row["content"]) for row in rows if "image_url" in row["content"]
    )
    of_turns = select(_message.message_id).where(_message.session_id == origin_id, _message.turn <= after_turn)
    _copy(connection, pin_table, and_(_pin.session_id == origin_id, _pin.message_id.in_(of_turns)), key)
    last_position = rows[-1]["position"]
    _copy(connection, image_table, and_(_image.session_id == origin_id, _image.hash.in_(references)), key)
    _copy_records(connection, origin_id, new_id)
    invalidate_from(connection, new_id, last_position + 1)
    connection.execute(delete(record_table).where(_record.session_id == new_id, _record.to_position > last_position))


def _copy(connection: Connection, table: Table, where: ColumnElement[bool], values: Mapping[str, object]) -> None:
    columns = [_value(values[c.name], c) if c.name in values else c for c in table.c]
    rows = select(*columns).select_from(table).where(where)
    connection.execute(insert(table).from_select([c.name for c in table.c], rows))


def _value(value: object, column: Column[Any]) -> ColumnElement[Any]:
    return value if isinstance(value, ColumnElement) else literal(value, column.type)


def _context_begin(connection: Connection, session_id: str, after_turn: int) -> int:
    """Returns the last position excluded by the newest reset up to this turn, 0 without a reset."""
    of_turns = and_(_reset.session_id == session_id, _reset.turn <= after_turn)
    reset_turn = connection.execute(select(func.max(_reset.turn)).where(of_turns)).scalar()
    if reset_turn is None:
        return 0
    asked = and_(_message.session_id == _turn.session_id, _message.message_id == _turn.user_message_id)
    next_question = (
        select(_message.position)
        .select_from(turn_table.join(message_table, asked))
        .where(_turn.session_id == session_id, _turn.number == reset_turn + 1)
    )
    position = connection.execute(next_question).scalar()
    if position is not None:
        return int(position) - 1
    now = select(session_table.c.context_from_position).where(session_table.c.session_id == session_id)
    return int(connection.execute(now).scalar_one())


def _is_newest_block(session_id: str) -> ColumnElement[bool]:
    other = context_block_table.alias("other")
    of_kind = and_(other.c.session_id == session_id, other.c.kind == _block.kind)
    newest = select(func.max(other.c.version)).where(of_kind).correlate(context_block_table).scalar_subquery()
    return and_(_block.session_id == session_id, _block.version == newest)


def _copy_messages(connection: Connection, origin_id: str, new_id: str, after_turn: int) -> list[dict[str, Any]]:
    of_turns = select(message_table).where(_message.session_id == origin_id, _message.turn <= after_turn)
    rows = [
        {**row, "session_id": new_id}
        for row in connection.execute(of_turns.order_by(_message.position)).mappings().all()
    ]
    connection.execute(insert(message_table), rows)
    for row in rows:
        index_message(connection, row)
    return rows


def _copy_records(connection: Connection, origin_id: str, new_id: str) -> None:
    """Copies records that are or were active, and prepared ones, except merges, which are found by old record ids."""
    was_adopted = and_(IS_COMPLETED, _record.adopted_at.is_not(None))
    retained = or_(was_adopted, and_(IS_PREPARED, _record.sources == ()))
    query = select(record_table).where(_record.session_id == origin_id, retained).order_by(_record.sequence)
    rows = [dict(row) for row in connection.execute(query).mappings()]
    ids: dict[str, str] = {row["id"]: f"rec-{secrets.token_urlsafe(9)}" for row in rows}
    for row in rows:
        links: dict[str, Any] = {name: ids.get(row[name], row[name]) for name in ("id", "replaces", "superseded_by")}
        columns = {"session_id": new_id, "sequence": next_sequence(record_table, new_id)}
        sources = tuple(ids.get(source, source) for source in row["sources"])
        connection.execute(insert(record_table).values({**row, **links, **_PAID, **columns, "sources": sources}))
