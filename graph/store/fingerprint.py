"""The table of response fingerprints: hashes by which earlier responses to programs are recognised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection, Integer, and_, bindparam, func, insert, select, update

from graph.recognise.client_chain import EndedFingerprint, FingerprintHash, FingerprintRow, OpenFingerprint
from graph.store.column import database_time, next_sequence
from graph.store.database import Database
from graph.store.schema import anchor_table, call_table, message_table, session_table, turn_table

_anchor, _session, _turn = anchor_table.c, session_table.c, turn_table.c
_call, _message = call_table.c, message_table.c
_HASHES_AT_ONCE: Final = 500
_OF_TURN = and_(_turn.session_id == _anchor.session_id, _turn.number == _anchor.turn)
_ROWS = (
    select(
        _anchor.session_id,
        _session.family,
        _anchor.turn,
        _anchor.attempt,
        _anchor.created_at,
        _anchor.asked,
        _anchor.chain,
        _turn.status,
        _turn.model,
        _turn.attempt == _anchor.attempt,
        _session.turn_count == _anchor.turn,
        _anchor.whole,
        _anchor.frame,
        _turn.client,
    )
    .select_from(anchor_table.join(turn_table, _OF_TURN).join(session_table, _session.session_id == _anchor.session_id))
    .where(_anchor.scope == bindparam("of_scope"), _session.deleted_at.is_(None))
    .order_by(_anchor.sequence.desc())
)
_OF_SESSION = and_(_anchor.session_id == bindparam("of_session"), _anchor.scope == bindparam("of_scope"))
_TURNS = select(_anchor.turn).where(_OF_SESSION).distinct()
_SCOPES = select(_anchor.scope).where(_anchor.session_id == bindparam("of_session")).distinct()
_OF_ATTEMPT = (
    select(_anchor.asked, _anchor.created_at, _anchor.first_position, _anchor.first_call)
    .where(
        _anchor.session_id == bindparam("of_session"),
        _anchor.turn == bindparam("of_turn"),
        _anchor.attempt == bindparam("of_attempt"),
    )
    .order_by(_anchor.sequence)
)
_FOUND = {
    name: _ROWS.where(_anchor[name].in_(bindparam("hashes", expanding=True))).limit(bindparam("most", type_=Integer))
    for name in ("asked", "idempotency", "chain", "answer")
}


class ResponseStart(NamedTuple):
    """One response of a turn: the hash of its request, and the time in UTC.

    Attributes:
        first_position: The first archive position of the response.
        first_call: The number of its first model call within the attempt.
    """

    asked: bytes
    created_at: datetime
    first_position: int
    first_call: int


class FingerprintStore:
    """Finds fingerprints; `TurnStore` writes them, in the transactions that start and end turns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(
        self, scope: bytes, kind: FingerprintHash, hashes: Sequence[bytes], *, limit: int
    ) -> tuple[FingerprintRow, ...]:
        """Returns the rows of a scope with one of these hashes, newest first.

        Args:
            scope: The scope to search.
            kind: The column to compare.
            hashes: Values of that column.
            limit: The maximum for each 500 hashes.
        """
        found: list[FingerprintRow] = []
        with self._database.read() as connection:
            for first in range(0, len(hashes), _HASHES_AT_ONCE):
                part = {"of_scope": scope, "hashes": list(hashes[first : first + _HASHES_AT_ONCE]), "most": limit}
                found += [FingerprintRow(*row) for row in connection.execute(_FOUND[kind], part)]
        return tuple(found)

    def of_attempt(self, session_id: str, turn: int, attempt: int) -> tuple[ResponseStart, ...]:
        """Returns the responses of an attempt, oldest first: the first one, and one for each resumption."""
        with self._database.read() as connection:
            parameters = {"of_session": session_id, "of_turn": turn, "of_attempt": attempt}
            return tuple(ResponseStart(*row) for row in connection.execute(_OF_ATTEMPT, parameters))

    def turns(self, session_id: str, scope: bytes) -> frozenset[int]:
        with self._database.read() as connection:
            return frozenset(connection.execute(_TURNS, {"of_session": session_id, "of_scope": scope}).scalars())

    def scopes(self, session_id: str) -> frozenset[bytes]:
        with self._database.read() as connection:
            return frozenset(connection.execute(_SCOPES, {"of_session": session_id}).scalars())


def insert_fingerprint(
    connection: Connection, fingerprint: OpenFingerprint | None, columns: Mapping[str, object]
) -> None:
    """Inserts the fingerprint of a program's response, positioned after all archived messages.

    Args:
        connection: In a write transaction.
        fingerprint: None for the page.
        columns: The session, turn and attempt of the response.
    """
    if fingerprint is None:
        return
    names = ("scope", "asked", "idempotency", "whole", "frame")
    hashes = {name: getattr(fingerprint, name) for name in names}
    owner = select(_session.owner).where(_session.session_id == columns["session_id"]).scalar_subquery()
    archived = select(func.max(_message.position)).where(_message.session_id == columns["session_id"])
    is_made = (_call[name] == columns[name] for name in ("session_id", "turn", "attempt"))
    firsts = {
        "sequence": next_sequence(anchor_table, str(columns["session_id"])),
        "created_at": database_time(),
        "first_position": func.coalesce(archived.scalar_subquery(), 0) + 1,
        "first_call": func.coalesce(select(func.max(_call.ordinal)).where(*is_made).scalar_subquery(), 0) + 1,
    }
    connection.execute(insert(anchor_table).values(**{**columns, **hashes, **firsts, "owner": owner}))


def complete_fingerprint(
    connection: Connection, fingerprint: EndedFingerprint | None, *, session_id: str, turn: int
) -> None:
    """Adds the response's hashes to the turn's newest row with the same request, in the caller's transaction."""
    if fingerprint is None:
        return
    is_it = and_(_anchor.session_id == session_id, _anchor.turn == turn, _anchor.asked == fingerprint.asked)
    newest = select(func.max(_anchor.sequence)).where(is_it).scalar_subquery()
    values = {"chain": fingerprint.chain, "answer": fingerprint.answer}
    connection.execute(update(anchor_table).where(is_it, _anchor.sequence == newest).values(values))
