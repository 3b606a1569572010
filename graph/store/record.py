"""The record table: each fold from its start to its end, and which are active."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, and_, func, insert, or_, select, update

from graph.error import NotFoundError, TurnStoppedSignal
from graph.record import Record
from graph.store.active import (
    DISCARDED_CODE,
    IS_ACTIVE,
    IS_COMPLETED,
    IS_IN_CONTEXT,
    IS_IN_PROGRESS,
    IS_PREPARED,
    adopt_record,
    invalidate_from,
    revert_records,
)
from graph.store.database import Clock, Database, Lease
from graph.store.schema import record_table, turn_table

EXPIRED_CODE = "expired"
# How folds end that no summariser is to blame for: they were thrown away, or their server died or ended.
_BLAMELESS_CODES = (DISCARDED_CODE, EXPIRED_CODE, TurnStoppedSignal.code)

_record = record_table.c
_FAILED = _record.status == "FAILED"
_PLAIN_FIELDS = [field.name for field in fields(Record) if field.name not in {"thread_id", "turns", "sources"}]
_KNOWN_LIMIT = 4_096
_CLOCK_SLACK = timedelta(seconds=60)
_COLUMNS = [_record.session_id, _record.turns, _record.sources, *(_record[name] for name in _PLAIN_FIELDS)]


@dataclass(frozen=True)
class RecordSums:
    """Sums over a session's records.

    Attributes:
        record_count: Records in force; so too the three below.
        input_tokens: Read by the summary model over every record made since a reset, failed and thrown-away ones too.
        output_tokens: Written by it, over the same.
    """

    record_count: int
    folded_turn_count: int
    original_chars: int
    summary_chars: int
    input_tokens: int
    output_tokens: int


class RecordStore:
    """Keeps every record ever made; rows are never overwritten, a newer one takes an older one's place.

    A record is in force when it was completed, adopted and not superseded. Making one takes no lease, adopting it does.
    """

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        # A completed record never changes, and a long session has hundreds that are read each turn.
        self._known: dict[str, Record] = {}

    def start(self, record: Record, *, owner: str, expires_at: datetime) -> bool:
        """Claims the making of a record: of several processes one gets True for the same session and `source_key`.

        Args:
            record: With status IN_PROGRESS.
            owner: The session's owner.
            expires_at: When its maker must have died, in UTC; from then on another may claim it.

        Returns:
            False when another is at it, has it ready, or it is active already.
        """
        with self._database.write() as connection:
            same = _of_source(record.thread_id, record.source_key)
            # One that begins in the future was dated by a clock that has been set back since.
            now = self._clock()
            is_late = or_(_record.expires_at <= now, _record.created_at > now + _CLOCK_SLACK)
            expired = {"status": "FAILED", "outcome": "failed", "error_code": EXPIRED_CODE}
            of_session = _record.session_id == record.thread_id
            connection.execute(update(record_table).where(of_session, IS_IN_PROGRESS, is_late).values(expired))
            # An active one counts too: who asks may have read the session just before that was adopted.
            is_there = or_(IS_IN_PROGRESS, IS_PREPARED, IS_ACTIVE)
            if connection.execute(select(_record.id).where(same, is_there)).first() is not None:
                return False
            connection.execute(insert(record_table).values(**_to_values(record), owner=owner, expires_at=expires_at))
            return True

    def end(self, record: Record) -> bool:
        """Keeps the finished text of a claimed record, or that it failed, with its `error_code`.

        Returns:
            False when it came too late (expired, or its session is deleted); what it cost is kept all the same.
        """
        is_it = and_(_record.session_id == record.thread_id, _record.id == record.id)
        cost = {"input_tokens": record.input_tokens, "output_tokens": record.output_tokens, "is_usage": record.is_usage}
        with self._database.write() as connection:
            ended = update(record_table).where(is_it, IS_IN_PROGRESS).values(_to_values(record))
            if connection.execute(ended).rowcount == 1:
                return True
            too_late = and_(is_it, _FAILED, _record.error_code.in_((EXPIRED_CODE, DISCARDED_CODE)))
            connection.execute(update(record_table).where(too_late).values(cost))
            return False

    def adopt(self, lease: Lease, record_id: str) -> bool:
        """Makes a completed record active, in place of those that it replaces or merges; see `adopt_record`.

        Returns:
            False when it can't be taken any more: it is discarded, and what it covers stays as it was.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
        """
        with self._database.write(lease) as connection:
            return adopt_record(connection, lease.session_id, record_id, self._clock())

    def prepared(self, session_id: str, source_key: str) -> Record | None:
        """Returns the newest record of these sources that is ready and not adopted yet."""
        query = select(*_COLUMNS).where(_of_source(session_id, source_key), IS_PREPARED)
        return self._first(query.order_by(_record.sequence.desc()))

    def in_progress(self, session_id: str, source_key: str, now: datetime) -> bool:
        """Whether somebody is making a record of these sources at `now` (UTC)."""
        is_on_time = _record.expires_at > now
        query = select(_record.id).where(_of_source(session_id, source_key), IS_IN_PROGRESS, is_on_time)
        with self._database.read() as connection:
            return connection.execute(query).first() is not None

    def active(self, session_id: str) -> list[Record]:
        """Returns the records in force, by the place of what they cover."""
        active = and_(_record.session_id == session_id, IS_ACTIVE)
        ids = select(_record.id).where(active).order_by(_record.to_position)
        with self._database.read() as connection:
            found = {record_id: self._known.get(record_id) for record_id in connection.execute(ids).scalars().all()}
            missing = [record_id for record_id, record in found.items() if record is None]
            if missing:
                rows = connection.execute(select(*_COLUMNS).where(active, _record.id.in_(missing))).mappings()
                found.update({row["id"]: _to_record(row) for row in rows})
        records = [record for record in found.values() if record is not None]
        self._remember(records, len(missing))
        return records

    def newest(self, session_id: str, last: int) -> list[Record]:
        """Returns the `last` records in force that cover the newest turns, oldest first."""
        query = select(*_COLUMNS).where(_record.session_id == session_id, IS_ACTIVE)
        return self._fetch(query.order_by(_record.to_position.desc()).limit(last))[::-1]

    def all(self, session_id: str) -> list[Record]:
        """Returns every record ever made, in the order they were started."""
        return self._fetch(select(*_COLUMNS).where(_record.session_id == session_id).order_by(_record.sequence))

    def get(self, session_id: str, record_id: str) -> Record:
        """Returns one record, in force or not.

        Raises:
            NotFoundError: The session has no such record.
        """
        record = self._first(select(*_COLUMNS).where(_record.session_id == session_id, _record.id == record_id))
        if record is None:
            raise NotFoundError(record_id)
        return record

    def invalidate_from(self, lease: Lease, position: int) -> None:
        """Invalidates every record that reaches to this archive position or past it; see `active`.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
        """
        with self._database.write(lease) as connection:
            invalidate_from(connection, lease.session_id, position)

    def revert(self, lease: Lease, chain: Sequence[str], *, restored_tokens: int) -> None:
        """Undoes active records, newest first, in one transaction; see `revert_records`.

        Raises:
            LeaseLostError: The lease was lost; nothing is written.
            NotFoundError: The first one isn't active.
        """
        with self._database.write(lease) as connection:
            if not revert_records(connection, lease.session_id, chain, restored_tokens):
                raise NotFoundError(chain[0])

    def failures_in_a_row(self, session_id: str, position: int) -> tuple[int, str]:
        """Returns how often folds over this position failed in a row and the last code; ends of servers don't count."""
        reaches = and_(_record.from_position <= position, _record.to_position >= position)
        block = and_(_record.session_id == session_id, reaches)
        worked = select(func.coalesce(func.max(_record.sequence), 0)).where(block, IS_COMPLETED).scalar_subquery()
        failed = and_(block, _FAILED, _record.error_code.not_in(_BLAMELESS_CODES))
        query = select(_record.error_code).where(failed, _record.sequence > worked)
        with self._database.read() as connection:
            codes = connection.execute(query.order_by(_record.sequence.desc())).scalars().all()
        return len(codes), codes[0] if codes else ""

    def sums(self, session_id: str) -> RecordSums:
        """Returns the sums that the panel shows; a turn that two records share counts once."""
        of_session = _record.session_id == session_id
        sizes, costs = (_record.original_chars, _record.summary_chars), (_record.input_tokens, _record.output_tokens)
        query = select(
            *(func.coalesce(func.sum(column).filter(IS_ACTIVE), 0) for column in sizes),
            *(func.coalesce(func.sum(column).filter(IS_IN_CONTEXT), 0) for column in costs),
        )
        with self._database.read() as connection:
            turns = connection.execute(select(_record.turns).where(of_session, IS_ACTIVE)).scalars().all()
            folded = {turn for listed in turns for turn in json.loads(listed)}
            return RecordSums(len(turns), len(folded), *connection.execute(query.where(of_session)).one())

    def adoption_turns(self, session_id: str, record_ids: Sequence[str]) -> set[int]:
        """Returns the turns whose input was the first to hold one of these records.

        A record is adopted while a turn runs, or by hand between two turns: then the next one is the first.
        """
        turn = turn_table.c
        adopted = select(_record.adopted_at).where(_record.session_id == session_id, _record.id.in_(record_ids))
        ended = select(turn.finished_at).where(turn.session_id == session_id, turn.finished_at.is_not(None))
        with self._database.read() as connection:
            moments = connection.execute(adopted.where(_record.adopted_at.is_not(None))).scalars().all()
            ends = connection.execute(ended.order_by(turn.number)).scalars().all()
        # Rising, whatever a clock that was set back says of one of them.
        rising = list(accumulate(ends, max))
        return {bisect_left(rising, moment) + 1 for moment in moments}

    def _remember(self, records: list[Record], new_count: int) -> None:
        if new_count == 0:
            return
        if len(self._known) + new_count > _KNOWN_LIMIT:
            self._known = {}
        self._known.update((record.id, record) for record in records)

    def _first(self, query: Select[Any]) -> Record | None:
        return next(iter(self._fetch(query.limit(1))), None)

    def _fetch(self, query: Select[Any]) -> list[Record]:
        with self._database.read() as connection:
            return [_to_record(row) for row in connection.execute(query).mappings()]


def _of_source(session_id: str, source_key: str) -> ColumnElement[bool]:
    return and_(_record.session_id == session_id, _record.source_key == source_key)


def _to_values(record: Record) -> dict[str, object]:
    values = {name: getattr(record, name) for name in _PLAIN_FIELDS}
    lists = {"turns": json.dumps(record.turns), "sources": json.dumps(record.sources)}
    return {**values, **lists, "session_id": record.thread_id}


def _to_record(row: RowMapping) -> Record:
    return Record(
        thread_id=row["session_id"],
        turns=tuple(json.loads(row["turns"])),
        sources=tuple(json.loads(row["sources"])),
        **{name: row[name] for name in _PLAIN_FIELDS},
    )
