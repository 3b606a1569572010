"""The stored form of a session, and the query of its row."""

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
        updated_at: When a turn last started or ended; changes of title or settings don't count.
        model: Name of the chosen model, "" for the default.
        project_root: Folder of the project, "" for none.
        has_memory: True if the session starts with the project's memory.
        client: The name of the program that started the session, "" for the page.
        family: The chat group of a program, as a hash; "" for none.
        forked_from: The session that this is a branch of, "" for none.
        forked_after: The last turn shared with it.
        tools_off: Server tools replaced by a program's own tools of the same name.
        title_source: Author of the title: "" for the first message, "model" or "user".
        deleted_at: Time of a deletion that can still be undone.
        is_open: True if the last turn is running or waits for a program.
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


# Only a session's last turn can be open, so one look-up by key is enough.
_LAST_TURN = and_(turn_table.c.session_id == _session.session_id, turn_table.c.number == _session.turn_count)
ROWS: Select[Any] = select(
    *(_session[field.name] for field in fields(SessionRow) if field.name != "is_open"),
    case((turn_table.c.status.in_(OPEN), True), else_=False),
).select_from(session_table.outerjoin(turn_table, _LAST_TURN))
