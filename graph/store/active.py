"""The rules by which records become active or inactive; every function works in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, and_, func, or_, select, update

from graph.store.archive import has_live_between, is_live
from graph.store.column import database_time
from graph.store.schema import record_table, session_table
from graph.store.session import change_session
from graph.value.error import NotFoundError

DISCARDED_CODE = "discarded"
WITHDRAWN = "withdrawn"
SET_ASIDE = "set_aside"
UNDONE = "undone"  # a merge whose sources stand again, until it is used again

_record = record_table.c
_session = session_table.c
IS_IN_PROGRESS = _record.status == "IN_PROGRESS"
IS_COMPLETED = _record.status == "COMPLETED"
IS_PREPARED = and_(IS_COMPLETED, _record.adopted_at.is_(None), _record.superseded_by.is_(None))
# A reset only excludes earlier records: they stay unchanged and are active again once the reset is undone.
_CONTEXT_FROM = (
    select(_session.context_from_position)
    .where(_session.session_id == _record.session_id)
    .correlate(record_table)
    .scalar_subquery()
)
# `+ 0` keeps SQLite from using the index `record_by_place`: `record_by_cover` skips the superseded records.
IS_IN_CONTEXT = _record.from_position + 0 > _CONTEXT_FROM
IS_ADOPTED = and_(IS_COMPLETED, _record.adopted_at.is_not(None), _record.superseded_by.is_(None))
IS_ACTIVE = and_(IS_ADOPTED, IS_IN_CONTEXT)
# Active behind a compaction until it was undone, or behind a block until another answer in it was chosen; active again
# once the messages before it are folded.
IS_SET_ASIDE = and_(IS_COMPLETED, _record.superseded_by == SET_ASIDE, IS_IN_CONTEXT)


def adopt_record(connection: Connection, session_id: str, record_id: str) -> bool:
    """Makes a completed record active in place of the records it replaces or merges; idempotent. False if discarded.

    A record is discarded if the session has changed since planning: its last message belongs to an earlier attempt,
    another active record overlaps its range, or live messages before it are uncovered. One set aside by an undone
    compaction stays so then.
    """
    is_it = and_(_record.session_id == session_id, _record.id == record_id)
    may_be = or_(_record.superseded_by.is_(None), _record.superseded_by == SET_ASIDE)
    row = connection.execute(select(record_table).where(is_it, IS_COMPLETED, may_be)).one_or_none()
    was_set_aside = row is not None and row.superseded_by == SET_ASIDE
    if row is None or (row.adopted_at is not None and not was_set_aside):
        return row is not None
    older = [*row.sources, row.replaces or ""]
    active = and_(_record.session_id == session_id, IS_ACTIVE)
    overlaps = and_(_record.from_position <= row.to_position, _record.to_position >= row.from_position)
    is_in_the_way = select(_record.id).where(active, overlaps, _record.id.not_in(older))
    last_id = row.covered_until_message_id
    if (
        (last_id and not is_live(connection, session_id, last_id))
        or connection.execute(is_in_the_way).first() is not None
        or _leaves_hole(connection, session_id, row.from_position)
    ):
        if not was_set_aside:
            connection.execute(update(record_table).where(is_it).values(superseded_by=DISCARDED_CODE))
        return False
    connection.execute(update(record_table).where(active, _record.id.in_(older)).values(superseded_by=record_id))
    adopted_at = func.coalesce(_record.adopted_at, database_time())  # the first adoption counts
    connection.execute(update(record_table).where(is_it).values(adopted_at=adopted_at, superseded_by=None))
    if row.kind == "compaction":
        change_session(connection, session_id, restored_tokens=0)
    return True


def invalidate_from(connection: Connection, session_id: str, position: int) -> None:
    """Invalidates every record from this archive position on, because its source is about to change.

    Unfinished and prepared records are discarded (their cost still counts); active ones, and those before a reset, are
    replaced by their sources or by raw messages.
    """
    reaches = and_(_record.session_id == session_id, _record.to_position >= position)
    _discard_unadopted(connection, session_id, position)
    while (row := connection.execute(select(_record.id).where(reaches, IS_ADOPTED)).first()) is not None:
        _withdraw(connection, session_id, row.id)


def withdraw_at(connection: Connection, session_id: str, position: int) -> None:
    """Withdraws every record over this position, a merge's sources too, because what it covers there has changed.

    Those behind are set aside until the block is folded again.
    """
    _discard_unadopted(connection, session_id, position)
    is_over = and_(_record.session_id == session_id, _record.from_position <= position, _record.to_position >= position)
    may_stand = or_(_record.superseded_by.is_(None), _record.superseded_by.in_((SET_ASIDE, UNDONE)))
    stale = select(_record.id, _record.from_position).where(is_over, IS_COMPLETED, may_stand)
    first = None
    while row := connection.execute(stale).first():
        _withdraw(connection, session_id, row.id)
        first = row.from_position if first is None else min(first, row.from_position)
    if first is not None:
        adopt_again(connection, session_id, first)


def revert_records(connection: Connection, session_id: str, chain: Sequence[str]) -> None:
    """Withdraws active records, newest first, so that their sources or raw messages become active again.

    Records behind a gap in the coverage are set aside: `adopt_record` reactivates each, in the user's last version,
    once the messages before it are folded. Raises `NotFoundError` if the first of the chain isn't active.
    """
    ranges = select(_record.from_position, _record.to_position).where(_record.session_id == session_id)
    newest = connection.execute(ranges.where(_record.id == chain[0], IS_ACTIVE)).one_or_none()
    if newest is None:
        raise NotFoundError(chain[0])
    _discard_unadopted(connection, session_id, newest.from_position)
    for record_id in chain:
        _withdraw(connection, session_id, record_id)
    adopt_again(connection, session_id, newest.to_position + 1)


def adopt_again(connection: Connection, session_id: str, position: int) -> None:
    """Adopts the records from this position on again, in order; those behind a hole stay set aside."""
    is_behind = and_(_record.session_id == session_id, _record.from_position >= position, IS_ADOPTED)
    ids = connection.execute(select(_record.id).where(is_behind).order_by(_record.from_position)).scalars().all()
    connection.execute(update(record_table).where(is_behind).values(superseded_by=SET_ASIDE))
    for record_id in ids:
        adopt_record(connection, session_id, record_id)


def _discard_unadopted(connection: Connection, session_id: str, position: int) -> None:
    reaches = and_(_record.session_id == session_id, _record.to_position >= position)
    failed = {"status": "FAILED", "outcome": "failed", "error_code": DISCARDED_CODE}
    connection.execute(update(record_table).where(reaches, IS_IN_PROGRESS).values(failed))
    connection.execute(update(record_table).where(reaches, IS_PREPARED).values(superseded_by=DISCARDED_CODE))


def _withdraw(connection: Connection, session_id: str, record_id: str) -> None:
    of_session = _record.session_id == session_id
    back = update(record_table).where(of_session, _record.superseded_by == record_id).values(superseded_by=None)
    connection.execute(back)
    connection.execute(update(record_table).where(of_session, _record.id == record_id).values(superseded_by=WITHDRAWN))


def _leaves_hole(connection: Connection, session_id: str, from_position: int) -> bool:
    before = and_(_record.session_id == session_id, IS_ACTIVE, _record.from_position < from_position)
    covered_to = connection.execute(select(func.max(_record.to_position)).where(before)).scalar()
    if covered_to is None:
        begin = select(_session.context_from_position).where(_session.session_id == session_id)
        covered_to = connection.execute(begin).scalar() or 0
    return has_live_between(connection, session_id, covered_to + 1, from_position - 1)
