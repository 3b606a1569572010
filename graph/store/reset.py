"""The table of resets: the turns after which a session's context was emptied, and undo of the last reset."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, RowMapping, and_, delete, insert, select, update

from graph.store.active import adopt_again
from graph.store.database import Database, Lease
from graph.store.schema import reset_table, session_table
from graph.store.session import change_session

_reset = reset_table.c
_session = session_table.c
# Only without a later turn: its messages belong to the context after the reset.
_LAST = (
    select(_reset.turn, _reset.begin_before, _reset.restored_tokens)
    .select_from(reset_table.join(session_table, _session.session_id == _reset.session_id))
    .where(_reset.turn == _session.turn_count, _reset.begin_before.is_not(None))
)


class ResetStore:
    """Empties a session's context and restores it. Records before a reset stay unchanged, but aren't active."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin_context(self, lease: Lease, position: int) -> None:
        """Excludes everything up to this archive position, the last one, from the context; the archive is unchanged."""
        session_id = lease.session_id
        with self._database.write(lease) as connection:
            session = _read_session(connection, session_id)
            begin = session["context_from_position"]
            tokens = session["restored_tokens"]
            _add(connection, session, session["turn_count"], begin_before=begin, restored_tokens=tokens)
            change_session(connection, session_id, context_from_position=position, restored_tokens=0)

    def undo(self, lease: Lease) -> bool:
        """Restores the context before the last reset; returns False if there is none, or a turn has run since."""
        session_id = lease.session_id
        with self._database.write(lease) as connection:
            row = connection.execute(_LAST.where(_reset.session_id == session_id)).one_or_none()
            if row is None:
                return False
            begin, tokens = row.begin_before, row.restored_tokens
            change_session(connection, session_id, context_from_position=begin)
            adopt_again(connection, session_id, begin + 1)  # another answer may have been chosen meanwhile
            change_session(connection, session_id, restored_tokens=tokens)
            connection.execute(delete(reset_table).where(_reset.session_id == session_id, _reset.turn == row.turn))
            return True

    def can_undo(self, session_id: str) -> bool:
        with self._database.read() as connection:
            return connection.execute(_LAST.where(_reset.session_id == session_id)).first() is not None

    def turns(self, session_id: str) -> tuple[int, ...]:
        query = select(_reset.turn).where(_reset.session_id == session_id).order_by(_reset.turn)
        with self._database.read() as connection:
            return tuple(connection.execute(query).scalars())


def extend_context(connection: Connection, session_id: str, turn: int, position: int) -> None:
    """Moves a reset after the last turn to before its question (`position`), because the turn is regenerated."""
    is_behind = and_(_session.session_id == session_id, _session.context_from_position >= position)
    moved = connection.execute(update(session_table).where(is_behind).values(context_from_position=position - 1))
    if moved.rowcount == 0:
        return
    connection.execute(delete(reset_table).where(_reset.session_id == session_id, _reset.turn >= turn))
    if turn > 1:
        _add(connection, _read_session(connection, session_id), turn - 1, begin_before=None, restored_tokens=0)


def _add(connection: Connection, session: RowMapping, turn: int, **values: Any) -> None:  # noqa: ANN401  # columns
    key = {"session_id": session["session_id"], "turn": turn}
    is_there = select(_reset.turn).filter_by(**key)
    if connection.execute(is_there).first() is None:
        connection.execute(insert(reset_table).values(**key, owner=session["owner"], **values))


def _read_session(connection: Connection, session_id: str) -> RowMapping:
    return connection.execute(select(session_table).where(_session.session_id == session_id)).mappings().one()
