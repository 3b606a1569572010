"""The session table: names, settings, the list."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, delete, func, insert, select, update

from graph.error import NotFoundError
from graph.store.database import Clock, Database, Lease
from graph.store.schema import session_table, turn_table

_session = session_table.c


@dataclass(frozen=True)
class SessionRow:
    """A session as it's stored; times are UTC.

    Attributes:
        updated_at: When a turn last began or ended; a change of name or settings doesn't count.
        model: The chosen model's name, "" for the default one.
        is_running: Whether its last turn is in progress, by the turn's row.
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
    is_running: bool


class SessionStore:
    """Makes, finds, changes and deletes sessions, each for its owner alone."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def create(
        self, session_id: str, owner: str, *, compression_rate: float, strategy: str, model: str = "", title: str = ""
    ) -> SessionRow:
        """Makes the session; one that is there already is left as it is and returned.

        Raises:
            NotFoundError: The id belongs to another owner.
        """
        now = self._clock()
        with self._database.write() as connection:
            taken = select(_session.session_id).where(_session.session_id == session_id)
            if connection.execute(taken).first() is None:
                values = {
                    "session_id": session_id,
                    "owner": owner,
                    "created_at": now,
                    "updated_at": now,
                    "compression_rate": compression_rate,
                    "strategy": strategy,
                    "model": model,
                    "turn_count": 0,
                }
                connection.execute(insert(session_table).values(**values, **_title_values(title)))
        return self.get(session_id, owner)

    def get(self, session_id: str, owner: str) -> SessionRow:
        """Returns the session.

        Raises:
            NotFoundError: There is none by that id, or it's another owner's.
        """
        with self._database.read() as connection:
            row = connection.execute(_ONE, {"session_id": session_id, "owner": owner}).one_or_none()
        if row is None:
            raise NotFoundError(session_id)
        return SessionRow(*row)

    def list(self, owner: str, *, search: str = "", limit: int | None = None) -> tuple[SessionRow, ...]:
        """Returns the owner's sessions that have a turn, last updated first.

        Args:
            owner: Whose.
            search: Part of the title, in any case; `%` and `_` mean themselves.
            limit: How many at most; all if None.
        """
        query = _rows().where(*_with_turns(owner, search))
        query = query.order_by(_session.updated_at.desc(), _session.session_id).limit(limit)
        with self._database.read() as connection:
            return tuple(SessionRow(*row) for row in connection.execute(query))

    def count(self, owner: str, *, search: str = "") -> int:
        """Returns how many sessions `list` has without a limit."""
        query = select(func.count()).select_from(session_table).where(*_with_turns(owner, search))
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def rename(self, session_id: str, owner: str, title: str) -> None:
        """Gives the session another title.

        Raises:
            NotFoundError: There is none by that id, or it's another owner's.
        """
        self._change(session_id, owner, _title_values(title))

    def update(
        self,
        session_id: str,
        owner: str,
        *,
        compression_rate: float | None = None,
        strategy: str | None = None,
        model: str | None = None,
    ) -> None:
        """Changes the settings that are given; they count from the next turn or fold on.

        Raises:
            NotFoundError: There is none by that id, or it's another owner's.
        """
        given = {"compression_rate": compression_rate, "strategy": strategy, "model": model}
        self._change(session_id, owner, {name: value for name, value in given.items() if value is not None})

    def begin_context(self, lease: Lease, position: int) -> None:
        """Leaves everything up to this archive position out of the context from now on; the archive keeps it.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
        """
        change = update(session_table).where(_session.session_id == lease.session_id)
        with self._database.write(lease) as connection:
            connection.execute(change.values(context_from_position=position, restored_tokens=0))

    def context_begin(self, session_id: str) -> int:
        """Returns the archive position up to which everything was left out of the context, 0 if nothing was."""
        with self._database.read() as connection:
            query = select(_session.context_from_position).where(_session.session_id == session_id)
            return int(connection.execute(query).scalar() or 0)

    def restored_tokens(self, session_id: str) -> int:
        """Returns our estimate for the context when a compaction was last undone, 0 if none was since the last one."""
        with self._database.read() as connection:
            query = select(_session.restored_tokens).where(_session.session_id == session_id)
            return int(connection.execute(query).scalar() or 0)

    def discard_empty(self, lease: Lease) -> None:
        """Deletes the session if nothing was ever said in it: its first message was refused.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
        """
        is_empty = and_(_session.session_id == lease.session_id, _session.turn_count == 0)
        with self._database.write(lease) as connection:
            connection.execute(delete(session_table).where(is_empty))

    def delete(self, session_id: str, owner: str) -> None:
        """Deletes the session with everything of it; a worker still in it can write no more, as its lease goes too.

        Raises:
            NotFoundError: There is none by that id, or it's another owner's.
        """
        with self._database.write() as connection:
            if connection.execute(delete(session_table).where(_is(session_id, owner))).rowcount == 0:
                raise NotFoundError(session_id)

    def _change(self, session_id: str, owner: str, values: dict[str, object]) -> None:
        # Naming the id as well keeps the statement whole when nothing else is given.
        change = update(session_table).where(_is(session_id, owner)).values(session_id=session_id, **values)
        with self._database.write() as connection:
            if connection.execute(change).rowcount == 0:
                raise NotFoundError(session_id)


def _rows() -> Select[Any]:
    """Only a session's last turn can be running, so one look by key says it."""
    is_last = and_(turn_table.c.session_id == _session.session_id, turn_table.c.number == _session.turn_count)
    return select(
        _session.session_id,
        _session.owner,
        _session.title,
        _session.created_at,
        _session.updated_at,
        _session.compression_rate,
        _session.strategy,
        _session.model,
        _session.turn_count,
        case((turn_table.c.status == "running", True), else_=False),
    ).select_from(session_table.outerjoin(turn_table, is_last))


# Made once: every look at a session begins with it.
_ONE = _rows().where(_session.session_id == bindparam("session_id"), _session.owner == bindparam("owner"))


def _with_turns(owner: str, search: str) -> tuple[ColumnElement[bool], ...]:
    """A session whose first message was refused holds nothing to open, and takes no place in a list."""
    listed = (_session.owner == owner, _session.turn_count > 0)
    return (*listed, _session.title_folded.contains(_fold(search), autoescape=True)) if search else listed


def _is(session_id: str, owner: str) -> ColumnElement[bool]:
    return and_(_session.session_id == session_id, _session.owner == owner)


def _title_values(title: str) -> dict[str, object]:
    return {"title": title, "title_folded": _fold(title)}


def _fold(text: str) -> str:
    """Databases fold the case of ASCII alone, and Hangul comes composed or not: both sides of a search pass here."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
