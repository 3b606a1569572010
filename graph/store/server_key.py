"""The table of the server's random keys."""

from __future__ import annotations

import secrets
from typing import Final

from sqlalchemy import bindparam, select

from graph.store.database import Database
from graph.store.expression import add_once
from graph.store.schema import server_key_table

KEY_BYTES: Final = 32

_key = server_key_table.c
_VALUE = select(_key.value).where(_key.name == bindparam("of_name"))


class ServerKeyStore:
    """Makes each key once, by whichever server asks for it first."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, bytes] = {}  # no key is ever changed

    def get(self, name: str) -> bytes:
        """Returns the key of this name, 32 bytes; makes it if there is none."""
        if name not in self._known:
            self._known[name] = self._get(name)
        return self._known[name]

    def _get(self, name: str) -> bytes:
        with self._database.read() as connection:
            value: bytes | None = connection.execute(_VALUE, {"of_name": name}).scalar()
        if value is not None:
            return value
        with self._database.write() as connection:
            connection.execute(add_once(server_key_table).values(name=name, value=secrets.token_bytes(KEY_BYTES)))
            # Another server's, if it was first.
            return bytes(connection.execute(_VALUE, {"of_name": name}).scalar_one())
