"""The session table: titles, settings, and the list of sessions."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    case,
    cast,
    delete,
    exists,
    false,
    func,
    literal,
    null,
    or_,
    select,
    union_all,
    update,
)

from graph.search.term import QUERY_CHARS
from graph.server.identity import SignIn
from graph.store.access import IS_SIGNED_OUT, parameters_of
from graph.store.column import JsonTuple, add_once, database_time
from graph.store.database import Database, Lease
from graph.store.project import end_front
from graph.store.schema import (
    lease_table,
    own_instruction_table,
    reset_table,
    session_table,
    sign_in_table,
    turn_table,
    withdrawn_owner_table,
)
from graph.store.search import unindex_session
from graph.store.turn_row import OPEN, TurnRow
from graph.value.error import NotFoundError
from graph.value.view import FoldWhen, Thinking
from prompt.system.framing import Language

_session = session_table.c
_NEVER: Final = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True)
class SessionRow:
    """A session as stored; times are UTC.

    Attributes:
        updated_at: When a turn last started or ended; changes of title or settings don't count.
        context_from_position: The last archive position excluded from the context, 0 for none.
        restored_tokens: Our estimate for the context after the last undo of a compaction, 0 after the next compaction.
        client: The name of the program that started the session, "" for the page.
        family: The chat group of a program, as a hash; "" for none.
        tools_off: Server tools replaced by a program's own tools of the same name.
        title_source: Author of the title: "" for the first message, "model" or "user".
        deleted_at: Time of a deletion that can still be undone.
        fold_when: When due blocks are folded, "" for the server's default.
        thinking: How much the model is to think, "" for its own measure.
        language: That of its program's system message, "" without words in one.
        instructions: The user's own for this chat.
        brought_instructions: Those of the file that the chat came from, which aren't sent until the user agrees.
        mcp_tools: The fields of the chosen MCP tools, as they were when they were chosen.
        mcp_allowed: The MCP tools whose calls the user has allowed in this chat, by `allowance_of`.
        struck: Ids of lines of the ledger that the user struck out; behind a "+", of those restored.
        is_open: True if the last turn is running, or waits for a program or for the user's word.
        is_asking: True if it waits for the user's word.
        revision: Raised by every change of the session, from any number on; None if it hasn't changed since it was
            created or imported, and in lists.
        context_revision: Likewise by every change of what a turn reads, apart from this row and that of the last turn.
    """

    session_id: str
    owner: str
    compression_rate: float
    title: str = ""
    created_at: datetime = _NEVER
    updated_at: datetime = _NEVER
    strategy: str = ""
    fold_when: FoldWhen | Literal[""] = ""
    model: str = ""
    turn_count: int = 0
    context_from_position: int = 0
    restored_tokens: int = 0
    project_root: str = ""
    has_memory: bool = True
    client: str = ""
    family: str = ""
    forked_from: str = ""
    forked_after: int = 0
    tools_off: tuple[str, ...] = ()
    title_source: str = ""
    is_pinned: bool = False
    deleted_at: datetime | None = None
    thinking: Thinking = ""
    language: Language | Literal[""] = ""
    instructions: str = ""
    brought_instructions: str = ""
    mcp_tools: tuple[Mapping[str, Any], ...] = ()
    mcp_allowed: tuple[str, ...] = ()
    struck: tuple[str, ...] = ()
    is_open: bool = False
    is_asking: bool = False
    revision: int | None = None
    context_revision: int | None = None

    @property
    def strikes(self) -> dict[str, bool]:
        return strikes_of(self.struck)


def strikes_of(struck: Iterable[object]) -> dict[str, bool]:
    """Returns what the user did with lines of the ledger by their ids: True for struck out, False for restored."""
    return {line.removeprefix("+"): not line.startswith("+") for line in struck if isinstance(line, str)}


# Only a session's last turn can be open, so one look-up by key is enough.
_LAST_TURN = and_(turn_table.c.session_id == _session.session_id, turn_table.c.number == _session.turn_count)


def _select(*, is_listed: bool = False) -> Select[Any]:
    """Selects rows; without the tools of a list's, which may be long. An unknown level of thinking counts as none."""
    own: dict[str, ColumnElement[Any]] = {
        "is_open": case((turn_table.c.status.in_(OPEN), True), else_=False),
        "is_asking": case((turn_table.c.status == "asking", True), else_=False),
        "thinking": case((_session.thinking.in_(get_args(Thinking)), _session.thinking), else_=""),
        "language": case((_session.language.in_(get_args(Language)), _session.language), else_=""),
        "revision": lease_table.c.revision,
        "context_revision": lease_table.c.context_revision,
    }
    rows = session_table.outerjoin(turn_table, _LAST_TURN)
    if is_listed:
        own |= {"mcp_tools": literal((), JsonTuple()), "revision": null(), "context_revision": null()}
    else:
        rows = rows.outerjoin(lease_table, lease_table.c.session_id == _session.session_id)
    names = [field.name for field in fields(SessionRow)]
    columns = [own[name] if name in own else _session[name] for name in names]
    return select(*columns).select_from(rows)


ROWS: Select[Any] = _select()
_LISTED: Final = _select(is_listed=True)
_IS_THERE = _session.deleted_at.is_(None)
# In the order of their making.
_BRANCHES: Final = select(
    _session.created_at,
    _session.session_id,
    _session.forked_from,
    _session.forked_after,
    _session.turn_count,
    _IS_THERE.label("is_there"),
)
# Sources of a session's prefix block: a change ends it, and the next turn makes a new one.
ENDS_FRONT: Final = {"project_root", "has_memory"}


# A deleted session doesn't exist for its owner, even while the deletion can be undone.
_ONE = ROWS.where(_session.session_id == bindparam("session_id"), _session.owner == bindparam("owner"))
_ONE_THERE = _ONE.where(_IS_THERE)
_ROW_WIDTH: Final = len(fields(SessionRow))
_reset, _own = reset_table.c, own_instruction_table.c
_FIRST_TURN = select(func.coalesce(func.max(_reset.turn), 0) + 1).where(_reset.session_id == _session.session_id)
_BEGINNING = ROWS.add_columns(
    *(turn_table.c[field.name].label(f"last_{field.name}") for field in fields(TurnRow)),
    _FIRST_TURN.scalar_subquery(),
    select(_own.text).where(_own.owner == _session.owner).scalar_subquery(),
).where(_session.session_id == bindparam("session_id"))
_ONE_ADMITTED = _ONE_THERE.where(~exists().where(withdrawn_owner_table.c.owner == bindparam("owner")), ~IS_SIGNED_OUT)


@dataclass(frozen=True)
class Revisions:
    """The revisions of sessions, and what differs with any change of an owner's, by kind and name."""

    rows: Mapping[tuple[str, str], tuple[int, int]]

    def of_session(self, session_id: str) -> int | None:
        """Returns the session's revision; None before its first change."""
        row = self.rows.get(("session", session_id))
        return row and row[0]

    def of_owner(self, owner: str) -> Hashable:
        """Returns what differs once a session of the owner has changed, or once a sign-in or all access has ended."""
        return tuple(self.rows.get((kind, owner)) for kind in ("list", "ended", "withdrawn"))


_lease, _sign_in, _withdrawn = lease_table.c, sign_in_table.c, withdrawn_owner_table.c
_NONE: Final = cast(literal(0), BigInteger)
_sum, _count = cast(func.coalesce(func.sum(_lease.revision), 0), BigInteger), cast(func.count(), BigInteger)
_of_owners: BindParameter[list[str]] = bindparam("owners", expanding=True)
_of_sessions: BindParameter[list[str]] = bindparam("sessions", expanding=True)
_REVISIONS: Final = union_all(
    select(literal("session"), _lease.session_id, _lease.revision, _NONE).where(_lease.session_id.in_(_of_sessions)),
    select(literal("list"), _session.owner, _sum, _count)
    .select_from(session_table.outerjoin(lease_table, _lease.session_id == _session.session_id))
    .where(_session.owner.in_(_of_owners))
    .group_by(_session.owner),
    select(literal("ended"), _sign_in.owner, _count, _NONE)
    .where(_sign_in.owner.in_(_of_owners), _sign_in.ended_at.is_not(None))
    .group_by(_sign_in.owner),
    select(literal("withdrawn"), _withdrawn.owner, _NONE, _NONE).where(_withdrawn.owner.in_(_of_owners)),
)


class SessionStore:
    """Stores sessions; changing one raises `NotFoundError` if no session of its owner has the id."""

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
        group: str = "",
        language: Language | None = None,
    ) -> SessionRow:
        """Creates the session and returns it; an existing one is returned unchanged.

        Args:
            session_id: An id that is unused or the owner's.
            owner: The owner.
            compression_rate: Setting of the session.
            strategy: Setting of the session, "" for the server's default.
            title: Title in the list.
            client: The program that starts the session, "" for the page.
            group: The program's chat group, "" for none.
            language: The language of the program's system message; None without words in one.

        Raises:
            NotFoundError: The id belongs to another owner's session, or to a deleted one.
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
            "family": group,
            "language": language or "",
        }
        with self._database.write() as connection:
            connection.execute(add_once(session_table).values(**values, **title_values(title)))
        return self._one(_ONE_THERE, session_id, owner)

    def get(self, session_id: str, owner: str) -> SessionRow:
        """Returns the session for a worker, even if marked as deleted; raises `NotFoundError`."""
        return self._one(_ONE, session_id, owner)

    def beginning(self, session_id: str, *, is_shared: bool = True) -> tuple[SessionRow, TurnRow | None, int, str]:
        """Returns a session with its last turn, the first turn after its last reset, and its owner's instructions.

        `is_shared`: from memory within `Database.sharing`.
        """
        read = partial(self._beginning, session_id)
        return self._database.once(("beginning", session_id), read) if is_shared else read()

    def _beginning(self, session_id: str) -> tuple[SessionRow, TurnRow | None, int, str]:
        with self._database.read() as connection:
            row = connection.execute(_BEGINNING, {"session_id": session_id}).one_or_none()
        if row is None:
            raise NotFoundError(session_id)
        *last, first_turn, for_all = row[_ROW_WIDTH:]
        turn = TurnRow(*last) if row.turn_count else None
        return SessionRow(*row[:_ROW_WIDTH]), turn, int(first_turn), for_all or ""

    def get_admitted(self, session_id: str, owner: str, sign_in: SignIn | None = None) -> SessionRow:
        """Returns the session for a call of its owner.

        Raises:
            NotFoundError: No session of this owner has the id, or the owner's access was withdrawn or the sign-in has
                ended.
        """
        read = partial(self._one, _ONE_ADMITTED, session_id, owner, parameters_of(sign_in))
        return self._database.once(("admitted", session_id, owner, sign_in), read)

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
        """Returns the owner's sessions with a turn, most recently updated first, without their `mcp_tools`.

        `search` is a part of the title, `%` and `_` literal; `found` are sessions listed whatever their title. `also`
        is appended if only the limit excludes it. `before` (time of update and id) starts behind a position; not with
        `pinned_first`.
        """
        query = _LISTED.where(*_with_turns(owner, search, found))
        behind = query if before is None else query.where(_is_behind(*before))
        pinned = (_session.is_pinned.desc(),) if pinned_first else ()
        newest = behind.order_by(*pinned, _session.updated_at.desc(), _session.session_id).limit(limit)
        with self._database.read() as connection:
            rows = [SessionRow(*row) for row in connection.execute(newest)]
            if also and len(rows) == limit and all(row.session_id != also for row in rows):
                rows += [SessionRow(*row) for row in connection.execute(query.where(_session.session_id == also))]
        return tuple(rows)

    def count(self, owner: str, *, search: str = "", found: Iterable[str] = ()) -> int:
        query = select(func.count()).select_from(session_table).where(*_with_turns(owner, search, found))
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def rename(self, session_id: str, owner: str, title: str, *, source: str = "user") -> None:
        self.update(session_id, owner, **title_values(title), title_source=source)

    def update(self, session_id: str, owner: str, **values: object) -> None:
        """Changes columns of the session, at least one; settings apply from the next turn or fold on."""
        change = update(session_table).where(_is(session_id, owner), _IS_THERE).values(**values)
        with self._database.write(session_id=session_id, is_context=bool(ENDS_FRONT & values.keys())) as connection:
            if connection.execute(change).rowcount == 0:
                raise NotFoundError(session_id)
            _end_changed_front(connection, session_id, values)

    def revisions(self, session_ids: Collection[str], owners: Collection[str]) -> Revisions:
        """Returns the revisions of these sessions and of what the pages of these owners list, in one statement."""
        asked = {"sessions": list(session_ids), "owners": list(owners)}
        with self._database.read() as connection:
            rows = connection.execute(_REVISIONS, asked)
            return Revisions({(row[0], row[1]): (row[2], row[3]) for row in rows})

    def siblings(self, session: SessionRow) -> dict[int, tuple[str, ...]]:
        """Returns by turn the owner's sessions that part there, this one included, the oldest first.

        These are its branches at each turn; where it is a branch itself, also its origin and the branches made there.
        """
        branches = _BRANCHES.where(_session.owner == session.owner)
        session_id, own, origin = session.session_id, session.forked_after, session.session_id
        found: dict[str, Row[*tuple[Any, ...]]] = {}
        members: dict[int, set[str]] = {own: set()}
        with self._database.read() as connection:
            # Up to the session that didn't part there from another one.
            while origin and origin not in members[own]:
                members[own].add(origin)
                found |= {
                    row.session_id: row for row in connection.execute(branches.where(_session.session_id == origin))
                }
                is_parted = origin in found and found[origin].forked_after == own
                origin = found[origin].forked_from if is_parted else ""
            parents = members[own]
            while parents:
                rows = connection.execute(branches.where(_session.forked_from.in_(parents))).all()
                parents = set()
                for row in rows:
                    if row.forked_from == session_id:
                        members.setdefault(row.forked_after, {session_id})
                    if row.forked_from in members.get(row.forked_after, ()) and row.session_id not in found:
                        members[row.forked_after].add(row.session_id)
                        found[row.session_id] = row
                        parents.add(row.session_id)
        parting = {
            after + 1: sorted(row for row in map(found.get, ids) if row and row.is_there and row.turn_count > after)
            for after, ids in members.items()
        }
        return {turn: tuple(row.session_id for row in rows) for turn, rows in parting.items() if len(rows) > 1}

    def discard_empty(self, lease: Lease) -> None:
        """Deletes the session if it has no turn, because its first message was refused."""
        is_empty = and_(_session.session_id == lease.session_id, _session.turn_count == 0)
        with self._database.write(lease) as connection:
            connection.execute(delete(session_table).where(is_empty))

    def delete(self, session_id: str, owner: str) -> None:
        """Deletes the session with all its rows, the lease included, so that a running worker can't write any more.

        Branches of a branch then part from its origin.
        """
        with self._database.write(session_id=session_id) as connection:
            branch = connection.execute(_BRANCHES.where(_is(session_id, owner), _session.forked_from != "")).first()
            if branch is not None:
                after = case(
                    (_session.forked_after < branch.forked_after, _session.forked_after), else_=branch.forked_after
                )
                moved = update(session_table).where(_session.forked_from == session_id, _session.owner == owner)
                connection.execute(moved.values(forked_from=branch.forked_from, forked_after=after))
            unindex_session(connection, session_id)
            if connection.execute(delete(session_table).where(_is(session_id, owner))).rowcount == 0:
                raise NotFoundError(session_id)

    def mark_deleted(self, session_id: str, owner: str) -> None:
        """Hides the session from everything except workers, `bring_back` and `expired`."""
        self.update(session_id, owner, deleted_at=database_time())

    def bring_back(self, session_id: str, owner: str, *, within_seconds: float) -> bool:
        """Undoes `mark_deleted` within a time limit; returns False if too late or not marked."""
        is_young = _session.deleted_at > database_time(-within_seconds)
        change = update(session_table).where(_is(session_id, owner), is_young).values(deleted_at=None)
        with self._database.write(session_id=session_id) as connection:
            return connection.execute(change).rowcount > 0

    def just_deleted(self, owner: str, *, within_seconds: float) -> dict[str, str]:
        """Returns the titles of the owner's sessions marked as deleted within a time, by their ids, oldest first."""
        is_young = _session.deleted_at > database_time(-within_seconds)
        query = select(_session.session_id, _session.title).where(_session.owner == owner, is_young)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(_session.deleted_at, _session.session_id)).all()
        return {row.session_id: row.title for row in rows}

    def expired(self, after_seconds: float) -> tuple[tuple[str, str], ...]:
        """Returns ids and owners of all sessions marked as deleted at least this long ago."""
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


def count_turn(connection: Connection, session_id: str, owner: str, **values: object) -> int:
    """Counts a new turn and changes columns; returns its number; `NotFoundError` without the session."""
    change = update(session_table).where(_is(session_id, owner))
    counted = change.values(**values, turn_count=_session.turn_count + 1, updated_at=database_time())
    number: int | None = connection.execute(counted.returning(_session.turn_count)).scalar()
    if number is None:
        raise NotFoundError(session_id)
    _end_changed_front(connection, session_id, values)
    return number


def change_session(connection: Connection, session_id: str, **values: object) -> None:
    connection.execute(update(session_table).where(_session.session_id == session_id).values(**values))
    _end_changed_front(connection, session_id, values)


def _end_changed_front(connection: Connection, session_id: str, values: Mapping[str, object]) -> None:
    if ENDS_FRONT & values.keys():
        end_front(connection, session_id)


def is_in_title(search: str, title: str) -> bool:
    return _fold(search) in _fold(title)


def _with_turns(owner: str, search: str, found: Iterable[str]) -> tuple[ColumnElement[bool], ...]:
    """Leaves out sessions without a turn: their first message was refused, so there is nothing to open."""
    listed = (_session.owner == owner, _session.turn_count > 0, _IS_THERE)
    if not search:
        return listed
    # No title is that long, and SQLite's patterns are limited to 50,000 bytes.
    folded = _fold(search) if len(search) <= QUERY_CHARS else None
    is_titled = false() if folded is None else _session.title_folded.contains(folded, autoescape=True)
    return (*listed, or_(is_titled, _session.session_id.in_(list(found))))


def _is_behind(updated_at: datetime, session_id: str) -> ColumnElement[bool]:
    """Compares positions in the list, so that the session at this position need not exist."""
    is_same_time = and_(_session.updated_at == updated_at, _session.session_id > session_id)
    return or_(_session.updated_at < updated_at, is_same_time)


def _is(session_id: str, owner: str) -> ColumnElement[bool]:
    return and_(_session.session_id == session_id, _session.owner == owner)


def title_values(title: str) -> dict[str, object]:
    return {"title": title, "title_folded": _fold(title)}


def _fold(text: str) -> str:
    """Folds case and compatibility forms, for titles and searches alike: databases fold the case of ASCII only.

    A change of the result needs a migration that folds the stored titles again.
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
