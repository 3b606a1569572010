"""The table of anchors: by which hashes the responses to programs are recognised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from sqlalchemy import Connection, and_, bindparam, func, insert, select, update

from graph.core.client_chain import EndedAnchor, OpenAnchor
from graph.store.database import Database
from graph.store.schema import anchor_table, session_table, turn_table

AnchorHash = Literal["asked", "idempotency", "chain", "pair", "answer"]

_anchor, _session, _turn = anchor_table.c, session_table.c, turn_table.c
_ADD = insert(anchor_table)
_HASHES_AT_ONCE: Final = 500
_later = anchor_table.alias("later")
_OF_TURN = and_(_turn.session_id == _anchor.session_id, _turn.number == _anchor.turn)
# By the index of sessions: a scope has far more anchors than a session has turns.
_HAS_LATER = (
    select(_later.c.sequence)
    .where(_later.c.session_id == _anchor.session_id, _later.c.turn > _anchor.turn, _later.c.scope == _anchor.scope)
    .exists()
)
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
        ~_HAS_LATER,
    )
    .select_from(anchor_table.join(turn_table, _OF_TURN).join(session_table, _session.session_id == _anchor.session_id))
    .where(_anchor.scope == bindparam("of_scope"))
    .order_by(_anchor.sequence.desc())
)
_OF_SESSION = and_(_anchor.session_id == bindparam("of_session"), _anchor.scope == bindparam("of_scope"))
_TURNS = select(_anchor.turn).where(_OF_SESSION).distinct()
_SCOPES = select(_anchor.scope).where(_anchor.session_id == bindparam("of_session")).distinct()
_FOUND = {
    name: _ROWS.where(_anchor[name].in_(bindparam("hashes", expanding=True)))
    for name in ("asked", "idempotency", "chain", "pair", "answer")
}


@dataclass(frozen=True)
class AnchorRow:
    """An anchor with what its turn and its session are now; times are UTC.

    Attributes:
        family: The session's.
        chain: None until the response is whole, and if nothing was sent.
        status: The turn's, in its last attempt.
        model: The turn's, in its last attempt; "" for the default one.
        is_live: Whether the turn's last attempt gave the response.
        is_last: Whether the turn is the session's last one.
        is_head: Whether no later turn of the session has an anchor of this scope.
    """

    session_id: str
    family: str
    turn: int
    attempt: int
    created_at: datetime
    asked: bytes
    chain: bytes | None
    status: Literal["running", "requires_action", "finished", "failed", "stopped"]
    model: str
    is_live: bool
    is_last: bool
    is_head: bool


class AnchorStore:
    """Finds anchors; `TurnStore` writes them, in the transactions in which their turns begin and end."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, scope: bytes, kind: AnchorHash, hashes: Sequence[bytes], *, limit: int) -> tuple[AnchorRow, ...]:
        """Returns the anchors of a scope that have one of these hashes, newest first.

        Args:
            scope: Whose.
            kind: Which hash.
            hashes: Its values.
            limit: How many at most for each 500 hashes.
        """
        query = _FOUND[kind].limit(limit)
        found: list[AnchorRow] = []
        with self._database.read() as connection:
            for first in range(0, len(hashes), _HASHES_AT_ONCE):
                part = {"of_scope": scope, "hashes": list(hashes[first : first + _HASHES_AT_ONCE])}
                found += [AnchorRow(*row) for row in connection.execute(query, part)]
        return tuple(found)

    def turns(self, session_id: str, scope: bytes) -> frozenset[int]:
        """Returns the turns of a session that have an anchor of this scope."""
        with self._database.read() as connection:
            return frozenset(connection.execute(_TURNS, {"of_session": session_id, "of_scope": scope}).scalars())

    def scopes(self, session_id: str) -> frozenset[bytes]:
        """Returns the scopes that a session has anchors of."""
        with self._database.read() as connection:
            return frozenset(connection.execute(_SCOPES, {"of_session": session_id}).scalars())


def insert_anchor(connection: Connection, anchor: OpenAnchor, place: Mapping[str, object]) -> None:
    """Writes the anchor of a response that begins; `place` has session, owner, turn, attempt and time."""
    hashes = {"scope": anchor.scope, "asked": anchor.asked, "idempotency": anchor.idempotency}
    connection.execute(_ADD, {**place, **hashes})


def complete_anchor(connection: Connection, anchor: EndedAnchor, *, session_id: str, turn: int) -> None:
    """Writes what was sent into the newest anchor of a turn that asked this, within the caller's transaction."""
    is_it = and_(_anchor.session_id == session_id, _anchor.turn == turn, _anchor.asked == anchor.asked)
    newest = select(func.max(_anchor.sequence)).where(is_it).scalar_subquery()
    values = {"chain": anchor.chain, "pair": anchor.pair, "answer": anchor.answer}
    connection.execute(update(anchor_table).where(_anchor.sequence == newest).values(values))
