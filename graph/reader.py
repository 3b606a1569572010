"""What can be read of sessions, as views for the page; changes nothing and calls no model."""

from __future__ import annotations

import threading
from typing import Final

from langchain_core.messages import AnyMessage

from graph.core.language import session_language
from graph.core.snapshot import SessionSnapshot
from graph.core.token import estimate_tokens
from graph.model.factory import ChatModels
from graph.record import Record
from graph.recovery import StateRecovery
from graph.rendering import as_closed, turn_view
from graph.settings import Settings
from graph.store.adoption import find_adoption_turns
from graph.store.session import SessionRow
from graph.store.stores import Stores
from graph.store.turn import TurnRow
from graph.strategy.compaction import CompactionStrategy, context_tokens
from graph.strategy.registry import Strategies
from graph.strategy.rolling import RollingStrategy, unsent_count
from graph.view import (
    ChartPoint,
    ContextNotice,
    Gauge,
    LiveTurn,
    ModelOption,
    SessionItem,
    SessionView,
    Statistics,
    Transcript,
)
from graph.worker.turn_runner import TurnRunner
from prompt.system import chat

_NEARLY_FULL: Final = 0.8


class SessionReader:
    """Reads sessions of one owner."""

    def __init__(
        self,
        settings: Settings,
        stores: Stores,
        models: ChatModels,
        runner: TurnRunner,
        recovery: StateRecovery,
        strategies: Strategies,
    ) -> None:
        self.settings = settings
        self._strategies = strategies
        self._stores = stores
        self._models = models
        self._runner = runner
        self._recovery = recovery
        self._owner = settings.turnfold_owner
        # What ends the compactions by hand that are being made, by session.
        self._compacting: dict[str, threading.Event] = {}

    def sessions(self, *, search: str = "", last: int | None = None) -> tuple[SessionItem, ...]:
        """Returns the sessions, newest first; with `search` those whose title contains it, with `last` only so many."""
        return tuple(
            SessionItem(
                row.session_id,
                row.title,
                row.updated_at,
                row.turn_count,
                row.is_running and self._live(row.session_id) is not None,
            )
            for row in self._stores.sessions.list(self._owner, search=search, limit=last)
        )

    def session_count(self, *, search: str = "") -> int:
        """Returns how many sessions there are; with `search` of those whose title contains it."""
        return self._stores.sessions.count(self._owner, search=search)

    def session(self, session_id: str) -> SessionView:
        """Returns a session's settings and state.

        Raises:
            NotFoundError: There is no such session.
        """
        row = self._own(session_id)
        failures, code = self._fold_failures(row)
        return SessionView(
            session_id=row.session_id,
            title=row.title,
            compression_rate=row.compression_rate,
            strategy=self._strategies.of(row.strategy).name,
            model=row.model or self.default_model(),
            turn_count=row.turn_count,
            is_running=self._is_busy(session_id),
            fold_failures=failures,
            fold_error_code=code,
            unsent_messages=self._unsent_messages(row),
            context_notice=self._context_notice(row),
        )

    def _unsent_messages(self, row: SessionRow) -> int:
        """Counts the messages of complete turns that "rolling" neither has in its summary nor sends."""
        is_rolling = self._strategies.of(row.strategy).name == RollingStrategy.name
        if not is_rolling or self.settings.rolling_sends_unsummarised:
            return 0
        raw = self._stores.context(row.session_id).raw
        prior = [entry.message for entry in raw if entry.turn <= row.turn_count - row.is_running]
        return unsent_count(prior, self.settings.app_context_recent_messages)

    def _context_notice(self, row: SessionRow) -> ContextNotice:
        """Returns how full the context is if nothing compacts it by itself (seed 004's warnings)."""
        if self._strategies.of(row.strategy).name != CompactionStrategy.name or self.settings.enable_auto_compaction:
            return ""
        active, raw, _ = self._stores.context(row.session_id)
        tokens = context_tokens(SessionSnapshot(row.turn_count, active, raw, row.compression_rate))
        tokens = round(tokens * self._stores.calls.correction(row.session_id))
        if tokens > self.settings.max_context_tokens:
            return "full"
        return "nearly_full" if tokens > self.settings.max_context_tokens * _NEARLY_FULL else ""

    def _fold_failures(self, row: SessionRow) -> tuple[int, str]:
        """Returns how often the oldest due block failed in a row, and why it did last."""
        position = self._stores.oldest_raw_position(row.session_id)
        return (0, "") if position is None else self._stores.records.failures_in_a_row(row.session_id, position)

    def live(self, session_id: str) -> LiveTurn | None:
        """Returns how the running turn looks now, wherever it runs; None when nothing runs.

        Raises:
            NotFoundError: There is no such session.
        """
        self._own(session_id)
        return self._live(session_id)

    def _is_busy(self, session_id: str) -> bool:
        """Whether a turn of the session runs anywhere, or this server compacts it by hand."""
        return session_id in self._compacting or self._live(session_id) is not None

    def _live(self, session_id: str) -> LiveTurn | None:
        if (log := self._runner.running(session_id)) is not None:
            return log.view()
        last = self._stores.turns.last(session_id)
        if last is None or last.status != "running" or not self._stores.leases.holder_is_alive(session_id):
            return None
        text = last.partial_text
        return LiveTurn(
            last.number,
            last.attempt,
            "answering" if text else "waiting",
            (),
            text,
            (),
            last.stop_requested,
            is_here=False,
        )

    def transcript(self, session_id: str, *, last: int = 30) -> Transcript:
        """Returns the newest `last` turns with all that was said in their last attempts.

        Raises:
            NotFoundError: There is no such session.
        """
        session = self._own(session_id)
        rows = self._stores.turns.list(session_id, last=last)
        if not rows:
            return Transcript((), 0)
        last_row, is_abandoned = self._as_it_stands(rows[-1])
        said: dict[int, list[AnyMessage]] = {}
        for entry in self._stores.archive.live_turns(session_id, rows[0].number, rows[-1].number):
            said.setdefault(entry.turn, []).append(entry.message)
        if is_abandoned:
            language = session_language(self._stores.archive.opening(session_id))
            last_row, said[last_row.number] = as_closed(last_row, said.get(last_row.number, []), language)
        turns = tuple(
            turn_view(row, said.get(row.number, []), is_last=row.number == session.turn_count)
            for row in (*rows[:-1], last_row)
        )
        return Transcript(turns, rows[0].number - 1)

    def _as_it_stands(self, row: TurnRow) -> tuple[TurnRow, bool]:
        """Returns the newest turn's row, and whether its worker is gone without ending it."""
        if row.status != "running" or self._live(row.session_id) is not None:
            return row, False
        # Read once more: it may have ended between the two questions.
        row = self._stores.turns.get(row.session_id, row.number)
        return row, row.status == "running"

    def records(self, session_id: str, *, last: int | None = None) -> tuple[Record, ...]:
        """Returns the records in force, oldest first; with `last` only that many of the newest.

        Raises:
            NotFoundError: There is no such session.
        """
        self._own(session_id)
        store = self._stores.records
        return tuple(store.active(session_id) if last is None else store.newest(session_id, last))

    def statistics(self, session_id: str) -> Statistics:
        """Returns the sums of the panel.

        Raises:
            NotFoundError: There is no such session.
        """
        self._own(session_id)
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
        self._own(session_id)
        points = self._stores.calls.series(session_id)
        active = [record.id for record in self._stores.records.active(session_id)]
        held = find_adoption_turns(self._stores.database, session_id, active)
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
            self._own(session_id)
        window = self._models.window_tokens(model or self.default_model())
        call = self._stores.calls.last_answered(session_id) if session_id else None
        if call is None:
            return Gauge(estimate_tokens(chat.get_prompt()), window, "estimate")
        if call.usage_input_tokens is not None:
            return Gauge(call.usage_input_tokens, window, "usage")
        corrected = round(call.sent_tokens * self._stores.calls.correction(call.session_id))
        return Gauge(corrected, window, "estimate")

    def model_options(self) -> tuple[ModelOption, ...]:
        """Returns the models that can be chosen; the configured ones alone if the endpoint doesn't list any."""
        return self._models.options()

    def default_model(self) -> str:
        """Returns the model of sessions that chose none; "" if only the endpoint knows and it doesn't answer."""
        return self._models.default_name

    def strategies(self) -> tuple[str, ...]:
        """Returns the names of the strategies."""
        return tuple(self._strategies.by_name)

    def default_strategy(self) -> str:
        """Returns the strategy of sessions that chose none."""
        return self._strategies.default.name

    def health(self) -> None:
        """Returns if the database answers.

        Raises:
            DatabaseError: It doesn't.
        """
        self._stores.database.check()

    def _own(self, session_id: str) -> SessionRow:
        """Returns the session; whatever takes a session's id asks here first, so that each owner sees his own alone.

        Raises:
            NotFoundError: There is none by that id, or it's another owner's, which looks the same.
        """
        return self._stores.sessions.get(session_id, self._owner)
