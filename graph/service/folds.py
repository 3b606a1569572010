"""Reads a session's folds and their figures; runs the user's commands compact, restore, reset and its undoing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from graph.core.language import session_language
from graph.core.model_input import system_part
from graph.core.snapshot import SessionSnapshot
from graph.core.token import estimate_tokens
from graph.error import InputError, NotFoundError
from graph.input_view import CallInput
from graph.record import Record
from graph.service.access import SessionAccess
from graph.service.inputs import read_inputs
from graph.strategy.base import first_turn
from graph.strategy.compaction import CompactionStrategy, compaction_fold
from graph.view import ChartPoint, Gauge, NextFold, Statistics

COMPACTION: Final = CompactionStrategy.name
Command = Literal["compact", "reset"]
_COMMANDS: Final[dict[str, Command]] = {"/compact": "compact", "/reset": "reset"}


class Folds:
    """Reads records and figures, and changes the context by hand between turns.

    Every method that takes a session's id raises `NotFoundError` if this owner has no such session.
    """

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._stores = access.stores
        self._owner = access.owner
        self._fold_worker = access.fold_worker

    def records(self, session_id: str, *, last: int | None = None) -> tuple[Record, ...]:
        """Returns the active records, oldest first; with `last`, only that many of the newest."""
        self._access.own(session_id)
        store = self._stores.records
        return tuple(store.active(session_id) if last is None else store.newest(session_id, last))

    def past_records(self, session_id: str, *, last: int) -> tuple[Record, ...]:
        """Returns the newest `last` records that were active before a reset, oldest first."""
        self._access.own(session_id)
        return tuple(self._stores.records.past(session_id, last))

    def statistics(self, session_id: str) -> Statistics:
        """Returns the totals that the panel shows."""
        self._access.own(session_id)
        sums = self._stores.records.sums(session_id)
        client_changes, lost_tokens = self._stores.blocks.losses(session_id, "client")
        saved = round(100 * (1 - sums.summary_chars / sums.original_chars)) if sums.original_chars else 0
        return Statistics(
            record_count=sums.record_count,
            folded_turn_count=sums.folded_turn_count,
            original_chars=sums.original_chars,
            summary_chars=sums.summary_chars,
            saved_percent=saved,
            unsent_tokens=self._stores.calls.unsent_tokens(session_id),
            fold_tokens=sums.input_tokens + sums.output_tokens,
            client_changes=client_changes,
            lost_tokens=lost_tokens,
        )

    def next_fold(self, session_id: str | None, *, strategy: str) -> NextFold:
        """Returns what isn't folded yet; without a session, what holds for a new one.

        Args:
            session_id: The session, or None.
            strategy: The session's strategy, or the one chosen for a new session.
        """
        chosen, settings = self._access.strategies.of(strategy), self._access.settings
        if session_id is None:
            return chosen.next_fold(SessionSnapshot(0, (), (), settings.compression_rate))
        session = self._access.own(session_id)
        complete_turns = session.turn_count - session.is_open
        snapshot = self._fold_worker.snapshot(
            session_id,
            complete_turns=complete_turns,
            rate=session.compression_rate,
            from_turn=first_turn(chosen, complete_turns + 1),
        )
        # Not `input_tokens`: that may wait for the endpoint's list of models.
        window = self._access.models.window_tokens(session.model or self._access.models.default_name)
        snapshot = snapshot.within(int(window * settings.guard_share))
        is_reset = self._stores.sessions.context_begin(session_id) > 0
        return replace(chosen.next_fold(snapshot), is_reset=is_reset)

    def uses_rate(self, strategy: str) -> bool:
        """Whether the length of this strategy's summaries follows the compression rate."""
        return self._access.strategies.of(strategy).uses_rate

    def chart(self, session_id: str) -> tuple[ChartPoint, ...]:
        """Returns one point per answered turn since the last reset, in order."""
        self._access.own(session_id)
        points = self._stores.calls.series(session_id)
        active = [record.id for record in self._stores.records.active(session_id)]
        adopted = self._stores.records.adoption_turns(session_id, active)
        # An unanswered turn has no point; the next answered turn is then the first whose input has the record.
        folds = {next((point.turn for point in points if point.turn >= turn), 0) for turn in adopted}
        return tuple(ChartPoint(turn, sent, full, has_fold=turn in folds) for turn, sent, full in points)

    def inputs(self, session_id: str, turn: int) -> tuple[CallInput, ...]:
        """Returns what each call of a turn was sent, block by block, and what it cost; see `read_inputs`."""
        return read_inputs(self._access, session_id, turn)

    def gauge(self, session_id: str | None, *, model: str = "") -> Gauge:
        """Returns how much of the context window the last model call took.

        Before the first call, and without a session, that is the estimate for the system prompt.
        """
        if session_id is not None:
            self._access.own(session_id)
        window = self._access.models.window_tokens(model or self._access.models.default_name)
        call = self._stores.calls.last_answered(session_id) if session_id else None
        if call is None:
            return Gauge(self._prompt_tokens(session_id), window, "estimate")
        if call.usage_input_tokens is not None:
            return Gauge(call.usage_input_tokens, window, "usage")
        estimate = round(call.sent_tokens * self._stores.calls.correction(call.session_id))
        return Gauge(estimate, window, "estimate")

    def _prompt_tokens(self, session_id: str | None) -> int:
        """Estimates the system prompt of a session without a call; of a Korean one before its first message."""
        if session_id is None:
            strategy, opening = self._access.strategies.default, None
        else:
            strategy = self._access.strategies.of(self._access.own(session_id).strategy)
            opening = self._stores.archive.opening(session_id)
        system = system_part(session_language(opening), can_recall=strategy.sends_records)
        return estimate_tokens(system.text)

    def command_of(self, text: str) -> Command | None:
        """Returns the command that the text is, None if it's a message."""
        return _COMMANDS.get(text.strip().lower())

    def compact(self, session_id: str) -> Record:
        """Replaces all but the newest messages by one structured summary, and waits until it is active.

        Raises:
            InputError: `no_effect` (the strategy sends no summaries), `nothing_to_compact` (too few messages),
                `compact_failed` (the result wasn't shorter) or `compact_stopped`.
            BusyError: A turn is in progress, or (`ServerBusyError`, `TurnRateError`) a limit of the server is reached.
        """
        session = self._access.own(session_id)
        if not self._access.strategies.of(session.strategy).sends_records:
            raise InputError("no_effect")
        with self._access.between_turns(session_id) as lease:
            session = self._access.own(session_id)  # a turn may have ended since
            turn_count, rate = session.turn_count - session.is_open, session.compression_rate
            snapshot = self._fold_worker.snapshot(session_id, complete_turns=turn_count, rate=rate)
            spec = compaction_fold(snapshot, self._access.settings.preserve_recent_messages)
            if spec is None:
                raise InputError("nothing_to_compact")
            limiter = self._access.runner.limiter
            limiter.begin(self._owner)  # it costs what a turn does
            stop = self._access.compacting[session_id] = threading.Event()
            try:
                record = self._fold_worker.make_now(session_id, spec, owner=self._owner, model=session.model, stop=stop)
            finally:
                del self._access.compacting[session_id]
                limiter.end()
            if record is None or not self._stores.records.adopt(lease, record.id):
                raise InputError("compact_stopped" if stop.is_set() else "compact_failed")
        return record

    def restore(self, session_id: str, record_id: str) -> None:
        """Undoes a compaction and every later one: what they replaced is sent again from the next turn on.

        Records of later messages are invalidated too, so that coverage has no hole. Automatic compaction then pauses
        until the context has grown by a tenth.

        Raises:
            InputError: `not_a_compaction`.
            NotFoundError: The record isn't active, and no active compaction was made from it.
            BusyError: A turn is in progress.
        """
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
            undone = chain[: ids.index(record_id) + 1]
            kept = [record for record in active if record.to_position < chain[0].from_position]
            tokens = self._context_tokens(session_id, [*kept, *self._sources(undone[-1])])
            self._stores.records.revert(lease, [step.id for step in undone], restored_tokens=tokens)

    def reset(self, session_id: str) -> None:
        """Empties the context: nothing said so far is sent again; the transcript stays. See `undo_reset`.

        A turn that waits for a program is closed.

        Raises:
            BusyError: A turn is in progress.
        """
        self._access.own(session_id)
        with self._access.between_turns(session_id, keeps_waiting=False) as lease:
            active, raw, _ = self._stores.context(session_id)
            if raw:
                self._stores.resets.begin_context(lease, raw[-1].position)
            elif active:
                self._stores.resets.begin_context(lease, active[-1].to_position)

    def undo_reset(self, session_id: str) -> None:
        """Undoes the last reset: the context is again what it was before, with the same records.

        Raises:
            InputError: `no_reset`: there was none, or a turn was run since.
            BusyError: A turn is in progress.
        """
        self._access.own(session_id)
        with self._access.between_turns(session_id) as lease:
            if not self._stores.resets.undo(lease):
                raise InputError("no_reset")

    def compactions(self, session_id: str) -> tuple[Record, ...]:
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

    def _context_tokens(self, session_id: str, records: Sequence[Record]) -> int:
        """Estimates the context of these records and every message after them."""
        begin = records[-1].to_position if records else self._stores.sessions.context_begin(session_id)
        raw = self._stores.archive.live(session_id, from_position=begin + 1)
        return sum(record.summary_tokens for record in records) + sum(entry.tokens for entry in raw)
