"""Tells in which turn each record was first sent; changes nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from sqlalchemy import select

from graph.store.database import Database
from graph.store.schema import record_table, turn_table


def find_adoption_turns(database: Database, session_id: str, record_ids: Sequence[str]) -> set[int]:
    """Returns the turns whose input was the first to hold one of these records.

    A record is adopted while a turn runs, or by hand between two turns: then the next one is the first.
    """
    record, turn = record_table.c, turn_table.c
    adopted = select(record.adopted_at).where(record.session_id == session_id, record.id.in_(record_ids))
    ended = select(turn.finished_at).where(turn.session_id == session_id, turn.finished_at.is_not(None))
    with database.read() as connection:
        moments = connection.execute(adopted.where(record.adopted_at.is_not(None))).scalars().all()
        ends = connection.execute(ended.order_by(turn.number)).scalars().all()
    # Rising, whatever a clock that was set back says of one of them.
    rising = list(accumulate(ends, max))
    return {bisect_left(rising, moment) + 1 for moment in moments}
