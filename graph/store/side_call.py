"""The calls that belong to no turn: side requests of programs, in a table of their own, and titles of sessions."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, func, insert, select

from graph.store.database import Database
from graph.store.schema import aside_table, call_table, session_table
from graph.store.session import change_session, title_values

_ADD: Final = insert(aside_table)
# What it is made for, and no turn: so it is in no figure of folds, inputs or estimates.
_KIND: Final = {"kind": "title", "turn": 0, "attempt": 0}
_call, _session = call_table.c, session_table.c


@dataclass(frozen=True)
class SideCall:
    """A model call of no turn that has ended, failed or not. Nothing of its text is kept.

    Attributes:
        sent_tokens: Our estimate for what was sent.
        usage_input_tokens: As reported by the provider, None if it wasn't; the same for the next two.
        usage_cached_tokens: The part of the input read from the provider's cache.
        error_code: Why the call failed, "" if it didn't.
        created_at: When it ended, in UTC.
    """

    owner: str
    model: str
    sent_tokens: int
    usage_input_tokens: int | None
    usage_output_tokens: int | None
    usage_cached_tokens: int | None
    seconds: float
    error_code: str
    created_at: datetime


class AsideStore:
    """Stores the calls of programs beside all sessions, such as for a title."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, call: SideCall, *, client: str) -> None:
        """Stores a call that the program of this name asked for."""
        with self._database.write() as connection:
            connection.execute(_ADD, {**vars(call), "client": client})


class TitleStore:
    """Stores calls for titles of sessions, among the sessions' other calls, and what comes of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tries(self, session_id: str) -> int:
        """Returns how many calls for a title of this session have ended."""
        with self._database.read() as connection:
            return _tries(connection, session_id)

    def keep(self, session_id: str, call: SideCall, title: str) -> bool:
        """Stores a call, and gives its session the title unless it got one meanwhile; tells whether it has it now.

        It needs no lease: neither a turn nor what a turn sends depends on a title. A session that is gone has no call.

        Args:
            session_id: The session.
            call: The call.
            title: What came of it, "" for nothing.
        """
        with self._database.write(session_id=session_id) as connection:
            query = select(_session.title_source).where(_session.session_id == session_id, _session.owner == call.owner)
            row = connection.execute(query).one_or_none()
            if row is None:
                return False
            place = {
                "session_id": session_id,
                "id": f"call-{secrets.token_urlsafe(9)}",
                "ordinal": _tries(connection, session_id) + 1,
            }
            sent = {"input_hash": "", "full_tokens": call.sent_tokens, "manifest": "[]"}
            connection.execute(insert(call_table).values({**vars(call), **_KIND, **place, **sent}))
            is_titled = bool(title) and not row.title_source
            if is_titled:
                change_session(connection, session_id, **title_values(title), title_source="model")
            return is_titled


def _tries(connection: Connection, session_id: str) -> int:
    of_titles = (_call.session_id == session_id, _call.turn == _KIND["turn"], _call.kind == _KIND["kind"])
    return int(connection.execute(select(func.count()).select_from(call_table).where(*of_titles)).scalar_one())
