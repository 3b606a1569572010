"""Reads the whole history that a model's input stands beside: every turn since the last reset."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from graph.input_view import HistoryTurn
from graph.record import ArchivedMessage
from graph.service.access import SessionAccess
from graph.service.input_block import said_block
from graph.store.stores import Stores


def read_history(access: SessionAccess, session_id: str, turn: int, *, last: int) -> tuple[HistoryTurn, ...]:
    """Returns the turns since the last reset before a turn, up to it.

    Args:
        access: The owner's access to sessions.
        session_id: The session.
        turn: The turn.
        last: Returns only that many of the newest, oldest first.

    Raises:
        NotFoundError: There is no such session or turn.
    """
    access.own(session_id)
    access.stores.turns.get(session_id, turn)
    begin, _ = history_begin(access.stores, session_id, turn)
    said = access.stores.archive.live_turns(session_id, max(begin, turn - last + 1), turn)
    return tuple(_turn(number, list(entries)) for number, entries in groupby(said, key=lambda entry: entry.turn))


def history_begin(stores: Stores, session_id: str, turn: int) -> tuple[int, int]:
    """Returns the first turn behind the last reset before a turn, and our estimate for everything said before it."""
    begin = max((after for after in stores.resets.turns(session_id) if after < turn), default=0) + 1
    return begin, stores.turns.get(session_id, begin).history_tokens if begin > 1 else 0


def _turn(number: int, said: Sequence[ArchivedMessage]) -> HistoryTurn:
    blocks = [said_block(("message", str(entry.message.id), 1, entry.tokens), entry) for entry in said]
    return HistoryTurn(number, sum(entry.tokens for entry in said), tuple(blocks))
