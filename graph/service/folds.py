"""The folds of a session and what they cost: records, figures, and what a user does to its context by hand."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final, Literal

from graph.core.snapshot import SessionSnapshot
from graph.core.token import estimate_tokens
from graph.error import InputError, NotFoundError
from graph.record import Record
from graph.service.access import SessionAccess
from graph.strategy.compaction import CompactionStrategy, compaction_fold
from graph.view import ChartPoint, Gauge, Statistics
from prompt.system import chat

COMPACTION: Final = CompactionStrategy.name
Command = Literal["compact", "reset"]
_COMMANDS: Final[dict[str, Command]] = {"/compact": "compact", "/reset": "reset"}


class Folds:
    """Reads the records and their figures; compacts, restores and begins the context anew, between turns."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._stores = access.stores
        self._owner = access.owner
        self._fold_worker = access.fold_worker

    def records(self, session_id: str, *, last: int | None = None) -> tuple[Record, ...]:
        """Returns the records in force, oldest first; with `last` only that many of the newest.

        Raises:
            NotFoundError: There is no such session.
        """
        self._access.own(session_id)
        store = self._stores.records
        return tuple(store.active(session_id) if last is None else store.newest(session_id, last))

    def statistics(self, session_id: str) -> Statistics:
        """Returns the sums of the panel.

        Raises:
            NotFoundError: There is no such session.
        """
        self._access.own(session_id)
        sums = self._stores.records.sums(session_id)
        saved = round(100 * (1 - sums.summary_chars / sums.original_chars)) if sums.original_chars else 0
        return Statistics(
            record_count=sums.record_count,
            folded_turn_count=sums.folded_turn_count,
            original_chars=sums.original_chars,
            summary_chars=sums.summary_chars,
            saved_percent=saved,
            unsent_tokens=self._stores.calls.unsent_tokens(session_id),
            fold_tokens=sums.input_tokens + sums.output_tokens,
        )

    def chart(self, session_id: str) -> tuple[ChartPoint, ...]:
        """Returns for each turn since a reset what its last call sent and what the full history would have been.

        Raises:
            NotFoundError: There is no such session.
        """
        self._access.own(session_id)
        points = self._stores.calls.series(session_id)
        active = [record.id for record in self._stores.records.active(session_id)]
        held = self._stores.records.adoption_turns(session_id, active)
        # A turn that was not answered has no point: the next one's was the first to hold the record.
        folds = {next((point.turn for point in points if point.turn >= turn), 0) for turn in held}
        return tuple(ChartPoint(turn, sent, full, has_fold=turn in folds) for turn, sent, full in points)

    def gauge(self, session_id: str | None, *, model: str = "") -> Gauge:
        """Returns how much of the context window the last model call took.

        Before the first call, and without a session, it's the system prompt alone.

        Raises:
            NotFoundError: There is no such session.
        """
        if session_id is not None:
            self._access.own(session_id)
        window = self._access.models.window_tokens(model or self._access.models.default_name)
        call = self._stores.calls.last_answered(session_id) if session_id else None
        if call is None:
            return Gauge(estimate_tokens(chat.get_prompt()), window, "estimate")
        if call.usage_input_tokens is not None:
            return Gauge(call.usage_input_tokens, window, "usage")
        corrected = round(call.sent_tokens * self._stores.calls.correction(call.session_id))
        return Gauge(corrected, window, "estimate")

    def command_of(self, text: str) -> Command | None:
        """Returns the command that a user typed instead of a message, None if it's a message."""
        return _COMMANDS.get(text.strip().lower())

    def compact(self, session_id: str) -> Record:
        """Replaces all but the newest messages by one structured summary now, and waits for it.

        Returns:
            The record, with messages and tokens before and after.

        Raises:
            InputError: `no_effect` (the strategy sends no summaries), `nothing_to_compact` (too few messages), or
                `compact_failed` (nothing shorter came of it), or `compact_stopped`.
            NotFoundError: There is no such session.
            BusyError: A turn is in progress.
        """
        session = self._access.own(session_id)
        if not self._access.strategies.of(session.strategy).sends_records:
            raise InputError("no_effect")
        with self._access.between_turns(session_id) as lease:
            spec = compaction_fold(self._snapshot(session_id), self._access.settings.preserve_recent_messages)
            if spec is None:
                raise InputError("nothing_to_compact")
            stop = self._access.compacting[session_id] = threading.Event()
            try:
                record = self._fold_worker.make_now(session_id, spec, owner=self._owner, model=session.model, stop=stop)
            finally:
                del self._access.compacting[session_id]
            if record is None or not self._stores.records.adopt(lease, record.id):
                raise InputError("compact_stopped" if stop.is_set() else "compact_failed")
        return next(view for view in self.records(session_id) if view.id == record.id)

    def restore(self, session_id: str, record_id: str) -> None:
        """Undoes a compaction and those made after it: what they replaced is sent again, from the next turn on.

        Records of what was said since then go too, so that no message is left in neither a record nor the raw turns.
        No compaction is made by itself until the context has grown by a tenth.

        Raises:
            InputError: `not_a_compaction`.
            NotFoundError: There is no such session, or no active record is or stands on this one.
            BusyError: A turn is in progress.
        """
        self._access.own(session_id)
        if self._stores.records.get(session_id, record_id).kind != COMPACTION:
            raise InputError("not_a_compaction")
        with self._access.between_turns(session_id) as lease:
            active = self._snapshot(session_id).active
            newest = next((record for record in active if self._stands_on(record, record_id)), None)
            if newest is None:
                raise NotFoundError(record_id)
            line = self._line(newest)
            chain = line[: [record.id for record in line].index(record_id) + 1]
            before = [record for record in active if record.to_position < newest.from_position]
            tokens = self._tokens_without(session_id, before, chain[-1])
            self._stores.records.revert(lease, [record.id for record in chain], restored_tokens=tokens)

    def reset(self, session_id: str) -> None:
        """Begins the context anew: nothing said so far is sent any more; the transcript stays.

        Raises:
            NotFoundError: There is no such session.
            BusyError: A turn is in progress.
        """
        self._access.own(session_id)
        with self._access.between_turns(session_id) as lease:
            snapshot = self._snapshot(session_id)
            if snapshot.raw:
                self._stores.sessions.begin_context(lease, snapshot.raw[-1].position)
            elif snapshot.active:
                self._stores.sessions.begin_context(lease, snapshot.active[-1].to_position)

    def compactions(self, session_id: str) -> tuple[Record, ...]:
        """Returns the compactions that what is sent now stands on, newest first; each can be restored.

        Raises:
            NotFoundError: There is no such session.
        """
        self._access.own(session_id)
        lines = [self._line(record) for record in reversed(self._stores.records.active(session_id))]
        return tuple(record for line in lines for record in line)

    def _tokens_without(self, session_id: str, before: Sequence[Record], undone: Record) -> int:
        """Estimates the context that comes back when this record is undone; `before` stay active."""
        sources = [self._stores.records.get(session_id, source) for source in undone.sources]
        active = [*before, *sources]
        begin = active[-1].to_position if active else self._stores.sessions.context_begin(session_id)
        raw = self._stores.archive.live(session_id, from_position=begin + 1)
        return sum(record.summary_tokens for record in active) + sum(entry.tokens for entry in raw)

    def _line(self, record: Record) -> list[Record]:
        """Returns a compaction and the ones before it that it took the place of, newest first; [] for other records."""
        line = []
        while record.kind == COMPACTION:
            line.append(record)
            sources = [self._stores.records.get(record.thread_id, source) for source in record.sources]
            record = next((source for source in sources if source.kind == COMPACTION), record)
            if record is line[-1]:
                break
        return line

    def _stands_on(self, record: Record, record_id: str) -> bool:
        return any(older.id == record_id for older in self._line(record))

    def _snapshot(self, session_id: str) -> SessionSnapshot:
        session = self._access.own(session_id)
        return self._fold_worker.snapshot(session_id, complete_turns=session.turn_count, rate=session.compression_rate)
