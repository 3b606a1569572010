"""Batch queries over all running turns of a server: partial texts, stop requests, progress."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, exists, func, select, tuple_, update

from graph.store.database import Lease
from graph.store.schema import lease_table, message_table, turn_table
from graph.store.turn_row import ROWS, RUNNING, TurnRow

_turn, _lease = turn_table.c, lease_table.c
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
    .values(partial_text=bindparam("text"))
)
_AMONG = tuple_(_turn.session_id, _turn.number).in_(bindparam("turns", expanding=True))
_STOPPING: Final = select(_turn.session_id, _turn.number).where(_AMONG, _turn.stop_requested)
_NEWEST = select(func.max(message_table.c.position)).where(message_table.c.session_id == _turn.session_id)
_PROGRESS: Final = ROWS.add_columns(_NEWEST.scalar_subquery()).where(_AMONG)


class TurnPlace(NamedTuple):
    session_id: str
    number: int


class PartialText(NamedTuple):
    lease: Lease
    number: int
    text: str


class TurnProgress(NamedTuple):
    """The stored state of a turn, and the position of its session's newest message."""

    turn: TurnRow
    position: int


def save_partials(connection: Connection, partials: Iterable[PartialText]) -> None:
    """Stores the texts of running turns; skips turns that have ended or lost their lease."""
    rows = [
        {
            "of_session": partial.lease.session_id,
            "of_number": partial.number,
            "holder": partial.lease.holder,
            "held_fence": partial.lease.fence,
            "text": partial.text,
        }
        for partial in partials
    ]
    if rows:
        connection.execute(_SAVE, rows)


def stopping(connection: Connection, turns: Collection[TurnPlace]) -> frozenset[TurnPlace]:
    rows = connection.execute(_STOPPING, {"turns": [tuple(turn) for turn in turns]})
    return frozenset(TurnPlace(*row) for row in rows)


def progress(connection: Connection, turns: Collection[TurnPlace]) -> dict[TurnPlace, TurnProgress]:
    rows = connection.execute(_PROGRESS, {"turns": [tuple(turn) for turn in turns]})
    found = [TurnProgress(TurnRow(*row[:-1]), row[-1]) for row in rows]
    return {TurnPlace(each.turn.session_id, each.turn.number): each for each in found}
