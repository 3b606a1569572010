"""Compacts a session's context by hand, and undoes compactions, between turns."""

from __future__ import annotations

import threading
from typing import Final

from graph.error import InputError, NotFoundError
from graph.record import Record
from graph.service.access import SessionAccess
from graph.strategy.compaction import CompactionStrategy, compaction_fold

COMPACTION: Final = CompactionStrategy.name


class Compactions:
    """Makes, lists and undoes compactions of one owner's sessions."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._stores = access.stores

    def make(self, session_id: str) -> Record:
        """Replaces all but the newest messages by one summary; see `Folds.compact`."""
        session = self._access.own(session_id)
        if not self._access.strategies.of(session.strategy).sends_records:
            raise InputError("no_effect")
        with self._access.between_turns(session_id) as lease:
            session = self._access.own(session_id)  # a turn may have ended since
            turn_count, rate = session.turn_count - session.is_open, session.compression_rate
            snapshot = self._access.fold_worker.snapshot(session_id, complete_turns=turn_count, rate=rate)
            spec = compaction_fold(snapshot, self._access.settings.preserve_recent_messages)
            if spec is None:
                raise InputError("nothing_to_compact")
            limiter = self._access.runner.limiter
            limiter.begin(self._access.owner)  # it costs what a turn does
            stop = self._access.compacting[session_id] = threading.Event()
            try:
                record = self._access.fold_worker.make_now(
                    session_id, spec, owner=self._access.owner, model=session.model, stop=stop
                )
            finally:
                del self._access.compacting[session_id]
                limiter.end(self._access.owner)
            if record is None or not self._stores.records.adopt(lease, record.id):
                raise InputError("compact_stopped" if stop.is_set() else "compact_failed")
        return record

    def restore(self, session_id: str, record_id: str) -> None:
        """Undoes a compaction and every later one; see `Folds.restore`."""
        self._access.own(session_id)
        if self._stores.records.get(session_id, record_id).kind != COMPACTION:
            raise InputError("not_a_compaction")
        with self._access.between_turns(session_id) as lease:
            active = self._stores.context(session_id).records
            chains = [self._chain(record) for record in active]
            chain = next((chain for chain in chains if any(step.id == record_id for step in chain)), None)
            if chain is None:
                raise NotFoundError(record_id)
            ids = [step.id for step in chain]
            with self._stores.database.writing():
                self._stores.records.revert(lease, ids[: ids.index(record_id) + 1])
                tokens = self._stores.context(session_id).tokens
                self._stores.sessions.update(session_id, self._access.owner, restored_tokens=tokens)

    def undoable(self, session_id: str) -> tuple[Record, ...]:
        """Returns every compaction that `restore` can undo, newest first."""
        self._access.own(session_id)
        active = self._stores.records.active(session_id)
        return tuple(step for record in reversed(active) for step in self._chain(record))

    def _chain(self, record: Record) -> list[Record]:
        """Returns a compaction and the earlier ones that it replaced, newest first; [] for other records."""
        chain = []
        step = record if record.kind == COMPACTION else None
        while step is not None:
            chain.append(step)
            step = next((source for source in self._sources(step) if source.kind == COMPACTION), None)
        return chain

    def _sources(self, record: Record) -> list[Record]:
        return [self._stores.records.get(record.thread_id, source) for source in record.sources]
