"""The record table: life cycle, queries and versions of folds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import accumulate, takewhile
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, bindparam, func, insert, not_, or_, select, update

from graph.core.cost import FoldCounts
from graph.store.active import (
    DISCARDED_CODE,
    IS_ACTIVE,
    IS_ADOPTED,
    IS_COMPLETED,
    IS_IN_CONTEXT,
    IS_IN_PROGRESS,
    IS_PREPARED,
    IS_SET_ASIDE,
    SET_ASIDE,
    UNDONE,
    adopt_record,
    invalidate_from,
    revert_records,
)
from graph.store.archive import is_live
from graph.store.column import database_time, next_sequence
from graph.store.database import Database, Lease
from graph.store.lease import is_gone, named_process, process_name, this_process
from graph.store.row import to_record, to_values
from graph.store.schema import record_table, turn_table
from graph.value.error import NotFoundError, TurnStoppedSignal
from graph.value.record import LedgerLine, Record, is_line

EXPIRED_CODE = "expired"
# Not failures of the summariser: the fold was discarded, or its server died or shut down.
_BLAMELESS_CODES = (DISCARDED_CODE, EXPIRED_CODE, TurnStoppedSignal.code)

# Prefix of the codes of rejected drafts.
_DRAFT_CODES = "summary_"

_record = record_table.c
_FAILED = _record.status == "FAILED"
_KNOWN_LIMIT = 4_096
_CLOCK_SLACK_SECONDS = 180  # servers may be two minutes apart
_SAME_NAMED = [_record[field.name] for field in fields(Record) if field.name in _record]
RECORD_ROWS = select(_record.session_id.label("thread_id"), *_SAME_NAMED, _record.facts)
_PLACE = (_record.id, _record.from_position, _record.to_position)
_STANDING = (
    select(*_PLACE, _record.superseded_by, _record.sequence)
    .where(
        _record.session_id == bindparam("session_id"),
        or_(IS_ACTIVE, IS_SET_ASIDE, and_(IS_COMPLETED, _record.superseded_by == UNDONE, IS_IN_CONTEXT)),
    )
    .order_by(_record.to_position)
)
_PREPARED = (
    RECORD_ROWS.where(
        _record.session_id == bindparam("of_session"), _record.source_key == bindparam("of_source"), IS_PREPARED
    )
    .order_by(_record.sequence.desc())
    .limit(1)
)


class StandingRecords(NamedTuple):
    """The records of a session's context.

    `active` are in order; `set_aside`, newest first, were active behind a compaction before it was undone, or behind
    another answer; `undone` has the first and last position of each merge that the user undid.
    """

    active: list[Record]
    set_aside: list[Record]
    undone: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class RecordSums:
    """Sums over a session's active records; the tokens are those of all records since the last reset, failed ones too.

    `estimated_count` is the number of records without reported usage.
    """

    record_count: int
    folded_turn_count: int
    original_chars: int
    summary_chars: int
    input_tokens: int
    output_tokens: int
    estimated_count: int


class RecordStore:
    """Stores all records ever made; a finished one is never overwritten, only superseded.

    A record is active if it is completed, adopted and not superseded. Making one needs no lease, adopting it does.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        # A cache: a completed record never changes, and each turn of a long session reads hundreds.
        self._known: dict[str, Record] = {}

    def start(self, record: Record, *, owner: str, expires_after_seconds: float) -> bool:
        """Claims a fold: of several processes only one gets True for the same session and `source_key`.

        A claim ends with its process, if its state is known, otherwise after `expires_after_seconds`.
        """
        with self._database.write(session_id=record.thread_id, is_context=False) as connection:
            same = _record.source_key == record.source_key
            # A claim from the future was made before the clock was set back.
            is_of_future = _record.created_at > database_time(_CLOCK_SLACK_SECONDS)
            is_late = or_(_record.expires_at <= database_time(), is_of_future)
            # Active ones too: one may have been adopted since the caller read the session.
            is_there = or_(IS_IN_PROGRESS, and_(same, or_(IS_PREPARED, IS_ACTIVE)))
            states = (same.label("is_same"), IS_IN_PROGRESS.label("is_going"), is_late.label("is_late"))
            query = select(_record.id, _record.error_code, *states)
            rows = connection.execute(query.where(_record.session_id == record.thread_id, is_there)).all()
            over = {row.id for row in rows if row.is_going and (row.is_late or _is_gone(row.error_code))}
            if over:
                expired = {"status": "FAILED", "outcome": "failed", "error_code": EXPIRED_CODE}
                of_session = update(record_table).where(_record.session_id == record.thread_id)
                connection.execute(of_session.where(_record.id.in_(over)).values(expired))
            if any(row.is_same and row.id not in over for row in rows):
                return False
            columns = {"sequence": next_sequence(record_table, record.thread_id), "owner": owner}
            claim = {**to_values(record), **columns, "expires_at": database_time(expires_after_seconds)}
            claim["error_code"] = process_name(this_process())  # free until the record ends
            connection.execute(insert(record_table).values(claim))
            return True

    def end(self, record: Record) -> bool:
        """Stores the result of a claimed record; False if too late or discarded: then only the cost is stored."""
        is_it = and_(_record.session_id == record.thread_id, _record.id == record.id)
        cost = {"input_tokens": record.input_tokens, "output_tokens": record.output_tokens, "is_usage": record.is_usage}
        with self._database.write(session_id=record.thread_id, is_context=False) as connection:
            ended = update(record_table).where(is_it, IS_IN_PROGRESS).values({**to_values(record), "expires_at": None})
            if connection.execute(ended).rowcount == 1:
                return True
            too_late = and_(is_it, _FAILED, _record.error_code.in_((EXPIRED_CODE, DISCARDED_CODE)))
            connection.execute(update(record_table).where(too_late).values(cost))
            return False

    def adopt(self, lease: Lease, record_id: str) -> bool:
        """Calls `adopt_record` under the lease."""
        with self._database.write(lease) as connection:
            return adopt_record(connection, lease.session_id, record_id)

    def prepared(self, session_id: str, source_key: str) -> Record | None:
        return self._database.once(
            ("prepared", session_id, source_key), partial(self._prepared, session_id, source_key)
        )

    def _prepared(self, session_id: str, source_key: str) -> Record | None:
        with self._database.read() as connection:
            row = connection.execute(_PREPARED, {"of_session": session_id, "of_source": source_key}).mappings().first()
        return to_record(row) if row is not None else None

    def is_prepared(self, record: Record) -> bool:
        """True if a finished record was neither adopted nor discarded yet."""
        is_it = and_(_record.session_id == record.thread_id, _record.id == record.id, IS_PREPARED)
        with self._database.read() as connection:
            return connection.execute(select(_record.id).where(is_it)).first() is not None

    def in_progress(self, session_id: str, source_key: str) -> bool:
        is_on_time = _record.expires_at > database_time()
        query = select(_record.error_code).where(_of_source(session_id, source_key), IS_IN_PROGRESS, is_on_time)
        with self._database.read() as connection:
            return any(not _is_gone(maker) for maker in connection.execute(query).scalars())

    def active(self, session_id: str) -> list[Record]:
        return self.standing(session_id).active

    def standing(self, session_id: str) -> StandingRecords:
        """Returns the records of a session's context, and those that may be in it again."""
        with self._database.read() as connection:
            places = connection.execute(_STANDING, {"session_id": session_id}).all()
            ids = [row.id for row in places if row.superseded_by != UNDONE]
            found = {record_id: self._known.get(record_id) for record_id in ids}
            if missing := [record_id for record_id, record in found.items() if record is None]:
                query = RECORD_ROWS.where(_record.session_id == session_id, _record.id.in_(missing))
                found.update({row["id"]: to_record(row) for row in connection.execute(query).mappings()})
        known = {record_id: record for record_id, record in found.items() if record is not None}
        if missing:
            if len(self._known) + len(missing) > _KNOWN_LIMIT:
                self._known = {}
            self._known.update(known)
        newest_first = sorted(places, key=lambda row: row.sequence, reverse=True)
        return StandingRecords(
            active=[known[row.id] for row in places if row.superseded_by is None],
            set_aside=[known[row.id] for row in newest_first if row.superseded_by == SET_ASIDE],
            undone=frozenset((row.from_position, row.to_position) for row in places if row.superseded_by == UNDONE),
        )

    def newest(self, session_id: str, last: int) -> list[Record]:
        """Returns the `last` active records with the newest turns, oldest first."""
        query = RECORD_ROWS.where(_record.session_id == session_id, IS_ACTIVE)
        return self._fetch(query.order_by(_record.to_position.desc()).limit(last))[::-1]

    def past(self, session_id: str, last: int) -> list[Record]:
        """Returns the `last` records with the newest turns among those active before a reset, oldest first."""
        query = RECORD_ROWS.where(_record.session_id == session_id, IS_ADOPTED, not_(IS_IN_CONTEXT))
        return self._fetch(query.order_by(_record.to_position.desc()).limit(last))[::-1]

    def get(self, session_id: str, record_id: str) -> Record:
        """Returns one record, active or not; raises `NotFoundError`."""
        record = self._first(RECORD_ROWS.where(_record.session_id == session_id, _record.id == record_id))
        if record is None:
            raise NotFoundError(record_id)
        return record

    def ledger_lines(self, session_id: str, *, before: int | None = None) -> list[LedgerLine]:
        """Returns the lines of the user's word of all records ever made.

        With `before`, of those in the context that end before this position, adopted or not.
        """
        query = select(_record.ledger).where(_record.session_id == session_id, _record.ledger != ())
        if before is not None:
            is_current = and_(IS_COMPLETED, _record.superseded_by.is_(None), IS_IN_CONTEXT)
            query = query.where(is_current, _record.to_position < before)
        with self._database.read() as connection:
            ledgers = connection.execute(query.order_by(_record.to_position)).scalars().all()
        return [LedgerLine(*line) for ledger in ledgers for line in ledger if is_line(line)]

    def invalidate_from(self, lease: Lease, position: int) -> None:
        """Calls `invalidate_from` under the lease."""
        with self._database.write(lease) as connection:
            invalidate_from(connection, lease.session_id, position)

    def revert(self, lease: Lease, chain: Sequence[str]) -> None:
        """Calls `revert_records` under the lease."""
        with self._database.write(lease) as connection:
            revert_records(connection, lease.session_id, chain)

    def failures_in_a_row(self, session_id: str, position: int) -> tuple[int, str]:
        """Returns the number of consecutive failed calls for folds over this position, and the last code.

        The first failed fold counts as two calls if its draft was rejected and the fold before it succeeded: the draft
        was then corrected once. Shutdowns of servers don't count.
        """
        return self.tried(session_id, {"": position})[""][1:]

    def tried(self, session_id: str, positions: Mapping[str, int]) -> dict[str, tuple[bool, int, str]]:
        """Returns for folds, by their source keys, whether one is prepared, and what `failures_in_a_row` does."""
        reaches = [and_(_record.from_position <= place, _record.to_position >= place) for place in positions.values()]
        columns = (*_PLACE, _record.sequence, _record.status, _record.error_code, _record.source_key)
        query = select(*columns, IS_PREPARED.label("is_prepared")).where(_record.session_id == session_id)
        with self._database.read() as connection:
            rows = connection.execute(query.where(or_(*reaches)).order_by(_record.sequence.desc())).all()
        found: dict[str, tuple[bool, int, str]] = {}
        for key, place in positions.items():
            block = [row for row in rows if row.from_position <= place <= row.to_position]
            failed = [
                row
                for row in takewhile(lambda row: row.status != "COMPLETED", block)
                if row.status == "FAILED" and row.error_code not in _BLAMELESS_CODES
            ]
            is_draft = bool(failed) and failed[-1].error_code.startswith(_DRAFT_CODES)
            was_mended = is_draft and self.was_last_made(session_id, before=failed[-1].sequence)
            is_prepared = any(row.is_prepared and row.source_key == key for row in block)
            found[key] = is_prepared, len(failed) + was_mended, failed[0].error_code if failed else ""
        return found

    def was_last_made(self, session_id: str, *, before: int | None = None) -> bool:
        """True if the last fold by a model, before this sequence number if given, succeeded."""
        made = and_(IS_COMPLETED, _record.outcome != "picked", _record.kind != "verbatim")
        failed = and_(_FAILED, _record.error_code.not_in(_BLAMELESS_CODES))
        asked = select(_record.status).where(_record.session_id == session_id, or_(made, failed))
        if before is not None:
            asked = asked.where(_record.sequence < before)
        with self._database.read() as connection:
            last = connection.execute(asked.order_by(_record.sequence.desc()).limit(1)).scalar()
        return last == "COMPLETED"

    def sums(self, session_id: str, *, ready: Sequence[Record] = (), is_past: bool = False) -> RecordSums:
        """Returns the sums, as if `ready` records were active; a turn shared by two records counts once.

        With `is_past`, those of the records that were active before a reset, and of the cost until then.
        """
        of_session, is_counted = _record.session_id == session_id, not_(IS_IN_CONTEXT) if is_past else IS_IN_CONTEXT
        counted = and_(IS_ADOPTED, is_counted)
        for record in ready:
            covered = and_(_record.from_position >= record.from_position, _record.to_position <= record.to_position)
            counted = or_(_record.id == record.id, and_(counted, not_(covered)))
        sizes, costs = (_record.original_chars, _record.summary_chars), (_record.input_tokens, _record.output_tokens)
        columns: list[ColumnElement[int]] = [
            *(func.coalesce(func.sum(column).filter(counted), 0) for column in sizes),
            *(func.coalesce(func.sum(column).filter(is_counted), 0) for column in costs),
            func.count().filter(is_counted, not_(_record.is_usage), costs[0] + costs[1] > 0),
        ]
        with self._database.read() as connection:
            turns = connection.execute(select(_record.turns).where(of_session, counted)).scalars().all()
            folded = {turn for covered in turns for turn in covered}
            sums: Sequence[int] = connection.execute(select(*columns).where(of_session)).one()
            return RecordSums(len(turns), len(folded), *sums)

    def fold_counts(self, session_id: str, *, ready: Sequence[Record] = ()) -> FoldCounts:
        of_session, is_fold = _record.session_id == session_id, _record.kind != "merge"
        was_used, is_paid = and_(is_fold, _record.adopted_at.is_not(None)), _record.input_tokens > 0
        removed = _record.source_tokens - _record.summary_tokens
        columns: list[ColumnElement[int]] = [
            func.count(_record.to_position.distinct()).filter(was_used),  # the same for all versions
            func.count().filter(is_fold, IS_ACTIVE),
            func.coalesce(func.sum(removed).filter(is_fold, IS_ACTIVE), 0),
            func.count().filter(_FAILED, is_paid, _record.error_code.in_(_BLAMELESS_CODES)),
        ]
        with self._database.read() as connection:
            turns = connection.execute(select(_record.turns).where(of_session, IS_ACTIVE)).scalars().all()
            query = select(*columns).where(of_session, IS_IN_CONTEXT)
            made, active, removed_tokens, broken_off = map(int, connection.execute(query).one())
        new_tokens = sum(record.source_tokens - record.summary_tokens for record in ready)
        folded = {turn for covered in (*turns, *(record.turns for record in ready)) for turn in covered}
        return FoldCounts(
            made + len(ready),
            active + len(ready),
            removed_tokens + new_tokens,
            new_tokens,
            len(folded),
            max(folded, default=0),
            broken_off,
        )

    def adoption_turns(self, session_id: str, record_ids: Sequence[str]) -> set[int]:
        """Returns the turns whose input was the first to contain one of these records."""
        turn = turn_table.c
        adopted = select(_record.adopted_at).where(_record.session_id == session_id, _record.id.in_(record_ids))
        ended = select(turn.finished_at).where(turn.session_id == session_id, turn.finished_at.is_not(None))
        with self._database.read() as connection:
            moments = connection.execute(adopted.where(_record.adopted_at.is_not(None))).scalars().all()
            ends = connection.execute(ended.order_by(turn.number)).scalars().all()
        # Bisecting needs ascending times, even if the clock was set back in between.
        rising = list(accumulate(ends, max))
        return {bisect_left(rising, moment) + 1 for moment in moments}

    def _first(self, query: Select[Any]) -> Record | None:
        return next(iter(self._fetch(query.limit(1))), None)

    def _fetch(self, query: Select[Any]) -> list[Record]:
        with self._database.read() as connection:
            return [to_record(row) for row in connection.execute(query).mappings()]


def _is_gone(maker: str) -> bool:
    process = named_process(maker)
    return process is not None and is_gone(process)


def _of_source(session_id: str, source_key: str) -> ColumnElement[bool]:
    return and_(_record.session_id == session_id, _record.source_key == source_key)


REPLACED: Final = "replaced"


class VersionStore:
    """Adds versions of records and chooses the active one. Needs no lease, so that running turns aren't blocked.

    All versions of a record cover the same messages and are linked by `replaces`. The active version supersedes the
    records that the first one replaced; the others stay selectable.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, session_id: str, record_id: str) -> list[Record]:
        """Returns all versions of this record, oldest first; [] if it was never active."""
        with self._database.read() as connection:
            block = _read_block(connection, session_id, record_id)
            of_block = and_(_record.session_id == session_id, _record.id.in_(block.ids if block else ()))
            rows = connection.execute(RECORD_ROWS.where(of_block).order_by(_record.sequence)).mappings()
            return [to_record(row) for row in rows]

    def add(self, record: Record, *, owner: str, of: str) -> Record | None:
        """Stores a finished record as the active, newest version of another; None if that isn't active."""
        with self._database.write(session_id=record.thread_id) as connection:
            block = _read_block(connection, record.thread_id, of)
            if block is None or not block.can_stand(connection):
                return None
            columns = {"sequence": next_sequence(record_table, record.thread_id), "owner": owner}
            connection.execute(insert(record_table).values({**to_values(record), **columns}))
            return block.put_newest(connection, record)

    def adopt(self, record: Record, *, of: str) -> Record | None:
        """Makes a prepared record the newest, active version of another record; discards it if it no longer fits."""
        with self._database.write(session_id=record.thread_id) as connection:
            block = _read_block(connection, record.thread_id, of)
            if block is None or not block.can_stand(connection):
                discard = update(record_table).where(_is(record.thread_id, record.id))
                connection.execute(discard.values(superseded_by=DISCARDED_CODE))
                return None
            return block.put_newest(connection, record)

    def use(self, session_id: str, record_id: str) -> bool:
        """Makes this version the active one; idempotent. False if none is active or can be restored."""
        with self._database.write(session_id=session_id) as connection:
            block = _read_block(connection, session_id, record_id)
            if block is None or not block.can_stand(connection):
                return False
            block.put(connection, record_id)
            return True

    def undo_merge(self, session_id: str, record_id: str) -> bool:
        """Makes the records replaced by an active record active again; returns False if it wasn't active."""
        is_it = _is(session_id, record_id)
        with self._database.write(session_id=session_id) as connection:
            if connection.execute(select(_record.id).where(is_it, IS_ACTIVE)).first() is None:
                return False
            _relink(connection, session_id, record_id, None)
            connection.execute(update(record_table).where(is_it).values(superseded_by=UNDONE))
            return True


@dataclass(frozen=True)
class _Block:
    """The range of messages covered by a record's versions (oldest first), and the overlapping active records."""

    session_id: str
    from_position: int
    to_position: int
    until_message_id: str
    versions: Sequence[Row[*tuple[Any, ...]]]
    active: Sequence[Row[*tuple[Any, ...]]]

    @property
    def ids(self) -> list[str]:
        return [row.id for row in self.versions]

    def can_stand(self, connection: Connection) -> bool:
        """True if a version is active, or if a merge was undone and its messages are still live."""
        if not {row.id for row in self.active}.isdisjoint(self.ids):
            return True
        was_undone = any(row.superseded_by == UNDONE for row in self.versions)
        first, last = self.from_position, self.to_position
        is_whole = all(first <= row.from_position and row.to_position <= last for row in self.active)
        is_there = bool(self.active) and is_whole and is_live(connection, self.session_id, self.until_message_id)
        return was_undone and is_there

    def put_newest(self, connection: Connection, record: Record) -> Record:
        links = {"version": max(row.version for row in self.versions) + 1, "replaces": self.versions[-1].id}
        connection.execute(update(record_table).where(_is(self.session_id, record.id)).values(links))
        self.put(connection, record.id)
        return record.with_changes(**links)

    def put(self, connection: Connection, record_id: str) -> None:
        """Activates a record in place of the active version and of everything it replaced."""
        older = [version for version in self.ids if version != record_id]
        for row in self.active:
            if row.id == record_id:
                return
            if row.id in older:
                _relink(connection, self.session_id, row.id, record_id)
            else:  # a record restored by undoing a merge
                back = update(record_table).where(_is(self.session_id, row.id))
                connection.execute(back.values(superseded_by=record_id))
        is_older = and_(_record.session_id == self.session_id, _record.id.in_(older))
        connection.execute(update(record_table).where(is_older).values(superseded_by=REPLACED))
        # The turns count as folded since the first version was adopted.
        adopted = {"superseded_by": None, "adopted_at": self.versions[0].adopted_at}
        connection.execute(update(record_table).where(_is(self.session_id, record_id)).values(adopted))


def _read_block(connection: Connection, session_id: str, record_id: str) -> _Block | None:
    links = (_record.replaces, _record.superseded_by, _record.version)
    columns = (*_PLACE, *links, _record.covered_until_message_id, _record.adopted_at)
    of_session = select(*columns).where(_record.session_id == session_id)
    own = connection.execute(of_session.where(_record.id == record_id)).one_or_none()
    if own is None:
        return None
    first, last = own.from_position, own.to_position
    same = and_(_record.from_position == first, _record.to_position == last)
    was_adopted = and_(IS_COMPLETED, _record.adopted_at.is_not(None))
    rows = connection.execute(of_session.where(same, was_adopted).order_by(_record.sequence)).all()
    before = {row.id: row.replaces for row in rows}

    def first_of(version: str) -> str:
        while (older := before[version]) in before:
            version = str(older)
        return version

    if record_id not in before:
        return None
    versions = [row for row in rows if first_of(row.id) == first_of(record_id)]
    overlaps = and_(_record.from_position <= last, _record.to_position >= first)
    active = connection.execute(of_session.where(IS_ACTIVE, overlaps)).all()
    return _Block(session_id, first, last, own.covered_until_message_id, versions, active)


def _relink(connection: Connection, session_id: str, old: str, new: str | None) -> None:
    """Makes records superseded by `old` superseded by `new`, or active."""
    of_old = and_(_record.session_id == session_id, _record.superseded_by == old)
    connection.execute(update(record_table).where(of_old).values(superseded_by=new))


def _is(session_id: str, record_id: str) -> ColumnElement[bool]:
    return and_(_record.session_id == session_id, _record.id == record_id)
