"""The session table: titles, settings, and the list of sessions."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    false,
    func,
    or_,
    select,
    update,
)

from graph.search.term import QUERY_CHARS
from graph.server.identity import SignIn
from graph.store.column import add_once, database_time
from graph.store.context_block import end_front
from graph.store.database import Database, Lease
from graph.store.owner_table import withdrawn_owner_table
from graph.store.schema import session_table
from graph.store.search import unindex_session
from graph.store.session_row import ROWS, SessionRow
from graph.store.sign_in import IS_SIGNED_OUT, parameters_of
from graph.value.error import NotFoundError

__all__ = ["SessionRow", "SessionStore"]

_session = session_table.c
# What a session's front is made from; another value makes another front.
_OF_FRONT: Final = {"project_root", "has_memory"}


_NUMBERS = {
    column.name: select(column).where(_session.session_id == bindparam("session_id"))
    for column in (_session.context_from_position, _session.restored_tokens)
}
# One that is deleted is gone for its owner, also while it can be brought back.
_IS_THERE = _session.deleted_at.is_(None)
_ONE = ROWS.where(_session.session_id == bindparam("session_id"), _session.owner == bindparam("owner"))
_ONE_THERE = _ONE.where(_IS_THERE)
_ONE_ADMITTED = _ONE_THERE.where(~exists().where(withdrawn_owner_table.c.owner == bindparam("owner")), ~IS_SIGNED_OUT)


class SessionStore:
    """Creates, finds, changes and deletes the sessions of an owner."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        session_id: str,
        owner: str,
        *,
        compression_rate: float,
        strategy: str,
        title: str = "",
        client: str = "",
        family: str = "",
    ) -> SessionRow:
        """Creates the session and returns it; an existing one is returned unchanged.

        Args:
            session_id: An id that is unused or the owner's.
            owner: Whose it is.
            compression_rate: Its setting.
            strategy: Its setting, "" for the server's default.
            title: What the list shows.
            client: The program that begins it, "" for the page.
            family: The program's chat that it is a branch of, "" for none.

        Raises:
            NotFoundError: The id belongs to another owner's session, or to one that is deleted.
        """
        values = {
            "session_id": session_id,
            "owner": owner,
            "created_at": database_time(),
            "updated_at": database_time(),
            "compression_rate": compression_rate,
            "strategy": strategy,
            "model": "",
            "turn_count": 0,
            "client": client,
            "family": family,
        }
        with self._database.write() as connection:
            connection.execute(add_once(session_table).values(**values, **title_values(title)))
        return self._one(_ONE_THERE, session_id, owner)

    def get(self, session_id: str, owner: str) -> SessionRow:
        """Returns the session for a worker: also one that is deleted and can be brought back.

        Raises:
            NotFoundError: There is none with this id, or another owner has it.
        """
        return self._one(_ONE, session_id, owner)

    def get_admitted(self, session_id: str, owner: str, sign_in: SignIn | None = None) -> SessionRow:
        """Returns the session for a call of its owner.

        Args:
            session_id: The session.
            owner: Whose call it is.
            sign_in: The one by which it came; None if it came by none.

        Raises:
            NotFoundError: There is none with this id, another owner has it, or the owner was withdrawn or signed out.
        """
        return self._one(_ONE_ADMITTED, session_id, owner, parameters_of(sign_in))

    def list(
        self,
        owner: str,
        *,
        search: str = "",
        found: Iterable[str] = (),
        limit: int | None = None,
        also: str = "",
        before: tuple[datetime, str] | None = None,
        pinned_first: bool = False,
    ) -> tuple[SessionRow, ...]:
        """Returns the owner's sessions that have a turn, most recently updated first.

        Args:
            owner: Whose sessions.
            search: Part of the title, in any case; `%` and `_` stand for themselves.
            found: Sessions that match the search whatever their title is.
            limit: How many at most; None for all.
            also: A session that is returned too, as the last one, if only the limit leaves it out.
            before: When a session was updated, and its id: only those behind it, if the order is by time alone.
            pinned_first: Whether those that are pinned come before the others.
        """
        query = ROWS.where(*_with_turns(owner, search, found))
        behind = query if before is None else query.where(_is_behind(*before))
        pinned = (_session.is_pinned.desc(),) if pinned_first else ()
        newest = behind.order_by(*pinned, _session.updated_at.desc(), _session.session_id).limit(limit)
        with self._database.read() as connection:
            rows = [SessionRow(*row) for row in connection.execute(newest)]
            if also and len(rows) == limit and all(row.session_id != also for row in rows):
                rows += [SessionRow(*row) for row in connection.execute(query.where(_session.session_id == also))]
        return tuple(rows)

    def count(self, owner: str, *, search: str = "", found: Iterable[str] = ()) -> int:
        """Returns how many sessions `list` returns without a limit."""
        query = select(func.count()).select_from(session_table).where(*_with_turns(owner, search, found))
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def rename(self, session_id: str, owner: str, title: str, *, source: str = "user") -> None:
        """Changes the session's title.

        Raises:
            NotFoundError: There is none with this id, or another owner has it.
        """
        self.update(session_id, owner, **title_values(title), title_source=source)

    def update(self, session_id: str, owner: str, **values: object) -> None:
        """Changes columns of the session, at least one: its settings, from the next turn or fold on.

        Raises:
            NotFoundError: There is none with this id, or another owner has it.
        """
        change = update(session_table).where(_is(session_id, owner), _IS_THERE).values(**values)
        with self._database.write(session_id=session_id) as connection:
            if connection.execute(change).rowcount == 0:
                raise NotFoundError(session_id)
            _end_changed_front(connection, session_id, values)

    def context_begin(self, session_id: str) -> int:
        """Returns the archive position up to which everything is excluded from the context, 0 if nothing is."""
        return self._number(session_id, _session.context_from_position)

    def restored_tokens(self, session_id: str) -> int:
        """Returns our estimate for the context when a compaction was last undone, 0 after the next compaction."""
        return self._number(session_id, _session.restored_tokens)

    def discard_empty(self, lease: Lease) -> None:
        """Deletes the session if it has no turn, because its first message was refused.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
        """
        is_empty = and_(_session.session_id == lease.session_id, _session.turn_count == 0)
        with self._database.write(lease) as connection:
            connection.execute(delete(session_table).where(is_empty))

    def delete(self, session_id: str, owner: str) -> None:
        """Deletes the session with all its rows, the lease included, so that a worker that still runs can't write.

        Raises:
            NotFoundError: There is none with this id, or another owner has it.
        """
        with self._database.write(session_id=session_id) as connection:
            unindex_session(connection, session_id)
            if connection.execute(delete(session_table).where(_is(session_id, owner))).rowcount == 0:
                raise NotFoundError(session_id)

    def mark_deleted(self, session_id: str, owner: str) -> None:
        """Has the session be gone for everybody but `bring_back` and `expired`.

        Raises:
            NotFoundError: There is none with this id, or another owner has it.
        """
        self.update(session_id, owner, deleted_at=database_time())

    def bring_back(self, session_id: str, owner: str, *, within_seconds: float) -> bool:
        """Brings back a session that was marked as deleted, if that was so long ago at most, and tells whether."""
        is_young = _session.deleted_at > database_time(-within_seconds)
        change = update(session_table).where(_is(session_id, owner), is_young).values(deleted_at=None)
        with self._database.write(session_id=session_id) as connection:
            return connection.execute(change).rowcount > 0

    def expired(self, after_seconds: float) -> tuple[tuple[str, str], ...]:
        """Returns the ids and owners of all sessions that were marked as deleted so long ago at least."""
        is_old = _session.deleted_at <= database_time(-after_seconds)
        with self._database.read() as connection:
            rows = connection.execute(select(_session.session_id, _session.owner).where(is_old)).all()
        return tuple((row.session_id, row.owner) for row in rows)

    def _one(
        self, query: Select[Any], session_id: str, owner: str, more: Mapping[str, object] = MappingProxyType({})
    ) -> SessionRow:
        with self._database.read() as connection:
            row = connection.execute(query, {"session_id": session_id, "owner": owner, **more}).one_or_none()
        if row is None:
            raise NotFoundError(session_id)
        return SessionRow(*row)

    def _number(self, session_id: str, column: Column[int]) -> int:
        with self._database.read() as connection:
            return connection.execute(_NUMBERS[column.name], {"session_id": session_id}).scalar() or 0


def change_session(connection: Connection, session_id: str, **values: object) -> None:
    """Changes columns of the session's row within the caller's transaction."""
    connection.execute(update(session_table).where(_session.session_id == session_id).values(**values))
    _end_changed_front(connection, session_id, values)


def _end_changed_front(connection: Connection, session_id: str, values: Mapping[str, object]) -> None:
    if _OF_FRONT & values.keys():
        end_front(connection, session_id)


def is_in_title(search: str, title: str) -> bool:
    """Whether a title matches a search."""
    return _fold(search) in _fold(title)


def _with_turns(owner: str, search: str, found: Iterable[str]) -> tuple[ColumnElement[bool], ...]:
    """Leaves out sessions without a turn: their first message was refused, so there is nothing to open."""
    listed = (_session.owner == owner, _session.turn_count > 0, _IS_THERE)
    if not search:
        return listed
    # No title is so long, and SQLite takes patterns of 50,000 bytes at most.
    folded = _fold(search) if len(search) <= QUERY_CHARS else None
    is_titled = false() if folded is None else _session.title_folded.contains(folded, autoescape=True)
    return (*listed, or_(is_titled, _session.session_id.in_(list(found))))


def _is_behind(updated_at: datetime, session_id: str) -> ColumnElement[bool]:
    """Whether a session stands behind this place in the list, whether or not a session stands there still."""
    is_same_time = and_(_session.updated_at == updated_at, _session.session_id > session_id)
    return or_(_session.updated_at < updated_at, is_same_time)


def _is(session_id: str, owner: str) -> ColumnElement[bool]:
    return and_(_session.session_id == session_id, _session.owner == owner)


def title_values(title: str) -> dict[str, object]:
    """Returns the columns of a title."""
    return {"title": title, "title_folded": _fold(title)}


def _fold(text: str) -> str:
    """Folds case and composes Hangul, for titles and searches alike: databases fold the case of ASCII only."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
