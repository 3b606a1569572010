"""A session as it is stored, and the query of its row."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Select, and_, case, select

from graph.store.schema import session_table, turn_table
from graph.store.turn_row import OPEN

_session = session_table.c


@dataclass(frozen=True)
class SessionRow:
    """A session as stored; times are UTC.

    Attributes:
        updated_at: When a turn last began or ended; a change of title or settings doesn't count.
        model: Name of the chosen model, "" for the default one.
        project_root: The folder of its project, "" for none.
        has_memory: Whether it starts with the project's memory.
        client: The name of the program that began it, "" for the page.
        family: The chat of a program that it is a branch of, as a hash; "" for none.
        forked_from: The session that it was forked from, "" for none.
        forked_after: The last turn that it has from there.
        tools_off: Tools of ours that a program has replaced by its own of the same name.
        title_source: Who made the title: "" for the message that it began with, "model" or "user".
        deleted_at: When it was deleted, if that can still be undone.
        is_open: Whether the row of its last turn says that it is in progress, or waits for a program.
    """

    session_id: str
    owner: str
    title: str
    created_at: datetime
    updated_at: datetime
    compression_rate: float
    strategy: str
    model: str
    turn_count: int
    project_root: str
    has_memory: bool
    client: str
    family: str
    forked_from: str
    forked_after: int
    tools_off: tuple[str, ...]
    title_source: str
    is_pinned: bool
    deleted_at: datetime | None
    is_open: bool


# Only a session's last turn can be open, so a look-up of one row by its key tells.
_LAST_TURN = and_(turn_table.c.session_id == _session.session_id, turn_table.c.number == _session.turn_count)
ROWS: Select[Any] = select(
    *(_session[field.name] for field in fields(SessionRow) if field.name != "is_open"),
    case((turn_table.c.status.in_(OPEN), True), else_=False),
).select_from(session_table.outerjoin(turn_table, _LAST_TURN))
