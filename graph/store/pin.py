"""The table of pinned messages. No lease needed: pins take effect with the next turn."""

from __future__ import annotations

from typing import Final

from sqlalchemy import and_, bindparam, delete, insert, select

from graph.store.archive import MESSAGE_COLUMNS, to_archived
from graph.store.column import database_time
from graph.store.database import Database
from graph.store.row import IS_LIVE, WITH_TURN
from graph.store.schema import message_table, pin_table
from graph.value.record import ArchivedMessage

_pin = pin_table.c
_message = message_table.c
_IS_PINNED: Final = and_(_pin.session_id == _message.session_id, _pin.message_id == _message.message_id)
_LIVE: Final = (
    select(*MESSAGE_COLUMNS)
    .select_from(WITH_TURN.join(pin_table, _IS_PINNED))
    .where(IS_LIVE, _pin.session_id == bindparam("of_session"))
    .order_by(_message.position)
)


class PinStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, session_id: str, message_id: str, *, owner: str) -> None:
        """Pins a message; it must not be pinned yet."""
        row = {"session_id": session_id, "message_id": message_id, "owner": owner}
        with self._database.write(session_id=session_id) as connection:
            connection.execute(insert(pin_table).values(**row, created_at=database_time()))

    def remove(self, session_id: str, message_id: str) -> None:
        """Unpins a message; ignores unpinned ones."""
        is_it = and_(_pin.session_id == session_id, _pin.message_id == message_id)
        with self._database.write(session_id=session_id) as connection:
            connection.execute(delete(pin_table).where(is_it))

    def live(self, session_id: str) -> list[ArchivedMessage]:
        with self._database.read() as connection:
            return [to_archived(row) for row in connection.execute(_LIVE, {"of_session": session_id})]
