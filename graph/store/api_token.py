"""The table of API tokens of owners' programs; only a token's hash is stored."""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import Row, bindparam, or_, select, update

from graph.server.identity import digest_of
from graph.store.column import add_once
from graph.store.database import Clock, Database
from graph.store.owner_table import api_token_table
from graph.value.error import InputError, StoreError
from graph.value.view import ProgramToken

_LOG = logging.getLogger(__name__)
MOST_TOKENS: Final = 100

_token = api_token_table.c
_IS_LIVE = _token.withdrawn_at.is_(None)
_SHOWN = (_token.id, _token.name, _token.has_all_tools, _token.tools, _token.created_at, _token.last_used_on)
_OF_OWNER = (
    select(*_SHOWN).where(_token.owner == bindparam("of_owner"), _IS_LIVE).order_by(_token.created_at, _token.id)
)
_KNOWN = select(_token.digest, _token.owner, *_SHOWN).where(_token.digest == bindparam("of_digest"), _IS_LIVE)
_ADD = add_once(api_token_table).returning(_token.id)
_WITHDRAW = (
    update(api_token_table)
    .where(_token.id == bindparam("of_id"), _token.owner == bindparam("of_owner"), _IS_LIVE)
    .values(withdrawn_at=bindparam("at"))
)
_USE = (
    update(api_token_table)
    .where(_token.id == bindparam("of_id"), or_(_token.last_used_on.is_(None), _token.last_used_on < bindparam("day")))
    .values(last_used_on=bindparam("day"))
)
_ANY = select(_token.id).where(_IS_LIVE).limit(1)


class ApiTokenStore:
    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def add(self, owner: str, name: str, token: str, tools: Collection[str] | None) -> ProgramToken:
        """Stores a token's hash.

        Raises:
            InputError: `token_name_taken` by a live token of this owner, or `too_many_tokens`.
        """
        made = ProgramToken(secrets.token_urlsafe(9), name, None if tools is None else frozenset(tools), self._clock())
        row = {
            "id": made.id,
            "owner": owner,
            "name": name,
            "digest": digest_of(token),
            "has_all_tools": tools is None,
            "tools": tuple(sorted(tools or ())),
            "created_at": made.created_at,
        }
        with self._database.write() as connection:
            if len(connection.execute(_OF_OWNER, {"of_owner": owner}).all()) >= MOST_TOKENS:
                raise InputError("too_many_tokens", f"≤ {MOST_TOKENS}")
            if connection.execute(_ADD, row).first() is None:
                raise InputError("token_name_taken", name)
        return made

    def of_owner(self, owner: str) -> list[ProgramToken]:
        with self._database.read() as connection:
            return [_shown(row) for row in connection.execute(_OF_OWNER, {"of_owner": owner})]

    def withdraw(self, owner: str, token_id: str) -> None:
        """Revokes a token from the next request on; ignores another owner's token."""
        with self._database.write() as connection:
            connection.execute(_WITHDRAW, {"of_id": token_id, "of_owner": owner, "at": self._clock()})

    def find(self, token: str) -> tuple[str, ProgramToken] | None:
        """Returns the owner and description of a live token, else None; records the day of use."""
        digest = digest_of(token)
        with self._database.read() as connection:
            row = connection.execute(_KNOWN, {"of_digest": digest}).one_or_none()
        # The index search stops at the first differing byte, which for a hash reveals nothing.
        if row is None or not hmac.compare_digest(row.digest, digest):
            return None
        self._note_use(row)
        return row.owner, _shown(row)

    def has_any(self) -> bool:
        with self._database.read() as connection:
            return connection.execute(_ANY).first() is not None

    def _note_use(self, row: Row[*tuple[Any, ...]]) -> None:
        today = self._clock().replace(hour=0, minute=0, second=0, microsecond=0)
        if row.last_used_on is not None and row.last_used_on >= today:
            return
        try:
            with self._database.write() as connection:
                connection.execute(_USE, {"of_id": row.id, "day": today})
        except StoreError as error:  # no reason to refuse the request
            _LOG.warning("the use of a token was not noted: %s", error.code)


def _shown(row: Row[*tuple[Any, ...]]) -> ProgramToken:
    tools = None if row.has_all_tools else frozenset(row.tools)
    return ProgramToken(row.id, row.name, tools, row.created_at, row.last_used_on and row.last_used_on.date())
