"""A turn as it is stored, and the reads of its row."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final, Literal

from sqlalchemy import Connection, bindparam, select

from graph.error import NotFoundError
from graph.store.schema import turn_table

OPEN: Final = ("running", "requires_action")
_turn = turn_table.c


@dataclass(frozen=True)
class TurnRow:
    """A turn in its last attempt; times are UTC.

    Attributes:
        partial_text: What was streamed so far, or what was kept of a stopped answer.
        finished_at: When it ended, or began to wait for its program.
        history_tokens: Our estimate for everything said before this turn.
        client: The name of the program that asked, "" for the page.
        is_imported: Whether a program brought it along, so that no model of ours answered it.
    """

    session_id: str
    number: int
    attempt: int
    status: Literal["running", "requires_action", "finished", "failed", "stopped"]
    user_message_id: str
    model: str
    is_casual: bool
    partial_text: str
    stop_requested: bool
    error_code: str
    error_detail: str
    started_at: datetime
    finished_at: datetime | None
    history_tokens: int
    client: str
    is_imported: bool

    @property
    def is_open(self) -> bool:
        """Whether it has no answer yet: it is in progress, or waits for a program."""
        return self.status in OPEN


_ROWS = select(*(_turn[field.name] for field in fields(TurnRow)))
OF_SESSION = _ROWS.where(_turn.session_id == bindparam("session_id"))
_ONE = OF_SESSION.where(_turn.number == bindparam("number"))
NEWEST = OF_SESSION.order_by(_turn.number.desc())
_LAST = NEWEST.limit(1)


def read_turn(connection: Connection, session_id: str, number: int) -> TurnRow:
    """Returns the turn.

    Raises:
        NotFoundError: The session has no such turn.
    """
    row = connection.execute(_ONE, {"session_id": session_id, "number": number}).one_or_none()
    if row is None:
        raise NotFoundError(str(number))
    return TurnRow(*row)


def last_turn(connection: Connection, session_id: str) -> TurnRow | None:
    """Returns the newest turn, None if there is none."""
    row = connection.execute(_LAST, {"session_id": session_id}).one_or_none()
    return None if row is None else TurnRow(*row)
