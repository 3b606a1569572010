"""The table of the server's random keys."""

from __future__ import annotations

import secrets
from typing import Final

from sqlalchemy import Connection, bindparam, insert, select

from graph.store.database import Database
from graph.store.schema import server_key_table

KEY_BYTES: Final = 32

_key = server_key_table.c
_VALUE = select(_key.value).where(_key.name == bindparam("of_name"))


class ServerKeyStore:
    """Makes each key once, by whichever server asks for it first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> bytes:
        """Returns the key of this name, 32 bytes; makes it if there is none."""
        with self._database.read() as connection:
            value = _value(connection, name)
        if value is not None:
            return value
        with self._database.write() as connection:
            # Only one writes at a time: what another server has made meanwhile is seen here.
            if (value := _value(connection, name)) is None:
                value = secrets.token_bytes(KEY_BYTES)
                connection.execute(insert(server_key_table).values(name=name, value=value))
            return value


def _value(connection: Connection, name: str) -> bytes | None:
    value: bytes | None = connection.execute(_VALUE, {"of_name": name}).scalar()
    return value
