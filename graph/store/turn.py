"""The turn table: start, state and end of each turn, and batch queries over a server's running turns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage
from sqlalchemy import Connection, Update, and_, bindparam, delete, exists, func, insert, select, tuple_, update

from graph.recognise.client_chain import EndedFingerprint, OpenFingerprint
from graph.store.active import invalidate_from, withdraw_at
from graph.store.archive import find_position, find_turn, insert_message, keep_images, last_attempt, sum_live_tokens
from graph.store.column import database_time
from graph.store.database import Clock, Database, Lease
from graph.store.fingerprint import complete_fingerprint, insert_fingerprint
from graph.store.reset import extend_context
from graph.store.schema import attempt_table, lease_table, message_table, turn_table
from graph.store.session import change_session, count_turn
from graph.store.turn_row import (
    NEWEST,
    OPEN,
    ROWS,
    RUNNING,
    TurnRow,
    insert_turn,
    last_turn,
    new_attempt,
    read_thoughts,
    read_turn,
    seen_by_programs,
    turns_between,
)
from graph.value.error import NotFoundError
from graph.value.record import ArchivedMessage

_turn, _lease, _attempt = turn_table.c, lease_table.c, attempt_table.c
# What a turn's row says of its attempt.
_OF_ATTEMPT: Final = [column.name for column in _attempt if column.name not in ("session_id", "turn", "owner")]
_SAVE: Final = (
    update(turn_table)
    .where(
        _turn.session_id == bindparam("of_session"),
        _turn.number == bindparam("of_number"),
        _turn.status == RUNNING,
        exists().where(
            _lease.session_id == bindparam("of_session"),
            _lease.owner == bindparam("holder"),
            _lease.fence == bindparam("held_fence"),
        ),
    )
    .values(partial_text=bindparam("text"), thoughts=bindparam("thought"), thought_seconds=bindparam("for_seconds"))
)
_AMONG = tuple_(_turn.session_id, _turn.number).in_(bindparam("turns", expanding=True))
_STOPPING: Final = select(_turn.session_id, _turn.number).where(_AMONG, _turn.stop_requested)
_NEWEST = select(func.max(message_table.c.position)).where(message_table.c.session_id == _turn.session_id)
_IS_ASIDE: Final = and_(_attempt.session_id == _turn.session_id, _attempt.turn == _turn.number)
_PROGRESS: Final = ROWS.add_columns(_NEWEST.scalar_subquery(), _turn.thoughts).where(_AMONG)


class TurnKey(NamedTuple):
    session_id: str
    number: int


class PartialText(NamedTuple):
    """The text and thoughts of a running turn so far, of all of its calls."""

    lease: Lease
    number: int
    text: str
    thoughts: str = ""
    thought_seconds: float = 0.0


class TurnProgress(NamedTuple):
    """The stored state of a turn, the position of its session's newest message, and the turn's thoughts."""

    turn: TurnRow
    position: int
    thoughts: str


def save_partials(connection: Connection, partials: Iterable[PartialText]) -> None:
    """Stores the texts of running turns; skips turns that have ended or lost their lease."""
    rows = [
        {
            "of_session": partial.lease.session_id,
            "of_number": partial.number,
            "holder": partial.lease.holder,
            "held_fence": partial.lease.fence,
            "text": partial.text,
            "thought": partial.thoughts,
            "for_seconds": partial.thought_seconds,
        }
        for partial in partials
    ]
    if rows:
        connection.execute(_SAVE, rows)


def stopping(connection: Connection, turns: Collection[TurnKey]) -> frozenset[TurnKey]:
    rows = connection.execute(_STOPPING, {"turns": [tuple(turn) for turn in turns]})
    return frozenset(TurnKey(*row) for row in rows)


def progress(connection: Connection, turns: Collection[TurnKey]) -> dict[TurnKey, TurnProgress]:
    rows = connection.execute(_PROGRESS, {"turns": [tuple(turn) for turn in turns]})
    found = [TurnProgress(TurnRow(*row[:-2]), *row[-2:]) for row in rows]
    return {TurnKey(each.turn.session_id, each.turn.number): each for each in found}


__all__ = ["TurnRow", "TurnStore"]

TurnEnd = Literal["finished", "failed", "stopped", "requires_action", "asking"]


class TurnStore:
    """Starts and ends turns under a lease; reads and stop requests need no lease."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def begin(  # noqa: PLR0913  # a row of its own for most of them, in one transaction
        self,
        lease: Lease,
        *,
        owner: str,
        message: HumanMessage,
        model: str,
        is_casual: bool,
        settings: Mapping[str, object] = MappingProxyType({}),
        client: str = "",
        fingerprint: OpenFingerprint | None = None,
        images: Mapping[str, str] = MappingProxyType({}),
        whole_text: str = "",
    ) -> tuple[TurnRow, ArchivedMessage | None]:
        """Commits the user's message with its new turn.

        Args:
            lease: The session's lease.
            owner: The session's owner.
            message: With an id chosen by the sender, which makes sending idempotent.
            model: The model that will answer.
            is_casual: True if the turn takes the casual fast path.
            settings: Columns of the session to change in the same transaction.
            client: The name of the program that sends the turn, "" for the page.
            fingerprint: Fingerprint of the program's request; None for the page.
            images: `data:` URLs of the message's images by reference.
            whole_text: The message with the whole of its long files; "" if it has none.

        Returns:
            The turn, and the message as archived; None if it started the turn before.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
            NotFoundError: The owner has no such session.
            InternalError: The message has no id.
        """
        now = self._clock()
        with self._database.write(lease) as connection:
            known = find_turn(connection, lease.session_id, message.id)
            if known is not None:
                return read_turn(connection, lease.session_id, known), None
            number = count_turn(connection, lease.session_id, owner, **settings)
            columns = {"session_id": lease.session_id, "owner": owner, "turn": number, "attempt": 1, "created_at": now}
            begun = {"user_message_id": message.id, "is_casual": is_casual, **new_attempt(1, model, client, now)}
            turn = insert_turn(connection, {**columns, **begun})
            entry = insert_message(connection, message, {**columns, "whole_text": whole_text})
            keep_images(connection, lease.session_id, images, owner=owner)
            insert_fingerprint(connection, fingerprint, columns)
            return turn, entry

    def begin_attempt(
        self,
        lease: Lease,
        number: int,
        *,
        model: str,
        settings: Mapping[str, object] = MappingProxyType({}),
        client: str = "",
        fingerprint: OpenFingerprint | None = None,
    ) -> TurnRow:
        """Starts a new attempt of the last turn; the attempt before is set aside: archived, but no longer live.

        In the same transaction every record that covers the turn is invalidated, and a reset after the turn's question
        is moved
        before it.

        Args:
            lease: The session's lease.
            number: The last turn.
            model: The model that will answer.
            settings: Columns of the session to change in the same transaction.
            client: The name of the program that sends the turn, "" for the page.
            fingerprint: Fingerprint of the program's request; None for the page.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
            NotFoundError: The turn isn't the session's last one.
        """
        with self._database.write(lease) as connection:
            turn = read_turn(connection, lease.session_id, number)
            if last_turn(connection, lease.session_id) != turn:
                raise NotFoundError(str(number))
            _set_aside(connection, turn)
            attempt = last_attempt(connection, lease.session_id, number) + 1
            values = new_attempt(attempt, model, client, self._clock())
            connection.execute(_change(lease.session_id, number).values(values))
            position = find_position(connection, lease.session_id, turn.user_message_id)
            invalidate_from(connection, lease.session_id, position)
            extend_context(connection, lease.session_id, number, position)
            columns = {"session_id": lease.session_id, "turn": number, "attempt": attempt}
            insert_fingerprint(connection, fingerprint, columns)
            change_session(connection, lease.session_id, **settings, updated_at=database_time())
            return read_turn(connection, lease.session_id, number)

    def resume(  # noqa: PLR0913  # as `begin`
        self,
        lease: Lease,
        number: int,
        *,
        owner: str,
        messages: Sequence[AnyMessage],
        images: Mapping[str, str] = MappingProxyType({}),
        model: str,
        settings: Mapping[str, object] = MappingProxyType({}),
        client: str = "",
        fingerprint: OpenFingerprint | None = None,
    ) -> TurnRow:
        """Continues an open turn in the same attempt; archives a program's results in the same transaction.

        Args:
            lease: The session's lease.
            number: The turn.
            owner: The session's owner.
            messages: Results of the open calls; none if they are archived already, or if the user allows the calls.
            images: `data:` URLs of the messages' images by reference.
            model: The model that will answer.
            settings: Columns of the session to change in the same transaction.
            client: The name of the program that sends the turn.
            fingerprint: Fingerprint of the program's request.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
            NotFoundError: There is no such turn, or it isn't open.
        """
        now = self._clock()
        with self._database.write(lease) as connection:
            turn = read_turn(connection, lease.session_id, number)
            if not turn.is_open:
                raise NotFoundError(str(number))
            values = {**new_attempt(turn.attempt, model, client, now), "started_at": turn.started_at}
            del values["thoughts"], values["thought_seconds"]  # of the same attempt
            connection.execute(_change(lease.session_id, number).values(values))
            columns: dict[str, object] = {"session_id": lease.session_id, "owner": owner, "turn": number}
            columns |= {"attempt": turn.attempt, "created_at": now}
            # First: the response before ends where these messages begin.
            insert_fingerprint(connection, fingerprint, columns)
            for message in messages:
                insert_message(connection, message, columns)
            keep_images(connection, lease.session_id, images, owner=owner)
            change_session(connection, lease.session_id, **settings, updated_at=database_time())
            return read_turn(connection, lease.session_id, number)

    def finish(
        self,
        lease: Lease,
        number: int,
        status: TurnEnd,
        *,
        error_code: str = "",
        error_detail: str = "",
        partial_text: str = "",
        fingerprint: EndedFingerprint | None = None,
        asked_calls: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Ends an open turn, or makes it wait for its program or for the user; an ended turn is left unchanged."""
        end = _change(lease.session_id, number).where(_turn.status.in_(OPEN))
        values = {
            "status": status,
            "error_code": error_code,
            "error_detail": error_detail,
            "partial_text": partial_text,
            "finished_at": database_time(),
            "asked_calls": tuple(asked_calls),
        }
        with self._database.write(lease, is_context=False) as connection:
            if connection.execute(end.values(values)).rowcount == 0:
                return
            complete_fingerprint(connection, fingerprint, session_id=lease.session_id, turn=number)
            change_session(connection, lease.session_id, updated_at=database_time())

    def choose(self, lease: Lease, number: int, attempt: int) -> None:
        """Makes an attempt that was set aside count in place of the turn's present one, which is set aside.

        In the same transaction every record over the turn is withdrawn; `withdraw_at` says what becomes of the others.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
            NotFoundError: The turn has no such attempt aside, or is open.
        """
        session_id = lease.session_id
        is_it = and_(_attempt.session_id == session_id, _attempt.turn == number, _attempt.attempt == attempt)
        chosen = select(*(_attempt[name] for name in _OF_ATTEMPT)).where(is_it)
        with self._database.write(lease) as connection:
            turn = read_turn(connection, session_id, number)
            row = connection.execute(chosen).mappings().one_or_none()
            if row is None or turn.is_open:
                raise NotFoundError(str(attempt))
            tokens = sum_live_tokens(connection, session_id, number)
            _set_aside(connection, turn)
            connection.execute(delete(attempt_table).where(is_it))
            connection.execute(_change(session_id, number).values(**row, stop_requested=False, asked_calls=()))
            more_tokens = sum_live_tokens(connection, session_id, number) - tokens
            later = update(turn_table).where(_turn.session_id == session_id, _turn.number > number)
            connection.execute(later.values(history_tokens=_turn.history_tokens + more_tokens))
            withdraw_at(connection, session_id, find_position(connection, session_id, turn.user_message_id))

    def save_partials(self, partials: Sequence[PartialText]) -> None:
        """Stores the texts of running turns, readable by all servers; skips turns that lost their lease."""
        with self._database.write() as connection:
            save_partials(connection, partials)

    def request_stop(self, session_id: str, number: int) -> None:
        """Requests the stop of an open turn, on any server; does nothing if it has ended."""
        change = _change(session_id, number).where(_turn.status.in_(OPEN))
        with self._database.write(session_id=session_id, is_context=False) as connection:
            connection.execute(change.values(stop_requested=True))

    def stopping(self, turns: Collection[TurnKey]) -> frozenset[TurnKey]:
        with self._database.read() as connection:
            return stopping(connection, turns)

    def progress(self, turns: Collection[TurnKey]) -> dict[TurnKey, TurnProgress]:
        """Returns the progress of these turns, without those that don't exist."""
        with self._database.read() as connection:
            return progress(connection, turns)

    def get(self, session_id: str, number: int) -> TurnRow:
        """Raises `NotFoundError` if the session has no such turn."""
        with self._database.read() as connection:
            return read_turn(connection, session_id, number)

    def thoughts(self, session_id: str, number: int, attempt: int | None = None) -> str:
        """Returns what the model thought in an attempt, the one that counts if None; "" for nothing."""
        with self._database.read() as connection:
            return read_thoughts(connection, session_id, number, attempt)

    def aside(self, session_id: str, first: int, last: int) -> tuple[TurnRow, ...]:
        """Returns these turns as each of their attempts that don't count has them."""
        own = {name: _attempt[name] for name in _OF_ATTEMPT}
        columns = [own.get(field.name, _turn[field.name]) for field in fields(TurnRow)]
        query = select(*columns).select_from(attempt_table.join(turn_table, _IS_ASIDE))
        ranged = query.where(_attempt.session_id == session_id, _attempt.turn.between(first, last))
        with self._database.read() as connection:
            rows = connection.execute(ranged.order_by(_attempt.turn, _attempt.attempt))
            return tuple(TurnRow(*row) for row in rows)

    def last(self, session_id: str) -> TurnRow | None:
        with self._database.read() as connection:
            return last_turn(connection, session_id)

    def list(self, session_id: str, *, last: int, before: int | None = None) -> tuple[TurnRow, ...]:
        """Returns the newest `last` turns, or the newest before this number, oldest first."""
        query = NEWEST if before is None else NEWEST.where(_turn.number < before)
        with self._database.read() as connection:
            rows = connection.execute(query.limit(last), {"session_id": session_id}).all()
        return tuple(TurnRow(*row) for row in reversed(rows))

    def between(self, session_id: str, first: int, last: int) -> tuple[TurnRow, ...]:
        with self._database.read() as connection:
            return turns_between(connection, session_id, first, last)

    def seen_by_programs(self, session_id: str, last: int) -> tuple[int, bool]:
        """Counts the turns, up to this number, that were sent or imported by programs.

        True if a program also sent messages that are no turns.
        """
        with self._database.read() as connection:
            return seen_by_programs(connection, session_id, last)

    def started(self, session_id: str) -> dict[int, datetime]:
        """Returns when each turn began, by its number."""
        query = select(_turn.number, _turn.started_at).where(_turn.session_id == session_id)
        with self._database.read() as connection:
            return {row.number: row.started_at for row in connection.execute(query)}


def _set_aside(connection: Connection, turn: TurnRow) -> None:
    """Keeps what the row says of its attempt, unless that said nothing."""
    if turn.status != "finished" and not turn.partial_text.strip():
        return
    key = [_turn.session_id, _turn.number, _turn.owner, *(_turn[name] for name in _OF_ATTEMPT)]
    row = select(*key).where(_turn.session_id == turn.session_id, _turn.number == turn.number)
    names = ["session_id", "turn", "owner", *_OF_ATTEMPT]
    connection.execute(insert(attempt_table).from_select(names, row))


def _change(session_id: str, number: int) -> Update:
    return update(turn_table).where(_turn.session_id == session_id, _turn.number == number)
