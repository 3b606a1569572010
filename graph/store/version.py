"""The versions of a record, and the active one. Needs no lease, so that running turns aren't blocked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, and_, insert, select, update

from graph.store.active import DISCARDED_CODE, IS_ACTIVE, IS_COMPLETED
from graph.store.archive import is_live
from graph.store.column import next_sequence
from graph.store.database import Database
from graph.store.record import RECORD_ROWS
from graph.store.row import to_record, to_values
from graph.store.schema import record_table
from graph.value.record import Record

REPLACED: Final = "replaced"
UNDONE: Final = "undone"

_record = record_table.c
_PLACE = (_record.id, _record.from_position, _record.to_position)


class VersionStore:
    """Adds versions of records and chooses the active one.

    All versions of a record cover the same messages and are linked by `replaces`. The active version supersedes the
    records
    that the first one replaced; the others stay selectable.
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
        """Stores a finished record as the newest version of another record, and makes it active.

        Returns:
            The record as stored; None, with nothing stored, if no version of the other record is active any more.
        """
        with self._database.write(session_id=record.thread_id) as connection:
            block = _read_block(connection, record.thread_id, of)
            if block is None or not block.can_stand(connection):
                return None
            place = {"sequence": next_sequence(record_table, record.thread_id), "owner": owner}
            connection.execute(insert(record_table).values({**to_values(record), **place}))
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
        """Makes this version the active one; idempotent.

        Returns:
            False if no version of it is active, and it isn't an undone merge that can be restored.
        """
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

    def undone_merges(self, session_id: str) -> frozenset[tuple[int, int]]:
        """Returns the first and last position of each merge undone by the user."""
        undone = and_(_record.session_id == session_id, _record.superseded_by == UNDONE)
        with self._database.read() as connection:
            rows = connection.execute(select(*_PLACE).where(undone))
            return frozenset((row.from_position, row.to_position) for row in rows)


@dataclass(frozen=True)
class _Block:
    """The range of messages covered by the versions of a record.

    Attributes:
        versions: All of them, oldest first.
        active: Active records that overlap the range.
    """

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
