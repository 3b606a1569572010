"""The turn table: how each turn began, its state, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from types import MappingProxyType
from typing import Literal

from langchain_core.messages import HumanMessage
from sqlalchemy import Connection, Update, bindparam, insert, select, update

from graph.core.client_chain import EndedAnchor, OpenAnchor
from graph.error import NotFoundError
from graph.store.active import invalidate_from
from graph.store.anchor import complete_anchor, insert_anchor
from graph.store.archive import find_position, find_turn, insert_message, sum_live_tokens
from graph.store.database import Clock, Database, Lease
from graph.store.reset import extend_context
from graph.store.schema import session_table, turn_table
from graph.store.session import change_session

TurnEnd = Literal["finished", "failed", "stopped", "requires_action"]

_RUNNING = "running"
_turn = turn_table.c


@dataclass(frozen=True)
class TurnRow:
    """A turn in its last attempt; times are UTC.

    Attributes:
        partial_text: What was streamed so far, or what was kept of a stopped answer.
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


_ROWS = select(*(_turn[field.name] for field in fields(TurnRow)))
_ADD = insert(turn_table)
_OF_SESSION = _ROWS.where(_turn.session_id == bindparam("session_id"))
_ONE = _OF_SESSION.where(_turn.number == bindparam("number"))
_NEWEST = _OF_SESSION.order_by(_turn.number.desc())
_LAST = _NEWEST.limit(1)
_COUNT = select(session_table.c.turn_count).where(
    session_table.c.session_id == bindparam("session_id"), session_table.c.owner == bindparam("owner")
)
_STOP = select(_turn.stop_requested).where(
    _turn.session_id == bindparam("session_id"), _turn.number == bindparam("number")
)


class TurnStore:
    """Begins and ends turns under a lease; reading one or requesting its stop needs no lease."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def begin(
        self,
        lease: Lease,
        *,
        owner: str,
        message: HumanMessage,
        model: str,
        is_casual: bool,
        settings: Mapping[str, object] = MappingProxyType({}),
        client: str = "",
        anchor: OpenAnchor | None = None,
    ) -> tuple[TurnRow, bool]:
        """Commits the user's message with its new turn.

        Args:
            lease: The session's lease.
            owner: The session's owner.
            message: With an id chosen by the sender, so that sending it twice equals sending it once.
            model: The model that will answer.
            is_casual: Whether the turn takes the casual fast path.
            settings: Columns of the session that change in the same transaction.
            client: The name of the program that asks, "" for the page.
            anchor: What the program's request is recognised by; None for the page.

        Returns:
            The turn, and whether it's new: False if the same message began it before.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
            NotFoundError: There is no such session, or another owner has it.
            InternalError: The message has no id.
        """
        now = self._clock()
        with self._database.write(lease) as connection:
            turn_count = _count_turns(connection, lease.session_id, owner)
            known = find_turn(connection, lease.session_id, message.id)
            if known is not None:
                return _read(connection, lease.session_id, known), False
            number = turn_count + 1
            values = {
                "session_id": lease.session_id,
                "number": number,
                "owner": owner,
                "user_message_id": message.id,
                "is_casual": is_casual,
                "history_tokens": _sum_history_tokens(connection, lease.session_id, turn_count),
                **_new_attempt(1, model, client, now),
            }
            connection.execute(_ADD, values)
            place = {"session_id": lease.session_id, "owner": owner, "turn": number, "attempt": 1, "created_at": now}
            insert_message(connection, message, place)
            if anchor is not None:
                insert_anchor(connection, anchor, place)
            change_session(connection, lease.session_id, **settings, turn_count=number, updated_at=now)
            return _read(connection, lease.session_id, number), True

    def begin_attempt(
        self,
        lease: Lease,
        number: int,
        *,
        model: str,
        settings: Mapping[str, object] = MappingProxyType({}),
        client: str = "",
        anchor: OpenAnchor | None = None,
    ) -> TurnRow:
        """Starts a new attempt of the last turn; the messages of the attempt before stay archived but are live no more.

        In the same transaction every record that covers the turn is invalidated, and a context that starts behind the
        turn's question after a reset is extended to include it.

        Args:
            lease: The session's lease.
            number: The last turn.
            model: The model that will answer.
            settings: Columns of the session that change in the same transaction.
            client: The name of the program that asks, "" for the page.
            anchor: What the program's request is recognised by; None for the page.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
            NotFoundError: It isn't the session's last turn.
        """
        now = self._clock()
        with self._database.write(lease) as connection:
            turn = _read(connection, lease.session_id, number)
            if _last(connection, lease.session_id) != turn:
                raise NotFoundError(str(number))
            values = _new_attempt(turn.attempt + 1, model, client, now)
            connection.execute(_change(lease.session_id, number).values(values))
            position = find_position(connection, lease.session_id, turn.user_message_id)
            invalidate_from(connection, lease.session_id, position)
            extend_context(connection, lease.session_id, number, position)
            if anchor is not None:
                place = {"session_id": lease.session_id, "turn": number, "attempt": turn.attempt + 1}
                insert_anchor(connection, anchor, {**place, "owner": _owner(connection, lease), "created_at": now})
            change_session(connection, lease.session_id, **settings, updated_at=now)
            return _read(connection, lease.session_id, number)

    def finish(
        self,
        lease: Lease,
        number: int,
        status: TurnEnd,
        *,
        error_code: str = "",
        error_detail: str = "",
        partial_text: str = "",
        anchor: EndedAnchor | None = None,
    ) -> None:
        """Ends a running turn; one that has ended already stays as it is.

        Args:
            lease: The session's lease.
            number: The turn.
            status: How it ended, or that it waits for its program.
            error_code: The error's code, "" without one.
            error_detail: What there is to add to it.
            partial_text: What is kept of a stopped answer.
            anchor: What completes the anchor that the program's request began; None for the page.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
        """
        now = self._clock()
        end = _change(lease.session_id, number).where(_turn.status == _RUNNING)
        values = {
            "status": status,
            "error_code": error_code,
            "error_detail": error_detail,
            "partial_text": partial_text,
            "finished_at": now,
        }
        with self._database.write(lease) as connection:
            if connection.execute(end.values(values)).rowcount == 0:
                return
            if anchor is not None:
                complete_anchor(connection, anchor, session_id=lease.session_id, turn=number)
            change_session(connection, lease.session_id, updated_at=now)

    def save_partial(self, lease: Lease, number: int, text: str) -> None:
        """Stores what was streamed so far, so that any server can show it.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
        """
        change = _change(lease.session_id, number).where(_turn.status == _RUNNING)
        with self._database.write(lease) as connection:
            connection.execute(change.values(partial_text=text))

    def request_stop(self, session_id: str, number: int) -> None:
        """Asks a running turn, of any server, to stop; does nothing if it has ended."""
        change = _change(session_id, number).where(_turn.status == _RUNNING)
        with self._database.write() as connection:
            connection.execute(change.values(stop_requested=True))

    def is_stop_requested(self, session_id: str, number: int) -> bool:
        """Whether the turn's current attempt was asked to stop; False if there is no such turn."""
        with self._database.read() as connection:
            return bool(connection.execute(_STOP, {"session_id": session_id, "number": number}).scalar())

    def get(self, session_id: str, number: int) -> TurnRow:
        """Returns the turn.

        Raises:
            NotFoundError: The session has no such turn.
        """
        with self._database.read() as connection:
            return _read(connection, session_id, number)

    def last(self, session_id: str) -> TurnRow | None:
        """Returns the newest turn, None if there is none."""
        with self._database.read() as connection:
            return _last(connection, session_id)

    def list(self, session_id: str, *, last: int, before: int | None = None) -> tuple[TurnRow, ...]:
        """Returns the newest `last` turns, or the newest before this number, oldest first."""
        query = _NEWEST if before is None else _NEWEST.where(_turn.number < before)
        with self._database.read() as connection:
            rows = connection.execute(query.limit(last), {"session_id": session_id}).all()
        return tuple(TurnRow(*row) for row in reversed(rows))


def _read(connection: Connection, session_id: str, number: int) -> TurnRow:
    row = connection.execute(_ONE, {"session_id": session_id, "number": number}).one_or_none()
    if row is None:
        raise NotFoundError(str(number))
    return TurnRow(*row)


def _last(connection: Connection, session_id: str) -> TurnRow | None:
    row = connection.execute(_LAST, {"session_id": session_id}).one_or_none()
    return None if row is None else TurnRow(*row)


def _count_turns(connection: Connection, session_id: str, owner: str) -> int:
    count = connection.execute(_COUNT, {"session_id": session_id, "owner": owner}).scalar()
    if count is None:
        raise NotFoundError(session_id)
    return int(count)


def _owner(connection: Connection, lease: Lease) -> str:
    query = select(session_table.c.owner).where(session_table.c.session_id == lease.session_id)
    return str(connection.execute(query).scalar_one())


def _sum_history_tokens(connection: Connection, session_id: str, last_number: int) -> int:
    """Adds the tokens of the last turn to its own sum, so that the cost doesn't grow with the number of turns."""
    if last_number == 0:
        return 0
    before = _read(connection, session_id, last_number).history_tokens
    return before + sum_live_tokens(connection, session_id, last_number)


def _new_attempt(attempt: int, model: str, client: str, now: datetime) -> dict[str, object]:
    return {
        "attempt": attempt,
        "status": _RUNNING,
        "model": model,
        "client": client,
        "partial_text": "",
        "stop_requested": False,
        "error_code": "",
        "error_detail": "",
        "started_at": now,
        "finished_at": None,
    }


def _change(session_id: str, number: int) -> Update:
    return update(turn_table).where(_turn.session_id == session_id, _turn.number == number)
