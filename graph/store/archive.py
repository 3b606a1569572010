"""The tables of messages, images and pins: all messages of a session, numbered, append-only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from langchain_core.messages import AnyMessage
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import insert

from graph.core.text import measure
from graph.store.column import database_time
from graph.store.database import Clock, Database, Lease
from graph.store.row import IS_LIVE, USER_ROLE, WITH_TURN, decode_message, encode_message
from graph.store.schema import image_table, message_table, pin_table, turn_table
from graph.store.search import index_message
from graph.value.error import InternalError, NotFoundError
from graph.value.record import ArchivedMessage

_message = message_table.c
_END = literal(2**62, BigInteger)  # behind every position
MESSAGE_COLUMNS = (
    _message.position,
    _message.turn,
    _message.attempt,
    _message.role,
    _message.message_id,
    _message.content,
    _message.chars,
    _message.tokens,
    _message.created_at,
)
_IN_SESSION = _message.session_id == bindparam("of_session")
_IS_IT = and_(_IN_SESSION, _message.message_id == bindparam("of_message"))
_NEXT = select(func.coalesce(func.max(_message.position), 0) + 1).where(_IN_SESSION)
# Nothing is added, and no position returned, if the message is archived already.
_ADD = (
    insert(message_table)
    .values(
        {column.name: bindparam(f"of_{column.name}", type_=column.type) for column in message_table.c}
        | {"position": _NEXT.scalar_subquery()}
    )
    .on_conflict_do_nothing(index_elements=[_message.session_id, _message.message_id])
    .returning(_message.position)
)
_TURN = select(_message.turn).where(_IS_IT)
_ROW = select(*MESSAGE_COLUMNS).where(_IS_IT)
_LIVE_ROWS = select(*MESSAGE_COLUMNS, turn_table.c.is_imported).select_from(WITH_TURN).where(IS_LIVE)
_LIVE_IDS = select(_message.message_id).select_from(WITH_TURN).where(IS_LIVE)
_FIRST, _LAST = bindparam("first", type_=BigInteger), bindparam("last", type_=BigInteger)


def _question_of(number: ColumnElement[int]) -> ScalarSelect[int]:
    asked, turn = message_table.alias("asked"), turn_table.alias("asking")
    is_it = and_(asked.c.session_id == turn.c.session_id, asked.c.message_id == turn.c.user_message_id)
    condition = and_(turn.c.session_id == bindparam("of_session"), turn.c.number == number)
    return select(asked.c.position).select_from(turn.join(asked, is_it)).where(condition).scalar_subquery()


# No index covers turns, but a turn's messages are contiguous, from its question to the next turn's: only the session's
# last turn grows.
_IS_IN_TURNS = and_(
    _IN_SESSION,
    _message.turn.between(_FIRST, _LAST),
    _message.position >= func.coalesce(_question_of(_FIRST), 0),
    _message.position < func.coalesce(_question_of(_LAST + 1), _END),
)
LIVE_TOKENS = select(func.coalesce(func.sum(_message.tokens), 0)).select_from(WITH_TURN).where(IS_LIVE, _IS_IN_TURNS)
_LAST_ATTEMPT = select(func.max(_message.attempt)).where(_IS_IN_TURNS)
_OF_TURNS = _LIVE_ROWS.where(_IS_IN_TURNS).order_by(_message.position)
_WHOLE_TEXTS = (
    select(_message.message_id, _message.whole_text)
    .select_from(WITH_TURN)
    .where(IS_LIVE, _IS_IN_TURNS, _message.role == "tool", _message.whole_text != "")
)
_WHOLE_TEXT = select(_message.whole_text).where(_IS_IT)
_WHOLE_QUESTIONS = (
    select(_message.whole_text)
    .where(_IN_SESSION, _message.role == USER_ROLE, _message.turn >= bindparam("of_turn"), _message.whole_text != "")
    .order_by(_message.position)
)
_ALL_OF_TURNS = select(*MESSAGE_COLUMNS).where(_IS_IN_TURNS).order_by(_message.position)
_FROM = _LIVE_ROWS.where(_IN_SESSION, _message.position >= _FIRST, _message.turn >= bindparam("of_turn")).order_by(
    _message.position
)
# Enough to find one with words in.
OPENINGS = 8
_QUESTIONS = _LIVE_ROWS.where(_IN_SESSION, _message.role == USER_ROLE).order_by(_message.position)
_said = message_table.alias("said").c
_OF_USER = (_said.session_id == bindparam("of_session"), _said.role == USER_ROLE)
_pin = pin_table.c
_IS_PINNED: Final = and_(_pin.session_id == _message.session_id, _pin.message_id == _message.message_id)
_PINNED: Final = select(_said.position).where(
    _pin.session_id == bindparam("of_session"), _said.session_id == _pin.session_id, _said.message_id == _pin.message_id
)
_FIRST_SAID: Final = select(_said.position).where(*_OF_USER).order_by(_said.position).limit(OPENINGS)
_LONG: Final = (
    select(_said.position)
    .where(*_OF_USER, _said.turn >= bindparam("of_turn"), _said.whole_text != "")
    .order_by(_said.position.desc())
    .limit(1)
)
_OPENING: Final = (
    _LIVE_ROWS.add_columns(
        exists().where(_IS_PINNED).label("is_pinned"),
        and_(_message.role == USER_ROLE, _message.turn >= bindparam("of_turn"), _message.whole_text != "").label(
            "is_long"
        ),
    )
    .where(
        _IN_SESSION,
        _message.position.in_(
            _PINNED.union(select(_FIRST_SAID.subquery().c.position), select(_LONG.subquery().c.position))
        ),
    )
    .order_by(_message.position)
)


class Archive:
    """Appends messages under a lease and reads them by position, by turn or by id.

    A message is live if it belongs to its turn's current attempt; a user's message belongs to every attempt.
    """

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def append(
        self,
        lease: Lease,
        *,
        owner: str,
        turn: int,
        attempt: int,
        messages: Sequence[AnyMessage],
        whole_texts: Mapping[str, str] = MappingProxyType({}),
        images: Mapping[str, str] = MappingProxyType({}),
    ) -> list[ArchivedMessage]:
        """Adds messages at the session's next positions and returns them as archived; idempotent by message id.

        A turn's messages must be contiguous: `turn` is the session's last. `whole_texts` has the text of results, by
        id of the message, that are cut there; `images` are `data:` URLs of the messages' images by reference.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
            InternalError: A message has no id.
        """
        columns = {
            "session_id": lease.session_id,
            "owner": owner,
            "turn": turn,
            "attempt": attempt,
            "created_at": self._clock(),
        }
        with self._database.write(lease) as connection:
            added = [
                insert_message(connection, message, {**columns, "whole_text": whole_texts.get(str(message.id), "")})
                for message in messages
            ]
            keep_images(connection, lease.session_id, images, owner=owner)
            return [
                entry or _read(connection, lease.session_id, message.id)
                for message, entry in zip(messages, added, strict=True)
            ]

    def live(self, session_id: str, *, from_position: int = 1, from_turn: int = 1) -> list[ArchivedMessage]:
        return self.live_within(session_id, [(from_position, None)], from_turn=from_turn)

    def live_within(
        self, session_id: str, spans: Sequence[tuple[int, int | None]], *, from_turn: int = 1
    ) -> list[ArchivedMessage]:
        """Returns the live messages in these ranges of positions, in order, from a turn on.

        A range is its first and last position; None for the newest position.
        """
        return self.uncovered(session_id, spans, from_turn=from_turn)[0]

    def _rows_within(
        self, session_id: str, spans: Sequence[tuple[int, int | None]], *, from_turn: int
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        if len(spans) == 1 and spans[0][1] is None:  # a statement built once: each turn reads so
            query: Select[Any] = _FROM
            parameters = {"of_session": session_id, "first": spans[0][0], "of_turn": from_turn}
        else:
            ranges = [
                _message.position >= first if last is None else _message.position.between(first, last)
                for first, last in spans
            ]
            query, parameters = _live(session_id).where(or_(*ranges), _message.turn >= from_turn), {}
            query = query.order_by(_message.position)
        with self._database.read() as connection:
            return connection.execute(query, parameters).all()

    def uncovered(
        self, session_id: str, spans: Sequence[tuple[int, int | None]], *, from_turn: int = 1
    ) -> tuple[list[ArchivedMessage], frozenset[int]]:
        """Returns what `live_within` does, and which of its turns a program sent with their answers."""
        rows = self._rows_within(session_id, spans, from_turn=from_turn)
        return [to_archived(row) for row in rows], frozenset(row.turn for row in rows if row.is_imported)

    def opening(self, session_id: str, *, from_turn: int) -> tuple[Sequence[AnyMessage], list[ArchivedMessage], bool]:
        """Returns the user's first messages, the live pinned ones, and whether a question has long files.

        Only questions from this turn on count for the last.
        """
        with self._database.read() as connection:
            rows = connection.execute(_OPENING, {"of_session": session_id, "of_turn": from_turn}).all()
        entries = [to_archived(row) for row in rows]
        first = [entry.message for entry in entries if entry.message.type == USER_ROLE][:OPENINGS]
        pinned = [entry for entry, row in zip(entries, rows, strict=True) if row.is_pinned]
        return first, pinned, any(row.is_long for row in rows)

    def live_turns(self, session_id: str, first_turn: int, last_turn: int) -> list[ArchivedMessage]:
        """Returns the live messages of these turns (both ends included), in order."""
        with self._database.read() as connection:
            parameters = {"of_session": session_id, "first": first_turn, "last": last_turn}
            return [to_archived(row) for row in connection.execute(_OF_TURNS, parameters)]

    def whole_texts(self, session_id: str, first_turn: int, last_turn: int) -> dict[str, str]:
        """Returns the whole texts of the live results of these turns that are cut, by message id."""
        with self._database.read() as connection:
            parameters = {"of_session": session_id, "first": first_turn, "last": last_turn}
            return {row.message_id: row.whole_text for row in connection.execute(_WHOLE_TEXTS, parameters)}

    def whole_text(self, session_id: str, message_id: str) -> str:
        """Returns the whole text of a result or question that is cut, live or not; "" for any other."""
        with self._database.read() as connection:
            parameters = {"of_session": session_id, "of_message": message_id}
            return str(connection.scalar(_WHOLE_TEXT, parameters) or "")

    def whole_questions(self, session_id: str, from_turn: int) -> list[str]:
        """Returns the whole texts of questions of which long files are cut, oldest first."""
        with self._database.read() as connection:
            parameters = {"of_session": session_id, "of_turn": from_turn}
            return [*connection.scalars(_WHOLE_QUESTIONS, parameters)]

    def all_of_turn(self, session_id: str, turn: int) -> list[ArchivedMessage]:
        """Returns all messages of a turn, earlier attempts included, in order."""
        with self._database.read() as connection:
            parameters = {"of_session": session_id, "first": turn, "last": turn}
            return [to_archived(row) for row in connection.execute(_ALL_OF_TURNS, parameters)]

    def questions(self, session_id: str, *, limit: int | None = None) -> list[ArchivedMessage]:
        """Returns the user's messages, oldest first."""
        with self._database.read() as connection:
            return [to_archived(row) for row in connection.execute(_QUESTIONS.limit(limit), {"of_session": session_id})]

    def get(self, session_id: str, message_id: str) -> ArchivedMessage:
        """Returns one message, live or not; raises `NotFoundError`."""
        with self._database.read() as connection:
            return _read(connection, session_id, message_id)


def find_turn(connection: Connection, session_id: str, message_id: str | None) -> int | None:
    """Returns the turn of a message, None if not archived; raises `InternalError` without an id, as it could repeat."""
    if message_id is None:
        raise InternalError
    turn: int | None = connection.execute(_TURN, {"of_session": session_id, "of_message": message_id}).scalar()
    return turn


def find_position(connection: Connection, session_id: str, message_id: str) -> int:
    """Raises `NotFoundError` if the session has no such message."""
    return _read(connection, session_id, message_id).position


def is_live(connection: Connection, session_id: str, message_id: str) -> bool:
    query = _LIVE_IDS.where(_message.session_id == session_id, _message.message_id == message_id)
    return connection.execute(query).first() is not None


def has_live_between(connection: Connection, session_id: str, first: int, last: int) -> bool:
    """True for a live message from `first` to `last` inclusive."""
    query = _LIVE_IDS.where(_message.session_id == session_id, _message.position.between(first, last))
    return first <= last and connection.execute(query.limit(1)).first() is not None


def insert_message(connection: Connection, message: AnyMessage, values: Mapping[str, Any]) -> ArchivedMessage | None:
    """Inserts the message at the session's next position; None if it is archived already.

    `values` has the other columns, with `session_id`. Raises `InternalError` without an id, as it could repeat.
    """
    if message.id is None:
        raise InternalError
    identity = {"message_id": message.id, "role": message.type, "content": encode_message(message)}
    chars, tokens = measure(message)
    row = {"whole_text": "", **values, **identity, "chars": chars, "tokens": tokens}
    bound = {f"of_{name}": value for name, value in row.items()}
    position = connection.execute(_ADD, {**bound, "of_session": row["session_id"]}).scalar()
    if position is None:
        return None
    index_message(connection, {**row, "position": position})
    stored = decode_message(row["role"], message.id, row["content"])
    return ArchivedMessage(position, row["turn"], row["attempt"], stored, chars, tokens, row["created_at"])


def sum_live_tokens(connection: Connection, session_id: str, turn: int) -> int:
    return int(connection.execute(LIVE_TOKENS, {"of_session": session_id, "first": turn, "last": turn}).scalar_one())


def last_attempt(connection: Connection, session_id: str, turn: int) -> int:
    """Returns the number of the newest attempt of the session's last turn."""
    parameters = {"of_session": session_id, "first": turn, "last": turn}
    return int(connection.execute(_LAST_ATTEMPT, parameters).scalar_one())


def _live(session_id: str) -> Select[Any]:
    return _LIVE_ROWS.where(_message.session_id == session_id)


def _read(connection: Connection, session_id: str, message_id: str | None) -> ArchivedMessage:
    row = connection.execute(_ROW, {"of_session": session_id, "of_message": message_id}).one_or_none()
    if row is None:
        raise NotFoundError(message_id or "")
    return to_archived(row)


def to_archived(row: Row[*tuple[Any, ...]]) -> ArchivedMessage:
    message = decode_message(row.role, row.message_id, row.content)
    return ArchivedMessage(row.position, row.turn, row.attempt, message, row.chars, row.tokens, row.created_at)


_image = image_table.c


class ImageStore:
    """Reads images; `keep_images` writes them, in the transaction of their message."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, session_id: str, references: Collection[str]) -> dict[str, str]:
        """Returns the `data:` URLs of these references; unknown ones are left out."""
        if not references:
            return {}
        query = select(_image.hash, _image.data_url).where(_image.session_id == session_id, _image.hash.in_(references))
        with self._database.read() as connection:
            return {row.hash: row.data_url for row in connection.execute(query)}


def keep_images(connection: Connection, session_id: str, images: Mapping[str, str], *, owner: str) -> None:
    """Stores `data:` URLs by reference, in the caller's transaction; existing references are left unchanged."""
    for reference, url in images.items():
        key = {"session_id": session_id, "hash": reference}
        if connection.execute(select(_image.hash).filter_by(**key)).first() is None:
            connection.execute(insert(image_table).values(**key, owner=owner, data_url=url))


class PinStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, session_id: str, message_id: str, *, owner: str) -> None:
        """Pins a message; it must not be pinned yet."""
        row = {"session_id": session_id, "message_id": message_id, "owner": owner}
        with self._database.write(session_id=session_id) as connection:
            connection.execute(insert(pin_table).values(**row, created_at=database_time()))

    def remove(self, session_id: str, message_id: str) -> None:
        """Unpins a message; ignores unpinned ones."""
        is_it = and_(_pin.session_id == session_id, _pin.message_id == message_id)
        with self._database.write(session_id=session_id) as connection:
            connection.execute(delete(pin_table).where(is_it))
