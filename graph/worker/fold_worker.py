"""Plans and makes folds in the background, each once for all that need it."""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from graph.core.context_block import STANDING
from graph.core.fold_spec import FoldSpec, source_key
from graph.core.in_place import LastInput
from graph.core.language import session_language
from graph.core.snapshot import SessionSnapshot, without_overlap
from graph.core.token import estimate_tokens
from graph.error import NotFoundError
from graph.model.factory import ChatModels
from graph.model.summariser import ExtractiveSummariser
from graph.model_error import ModelError
from graph.record import Record
from graph.spending import Spending
from graph.store.stores import Stores
from graph.strategy.base import Strategy, first_turn
from graph.worker.fold_maker import FoldMaker, FoldPlan
from graph.worker.fold_queue import FoldQueue
from graph.worker.last_inputs import InPlaceMode, LastInputs
from graph.worker.newest import Newest
from graph.worker.session_terms import SessionTerms

_LOG = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.05
_LONGEST_POLL_SECONDS: Final = 0.25  # each poll asks the database twice, for each turn that waits
_MAX_FAILURES: Final = 3
_KEPT_SESSIONS: Final = 1_000


class FoldWorker:
    """Plans, makes and finds folds. It needs no lease: the turns adopt the records.

    Args:
        spending: Hears of what the folds cost.
        clock: Returns the current time, UTC.
        deadline_seconds: How long one draft may take.
        in_place: Which folds are asked for behind the chat itself; see `LastInputs`.
    """

    def __init__(
        self,
        *,
        stores: Stores,
        models: ChatModels,
        spending: Spending,
        clock: Callable[[], datetime],
        deadline_seconds: float,
        in_place: InPlaceMode,
    ) -> None:
        self._stores = stores
        self._models = models
        self._deadline_seconds = deadline_seconds
        self._terms = SessionTerms(stores.archive)
        self._last_inputs = LastInputs(stores.calls, in_place)
        self._maker = FoldMaker(
            stores.records, self._terms, self._last_inputs, spending, clock=clock, deadline_seconds=deadline_seconds
        )
        self._queue = FoldQueue()
        spending.metrics.watch("folds_waiting", "Folds that are queued or being made.", self._queue.count)
        # Sessions in which a turn waited in vain and no fold was made since.
        self._overdue: Newest[str, None] = Newest(_KEPT_SESSIONS)

    def snapshot(self, session_id: str, *, complete_turns: int, rate: float, from_turn: int = 1) -> SessionSnapshot:
        """Reads a session's snapshot: its active records, and the uncovered messages from `from_turn` on."""
        with self._stores.database.reading():
            active, raw, _ = self._stores.context(session_id, from_turn=from_turn)
            front = {kind: self._stores.blocks.newest(session_id, kind) for kind in STANDING}
            language = session_language(self._stores.archive.opening(session_id))
            return SessionSnapshot(
                complete_turns,
                active,
                raw,
                rate,
                self._stores.calls.correction(session_id),
                self._stores.sessions.restored_tokens(session_id),
                language=language,
                front_tokens={kind: estimate_tokens(block.text) for kind, block in front.items() if block},
                pin_tokens=sum(pin.tokens(language) for pin in self._stores.pinned(session_id)),
                undone=self._stores.versions.undone_merges(session_id),
                set_aside=without_overlap(self._stores.records.set_aside(session_id), active),
            )

    def remember(self, session_id: str, last: LastInput) -> None:
        """Remembers what a session's chat model was last sent and answered, for folds that are asked for behind it."""
        self._last_inputs.keep(session_id, last)

    def plan(self, session_id: str, spec: FoldSpec, *, owner: str, model: str) -> FoldPlan:
        """Returns the plan of a fold, with the summariser for the session's chat model.

        Raises:
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
        """
        summariser = self._models.summariser(model)
        spec = replace(spec, language=session_language(self._stores.archive.opening(session_id)))
        key = source_key(spec, model=summariser.name, prompt_version=summariser.prompt_version)
        return FoldPlan(session_id, owner, spec, summariser, key)

    def prepared(self, plan: FoldPlan) -> Record | None:
        """Returns the finished record of exactly this plan, if there is one."""
        if plan.spec.set_aside:
            return self._stores.records.get(plan.session_id, plan.spec.set_aside)
        return self._stores.records.prepared(plan.session_id, plan.key)

    def ready(self, plan: FoldPlan) -> Record | None:
        """Returns the finished record of this plan, if there is one; after three failed calls, picks sentences now."""
        record = self.prepared(plan)
        if record is None and self._failures(plan) >= _MAX_FAILURES:
            record = self._pick(plan)
        return record

    def should_wait(self, plan: FoldPlan) -> bool:
        """Whether a turn should wait for this fold: not for one that failed and is retried after the answer."""
        return self.may_wait(plan.session_id) and (self._is_under_way(plan) or not self._failures(plan))

    def may_wait(self, session_id: str) -> bool:
        """Whether a turn may wait for a fold of this session.

        False after a turn has waited in vain, until a fold of the session is made: a hung summariser delays one turn,
        not every turn.
        """
        return session_id not in self._overdue

    def wait(self, plan: FoldPlan, seconds: float, stop: threading.Event) -> Record | None:
        """Starts the fold if it isn't in progress, and waits for it.

        Returns:
            The finished record; None if it failed, took longer than `seconds`, or `stop` was set. The work goes on for
            a later turn.
        """
        self._queue.put(plan.lane, plan.key, partial(self._make, plan), is_urgent=True)
        until, pause = time.monotonic() + seconds, _POLL_SECONDS
        while (record := self.prepared(plan)) is None:
            left_seconds = until - time.monotonic()
            if left_seconds <= 0 or not self._is_under_way(plan) or stop.wait(min(pause, left_seconds)):
                break
            pause = min(2 * pause, _LONGEST_POLL_SECONDS)
        if record is None and not stop.is_set():
            # Set before the last look: a fold that is finished after that look removes the mark itself.
            self._overdue.put(plan.session_id, None)
            record = self.prepared(plan)
            if record is not None:
                self._overdue.drop(plan.session_id)
        return record

    def make_now(
        self,
        session_id: str,
        spec: FoldSpec,
        *,
        owner: str,
        model: str,
        stop: threading.Event,
        wait_seconds: float | None = None,
    ) -> Record | None:
        """Makes a fold that is needed now: with the summary model, or by picking sentences if that fails.

        `stop` ends the wait and the work at once. The summary model may take `wait_seconds`: None means its deadline,
        and 0 that it isn't asked.

        Returns:
            The finished record; None if `stop` was set, or the result isn't smaller than its source.
        """
        plan = replace(self.plan(session_id, spec, owner=owner, model=model), may_retry=True)
        seconds = self._deadline_seconds if wait_seconds is None else wait_seconds
        record = self.wait(plan, seconds, stop) if seconds > 0 else self.prepared(plan)
        if record is not None:
            return record
        is_stopped = stop.is_set()
        self._queue.withdraw(plan.lane, plan.key, stops_running=is_stopped)
        return None if is_stopped else self._pick(plan)

    def make_anew(self, session_id: str, spec: FoldSpec, *, owner: str, model: str) -> tuple[Record | None, str]:
        """Makes another summary of what is folded already, in this thread: no other fold waits for it, nor uses it.

        Returns:
            The finished record, or None with the code of what went wrong.

        Raises:
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
        """
        plan = replace(self.plan(session_id, spec, owner=owner, model=model), may_retry=True)
        plan = replace(plan, key=f"anew-{secrets.token_urlsafe(12)}")
        if self._maker.make(plan, threading.Event()) == "made":
            return self.prepared(plan), ""
        return None, self._stores.records.failures_in_a_row(session_id, spec.from_position)[1]

    def is_idle(self, session_id: str) -> bool:
        """Whether no fold of this session is queued or running here."""
        return self._queue.is_idle(session_id)

    def prepare_due(self, session_id: str, *, owner: str, strategy: Strategy) -> None:
        """Queues all due folds of a session, oldest first.

        The first failure drops the rest, so a failing summariser is asked for one block per turn. A block for which
        three calls failed isn't tried again; the next turn picks sentences for it.
        """
        with self._stores.database.reading():
            session, last = self._stores.sessions.get(session_id, owner), self._stores.turns.last(session_id)
            if last is None:
                return
            snapshot = self.snapshot(
                session_id,
                complete_turns=last.number - last.is_open,
                rate=session.compression_rate,
                from_turn=first_turn(strategy, last.number),
            )
        try:
            snapshot = snapshot.within(self._models.input_tokens(session.model))
            plans = [
                self.plan(session_id, spec, owner=owner, model=session.model) for spec in strategy.due_folds(snapshot)
            ]
        except ModelError as error:
            _LOG.warning("folds of session=%s not prepared: %s", session_id, error.code)  # the next turn tries again
            return
        due = [plan for plan in plans if self.prepared(plan) is None and self._failures(plan) < _MAX_FAILURES]
        self._queue.put_all((plan.lane, plan.key, partial(self._make, plan)) for plan in due)

    def prepare_soon(self, session_id: str, *, owner: str, strategy: Strategy, attempt: str) -> None:
        """Runs `prepare_due` in a fold thread, so that the answer of this attempt doesn't wait for it."""
        self._queue.put((session_id, None), attempt, partial(self._prepare, session_id, owner, strategy))

    def forget(self, session_id: str) -> None:
        """Stops the running folds of a deleted session and drops the queued ones."""
        self._queue.forget(session_id)
        self._maker.forget(session_id)
        self._terms.forget(session_id)
        self._last_inputs.forget(session_id)
        self._overdue.drop(session_id)

    def close(self) -> None:
        """Stops the running folds, drops the queued ones, and waits for the threads."""
        self._queue.close()

    def _prepare(self, session_id: str, owner: str, strategy: Strategy, stop: threading.Event) -> bool:
        if not stop.is_set():
            with contextlib.suppress(NotFoundError):  # the session was deleted meanwhile
                self.prepare_due(session_id, owner=owner, strategy=strategy)
        return True

    def _failures(self, plan: FoldPlan) -> int:
        """Returns how many calls for this fold have failed in a row, with any server, rate or model."""
        return self._stores.records.failures_in_a_row(plan.session_id, plan.spec.from_position)[0]

    def _is_under_way(self, plan: FoldPlan) -> bool:
        """Whether the fold is queued or running here, or running on another server."""
        return self._queue.has(plan.lane, plan.key) or self._stores.records.in_progress(plan.session_id, plan.key)

    def _make(self, plan: FoldPlan, stop: threading.Event) -> bool:
        """Runs in a fold thread; returns False to drop the folds queued behind one that failed.

        They would probably fail too, and cost money; they are tried again after the next answer. Unless the last fold
        of the session was made, or somebody needs this one now, a try that fails is one call.
        """
        is_trusted = plan.may_retry or self._stores.records.was_last_made(plan.session_id)
        making = self._maker.make(replace(plan, is_trusted=is_trusted), stop)
        if making == "made":
            self._overdue.drop(plan.session_id)
        return making != "failed"

    def _pick(self, plan: FoldPlan) -> Record | None:
        """Makes the fold by picking sentences, in this thread and outside of the queue.

        Returns:
            The finished record; None if the result isn't smaller than its source.
        """
        picker = ExtractiveSummariser()
        key = source_key(plan.spec, model=picker.name, prompt_version=picker.prompt_version)
        plan = replace(plan, summariser=picker, key=key, is_fallback=True)
        record = self.prepared(plan)
        if record is None:
            self._maker.make(plan, threading.Event())
            record = self.prepared(plan)
        return record
