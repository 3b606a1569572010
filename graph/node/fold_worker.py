"""Plans and makes folds in the background, each once for all that need it."""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final, Literal

from graph.core.ledger import ledger_tokens, standing
from graph.core.open_question import without_question
from graph.core.snapshot import SessionSnapshot
from graph.core.turn import label_of, labelled, text_of
from graph.fold.extract import TermCounts, count_terms
from graph.fold.fact_line import without_line
from graph.fold.record import begin_record, end_record, end_verbatim
from graph.fold.request import (
    LastInput,
    SummaryRequest,
    input_tokens_in_place,
    price_in_place,
    price_quoted,
    request_in_place,
)
from graph.fold.review import WEAK_CODES, Flaw, SummaryDraft, flaw_of, review_drafts
from graph.fold.spec import FoldSpec, source_key
from graph.model.factory import ChatModels, InPlaceMode
from graph.model.spending import Spending
from graph.model.summariser import ExtractiveSummariser, ModelSummariser, Summariser, generate_summary
from graph.node.job_queue import JobQueue, Lane
from graph.server.newest import Newest
from graph.store.active import DISCARDED_CODE
from graph.store.archive import Archive
from graph.store.call import RecentCalls
from graph.store.state import SessionState
from graph.store.stores import ChatStores
from graph.strategy.base import Strategy
from graph.value.error import (
    ContextLengthError,
    InternalError,
    ModelError,
    NotFoundError,
    RejectedError,
    StoreError,
    TurnfoldError,
    TurnStoppedSignal,
)
from graph.value.record import Record

_LOG = logging.getLogger(__name__)

_MOST_INPUTS: Final = 64


class LastInputs:
    """The last inputs of the newest sessions, in memory only: after a restart and on other servers folds are quoted.

    Args:
        mode: Returns "auto" to ask in place where the endpoint's cache makes that cheaper, "always" to do so wherever
            it's possible, "never" to quote.
    """

    def __init__(self, mode: Callable[[], InPlaceMode]) -> None:
        self._mode = mode
        self._inputs: Newest[str, LastInput] = Newest(_MOST_INPUTS)

    def __len__(self) -> int:
        """How many sessions are remembered."""
        return len(self._inputs)

    def __contains__(self, session_id: str) -> bool:
        """Whether this session is remembered."""
        return session_id in self._inputs

    def get(self, session_id: str) -> LastInput | None:
        """Returns a session's last input, if it is remembered."""
        return self._inputs.get(session_id)

    def texts(self, session_id: str) -> str:
        """Returns the text of a session's last input, "" if it isn't remembered."""
        last = self.get(session_id)
        return "" if last is None else "\n".join(map(text_of, last.model_input.messages))

    def keep(self, session_id: str, last: LastInput) -> None:
        """Remembers a session's last input, in place of the one before."""
        if self._mode() != "never":
            self._inputs.put(session_id, last)

    def forget(self, session_id: str) -> None:
        """Forgets a session."""
        self._inputs.drop(session_id)

    def request_for(
        self, session_id: str, spec: FoldSpec, summariser: ModelSummariser, recent: RecentCalls
    ) -> SummaryRequest | None:
        """Returns the request for a fold in place; None if it must or should be quoted."""
        last = self._inputs.get(session_id)
        if last is None or last.model != summariser.name:
            return None
        request = request_in_place(last, spec)
        if request is None:
            return None
        answer_tokens = summariser.answer_limit_tokens(spec) or request.most_chars
        input_tokens = recent.correction.tokens(input_tokens_in_place(last, request))
        if input_tokens + answer_tokens > summariser.window_tokens:
            return None
        if self._mode() != "auto":
            return request
        is_cheaper = price_in_place(last, request) < price_quoted(spec, summariser.source_tokens)
        return request if recent.reads_cache and is_cheaper else None


_MOST_TERMS: Final = 50


class SessionTerms:
    """The term counts of the sessions that were asked for last; thread-safe.

    A message is read once: later questions add only what was said since. So an answer that was regenerated still counts
    until the session is no longer among the newest; that changes no weight by much.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._counted: Newest[str, tuple[int, TermCounts]] = Newest(_MOST_TERMS)

    def counts(self, session_id: str) -> TermCounts:
        """Returns the counts over the session's live messages, those just archived included.

        Raises:
            StoreError: The archive couldn't be read.
        """
        last, counts = self._counted.get(session_id) or (0, TermCounts(0, {}))
        new = self._archive.live(session_id, from_position=last + 1)
        if new:
            last, counts = new[-1].position, count_terms((text_of(entry.message) for entry in new), counts)
        self._counted.put(session_id, (last, counts))
        return counts

    def forget(self, session_id: str) -> None:
        """Drops the counts of a deleted session."""
        self._counted.drop(session_id)


_TRIES: Final = 2
# Without a deadline: how long a fold is claimed, or waited for where it is needed now, for each of its drafts.
_LONGEST_SECONDS: Final = 600.0
_KEPT_DRAFTS: Final = 64
_EXPIRY_MARGIN_SECONDS: Final = 10
Making = Literal["made", "left", "failed"]


@dataclass(frozen=True)
class FoldPlan:
    """A fold that is due, and the summariser that makes it.

    Attributes:
        key: Hash of everything that the text depends on.
        is_fallback: Whether sentences are picked because the summary model failed.
        may_retry: Whether transient failures of a draft's call are retried at once, because somebody needs this fold
            now. Other folds are tried again after the next answer, so each of their drafts costs at most one call.
        is_trusted: Whether a draft that can't be adopted is mended at once. Otherwise it's mended when the fold is
            tried again, so that a summariser whose drafts are never adopted costs one call a try.
    """

    session_id: str
    owner: str
    spec: FoldSpec
    summariser: Summariser
    key: str
    is_fallback: bool = False
    may_retry: bool = False
    is_trusted: bool = True

    @property
    def lane(self) -> Lane:
        """The queue that it runs in: one for the folds of a session that turns wait for, one for the others."""
        return self.session_id, self.spec.is_waited


_POLL_SECONDS: Final = 0.05
_LONGEST_POLL_SECONDS: Final = 0.25  # each poll asks the database twice, for each turn that waits
_MAX_FAILURES: Final = 3
_KEPT_SESSIONS: Final = 1_000


class FoldWorker:
    """Plans, makes and finds folds. It needs no lease: the turns adopt the records.

    Args:
        spending: Counts the cost of folds.
        clock: Returns the current time, UTC.
        deadline_seconds: How long one draft may take; None for no limit but silence.
        quiet_seconds: See `JobQueue`; counts on one slot only.

    Attributes:
        last_inputs: What the chat models were last sent.
    """

    def __init__(
        self,
        *,
        stores: ChatStores,
        models: ChatModels,
        spending: Spending,
        clock: Callable[[], datetime],
        deadline_seconds: float | None,
        quiet_seconds: float = 0.0,
    ) -> None:
        self.last_inputs = LastInputs(lambda: models.in_place)
        self._stores = stores
        self._models = models
        self._spending = spending
        self._clock = clock
        self._deadline_seconds = deadline_seconds
        self._longest_seconds = deadline_seconds or _LONGEST_SECONDS
        self._terms = SessionTerms(stores.archive)
        self._queue = JobQueue("fold", quiet_seconds=lambda: quiet_seconds if models.has_one_slot else 0.0)
        # By lane, the key of the fold to be tried again, and its draft with what is wrong with it.
        self._unmended: Newest[Lane, tuple[str, tuple[SummaryDraft, Flaw]]] = Newest(_KEPT_DRAFTS)
        spending.metrics.watch("folds_waiting", "Folds that are queued or being made.", self._queue.count)
        # Sessions in which a turn waited in vain and no fold was made since.
        self._overdue: Newest[str, None] = Newest(_KEPT_SESSIONS)
        self._zones: Newest[str, str] = Newest(_KEPT_SESSIONS)
        # By the folds' keys, when their drafts' streams last moved.
        self._moved: Newest[str, float] = Newest(_KEPT_SESSIONS)

    def snapshot(
        self, session_id: str, *, complete_turns: int, rate: float, whole_turns: int | None = None, time_zone: str = ""
    ) -> SessionSnapshot:
        """Reads a session's snapshot: its active records, and the uncovered messages; see `ChatStores.state`."""
        state = self._stores.state(session_id, whole_turns=whole_turns)
        return self.snapshot_of(state, complete_turns=complete_turns, rate=rate, time_zone=time_zone)

    def snapshot_of(
        self, state: SessionState, *, complete_turns: int, rate: float, time_zone: str = ""
    ) -> SessionSnapshot:
        """Returns a session's snapshot; its records have their days in this zone, or in the last that was given."""
        time_zone = time_zone or self._zones.get(state.row.session_id) or ""
        return state.snapshot(complete_turns=complete_turns, rate=rate, time_zone=time_zone)

    def hold(self, session_id: str) -> None:
        """A turn begins: on one slot folds give way to it until `release`; elsewhere they go on beside it."""
        if self._models.has_one_slot:
            self._queue.hold(session_id)

    def release(self, session_id: str) -> None:
        """The turn has ended."""
        self._queue.release(session_id)

    def expect(self, session_id: str) -> None:
        """A message waits for the turn that runs to end: on one slot no fold begins between the two."""
        if self._models.has_one_slot:
            self._queue.expect(session_id)

    def is_held(self, session_id: str) -> bool:
        """Whether the session's folds wait for its turns to pause."""
        return self._queue.is_held(session_id)

    def remember(self, session_id: str, last: LastInput) -> None:
        """Remembers what a session's chat model was last sent and answered, for folds that are asked for behind it."""
        self.last_inputs.keep(session_id, last)

    def plan(self, session_id: str, spec: FoldSpec, *, owner: str, model: str) -> FoldPlan:
        """Returns the plan of a fold, with the summariser for the session's chat model.

        Raises:
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
        """
        summariser = self._models.summariser(model)
        room_tokens = ledger_tokens(self._models.input_tokens(model))
        spec = replace(spec, ledger_tokens=room_tokens)
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

    def outlook(
        self, session_id: str, specs: Sequence[FoldSpec], *, owner: str, model: str
    ) -> tuple[tuple[Record, ...], bool]:
        """Returns the finished ones of the due folds, and whether the oldest of the others is being made.

        Merges and records that were set aside aren't among them. `model` is the name of a model, not "".
        """
        found: list[Record] = []
        for spec in specs:
            if spec.set_aside or spec.is_merge:
                continue
            plan = self.plan(session_id, spec, owner=owner, model=model)
            record = self.prepared(plan)
            if record is None:
                return tuple(found), not self.is_idle(session_id) or self._is_under_way(plan)
            found.append(record)
        return tuple(found), False

    def should_wait(self, plan: FoldPlan) -> bool:
        """Whether a turn should wait for this fold: not for one that failed and is retried after the answer.

        On one slot only for a fold that runs and isn't stopped: the turn would stand behind it anyway. Others are made
        after the turn, which is sent without them.
        """
        if not self.may_wait(plan.session_id):
            return False
        if self._models.has_one_slot:
            is_firm, is_queued = self._queue.is_firm(plan.lane, plan.key), self._queue.has(plan.lane, plan.key)
            return is_firm or (not is_queued and self._is_under_way(plan))
        return self._is_under_way(plan) or not self._failures(plan)

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
            a later turn. On one slot the seconds begin anew whenever its stream moves, and then it is stopped.
        """
        self._queue.put(plan.lane, plan.key, partial(self._work, plan), is_urgent=True)
        until, pause = time.monotonic() + seconds, _POLL_SECONDS
        while (record := self.prepared(plan)) is None:
            if self._models.has_one_slot:
                until = max(until, (self._moved.get(plan.key) or 0.0) + seconds)
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
            elif self._models.has_one_slot:
                self._queue.withdraw(plan.lane, plan.key, stops_running=True)
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
        seconds = self._longest_seconds if wait_seconds is None else wait_seconds
        with self._ahead(session_id):
            record = self.wait(plan, seconds, stop) if seconds > 0 else self.prepared(plan)
        if record is not None:
            return record
        is_stopped = stop.is_set()
        self._queue.withdraw(plan.lane, plan.key, stops_running=is_stopped)
        return None if is_stopped else self._pick(plan)

    def regenerate(self, session_id: str, spec: FoldSpec, *, owner: str, model: str) -> tuple[Record | None, str]:
        """Makes another summary of what is folded already, in this thread: no other fold waits for it, nor uses it.

        Returns:
            The finished record, or None with the code of what went wrong.

        Raises:
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
        """
        plan = replace(self.plan(session_id, spec, owner=owner, model=model), may_retry=True)
        plan = replace(plan, key=f"anew-{secrets.token_urlsafe(12)}")
        with self._ahead(session_id):
            making = self._make(plan, threading.Event())
        if making == "made":
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
        state = self._stores.state(session_id, whole_turns=strategy.whole_turns)
        session = state.row
        if session.turn_count == 0:
            return
        complete_turns = session.turn_count - session.is_open
        snapshot = self.snapshot_of(state, complete_turns=complete_turns, rate=session.compression_rate)
        try:
            snapshot = snapshot.within(self._models.input_tokens(session.model))
            plans = [
                self.plan(session_id, spec, owner=owner, model=session.model) for spec in strategy.due_folds(snapshot)
            ]
        except ModelError as error:
            _LOG.warning("folds of session=%s not prepared: %s", session_id, error.code)  # the next turn tries again
            return
        places = {plan.key: plan.spec.from_position for plan in plans if not plan.spec.set_aside}
        tried = self._stores.records.tried(session_id, places) if places else {}
        due = [
            plan
            for plan in plans
            if plan.key in tried and not tried[plan.key][0] and tried[plan.key][1] < _MAX_FAILURES
        ]
        self._queue.put_all((plan.lane, plan.key, partial(self._work, plan)) for plan in due)

    def prepare_soon(
        self, session_id: str, *, owner: str, strategy: Strategy, attempt: str, time_zone: str = ""
    ) -> None:
        """Runs `prepare_due` in a fold thread, so that the answer of this attempt doesn't wait for it.

        The records have their days in this time zone; "" for the one that was given last.
        """
        if time_zone:
            self._zones.put(session_id, time_zone)
        self._queue.put((session_id, None), attempt, partial(self._prepare, session_id, owner, strategy))

    def forget(self, session_id: str) -> None:
        """Stops the running folds of a deleted session and drops the queued ones."""
        self._queue.forget(session_id)
        for is_waited in (False, True):
            self._unmended.drop((session_id, is_waited))
        self._terms.forget(session_id)
        self.last_inputs.forget(session_id)
        self._overdue.drop(session_id)
        self._zones.drop(session_id)

    def close(self) -> None:
        """Stops the running folds, drops the queued ones, and waits for the threads."""
        self._queue.close()

    @contextlib.contextmanager
    def _ahead(self, session_id: str) -> Iterator[None]:
        """Has other folds give way to what somebody waits for now."""
        self.hold(session_id)
        try:
            yield
        finally:
            self.release(session_id)

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

    def _work(self, plan: FoldPlan, stop: threading.Event) -> bool:
        """Runs in a fold thread; returns False to drop the folds queued behind one that failed.

        They would probably fail too, and cost money; they are tried again after the next answer. Unless the last fold
        of the session was made, somebody needs this one now, or only the draft is new to the server's cache, a try that
        fails is one call.
        """
        is_trusted = plan.may_retry or self._stores.records.was_last_made(plan.session_id)
        is_trusted = is_trusted or self._has_cached_slot(plan.session_id)
        making = self._make(replace(plan, is_trusted=is_trusted), stop)
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
            self._make(plan, threading.Event())
            record = self.prepared(plan)
        return record

    def _make(self, plan: FoldPlan, stop: threading.Event) -> Making:
        """Claims a fold, writes and reviews the summary, and stores the result.

        The row is claimed here and not when the fold is queued, so that its expiry counts from the start of the work.

        Returns:
            "made", "failed", or "left" if another worker makes it or made it, or it was discarded meanwhile.
        """
        model = plan.summariser.name
        record = begin_record(plan.session_id, plan.spec, model=model, source_key=plan.key, created_at=self._clock())
        making_seconds = 0 if plan.is_fallback else self._longest_seconds * _TRIES
        seconds = making_seconds + _EXPIRY_MARGIN_SECONDS
        try:
            if not self._stores.records.start(record, owner=plan.owner, expires_after_seconds=seconds):
                return "left"
            done, is_saved = self._ended(plan, record, stop)
        except StoreError as error:
            _LOG.warning("fold of session=%s could not be kept: %s", plan.session_id, error.code)  # its row expires
            return "failed"
        _LOG.info("fold %s session=%s turns=%s outcome=%s", done.status, done.thread_id, done.turns, done.outcome)
        if not is_saved:
            return "left"
        return "made" if done.status == "COMPLETED" else "failed"

    def _count(self, plan: FoldPlan, done: Record) -> None:
        outcome = "verbatim" if plan.spec.stands_verbatim else str(done.outcome)
        self._spending.metrics.fold_ended(outcome, seconds=done.seconds, error_code=done.error_code)
        if not (plan.spec.stands_verbatim or isinstance(plan.summariser, ExtractiveSummariser)):
            self._spending.add(
                plan.owner,
                "summary",
                input_tokens=done.input_tokens,
                output_tokens=done.output_tokens,
                seconds=done.seconds,
            )

    def _ended(self, plan: FoldPlan, record: Record, stop: threading.Event) -> tuple[Record, bool]:
        """Makes and stores the record; returns it, and whether it came in time. A defect ends it as a failure, too."""
        try:
            done = self._made(plan, record, stop)
            try:
                return done, self._stores.records.end(done)
            finally:
                self._count(plan, done)
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - the edge of a worker: logged, and stored as a failure that is retried later
            _LOG.exception("fold of session=%s turns=%s ended by a defect", record.thread_id, record.turns)
            done = record.with_changes(status="FAILED", outcome="failed", error_code=InternalError.code)
            return done, self._stores.records.end(done)

    def _made(self, plan: FoldPlan, record: Record, stop: threading.Event) -> Record:
        began = time.monotonic()
        spec, recent = self._with_context(plan)
        plan = replace(plan, spec=spec)
        if plan.spec.stands_verbatim:
            return end_verbatim(record, plan.spec)
        drafts, lost, error_code = self._drafts(plan, record, stop, recent)
        end = partial(end_record, record, plan.spec, seconds=time.monotonic() - began)
        done = end(drafts, error_code, lost=lost, is_fallback=plan.is_fallback)
        is_left_to_mend = (self._unmended.get(plan.lane) or ("", None))[0] == plan.key
        if done.error_code not in WEAK_CODES or plan.is_fallback or is_left_to_mend:
            return done
        # Another try of a model that answers like this would cost the same and be no better.
        picked = ExtractiveSummariser().summarise(
            plan.spec.messages, plan.spec.picked_chars, counts=self._terms.counts(plan.session_id)
        )
        mended = end([picked], "", lost=[*drafts, *lost], is_fallback=True)
        return mended.with_changes(error_code=done.error_code) if mended.status == "COMPLETED" else done

    def _with_context(self, plan: FoldPlan) -> tuple[FoldSpec, RecentCalls]:
        """Returns the fold with what else is known of its session: other records, the last input and the ledger.

        And what the endpoint reported of the session's last calls.
        """
        spec, session_id = plan.spec, plan.session_id
        with self._stores.database.reading():
            state = self._stores.state(session_id)
            lines = self._stores.records.ledger_lines(session_id, before=spec.from_position)
        if spec.is_merge:
            behind = [each for each in state.active if each.from_position > spec.to_position]
            labels = [label_of(each.turns, spec.language, each.days) for each in behind]
            texts = (without_line(without_question(each.summary)) for each in behind)
            spec = spec.followed_by([*map(labelled, labels, texts)])
        spec = replace(
            spec,
            context="\n".join((self.last_inputs.texts(session_id), *(each.summary for each in state.active))),
            ledger=tuple(standing(lines, state.row.strikes)),
        )
        return spec, state.calls

    def _drafts(
        self, plan: FoldPlan, record: Record, stop: threading.Event, recent: RecentCalls
    ) -> tuple[list[SummaryDraft], list[SummaryDraft], str]:
        """Writes a draft, and has it mended once if it needs it.

        A draft that the try before has left is mended, and no other is written.

        Returns:
            The drafts, those that only cost something, and the error code, "" if there was no error.
        """
        spec = plan.spec
        chars = spec.picked_chars if isinstance(plan.summariser, ExtractiveSummariser) else spec.asked_chars
        drafts: list[SummaryDraft] = []
        lost: list[SummaryDraft] = []
        key, left = self._unmended.get(plan.lane) or ("", None)
        flawed = left if key == plan.key else None
        if flawed is not None and review_drafts([flawed[0]], spec).text:
            drafts.append(replace(flawed[0], input_tokens=0, output_tokens=0))  # the try before has paid for it
        try:
            summarise = self._summarise(plan, stop, lost, recent)
            for is_last in (False, True) if flawed is None else (True,):
                if self._stores.records.get(record.thread_id, record.id).status != "IN_PROGRESS":
                    return drafts, lost, DISCARDED_CODE  # no longer needed: don't pay for another call
                generate_summary(spec.messages, chars, partial(summarise, flawed=flawed), drafts=drafts)
                self._unmended.drop(plan.lane)
                flaw = flaw_of(drafts[-1], spec)
                if flaw is None or is_last:
                    break
                flawed = drafts[-1], flaw
                if not plan.is_trusted and not review_drafts(drafts, spec).text:
                    self._unmended.put(plan.lane, (plan.key, flawed))
                    break
        except TurnStoppedSignal as signal:
            if flawed is not None and self._models.has_one_slot:  # it gives way to a turn, and is mended after that
                self._unmended.put(plan.lane, (plan.key, flawed))
                lost += drafts
                drafts.clear()
            return drafts, lost, signal.code
        except TurnfoldError as error:
            return drafts, lost, error.code
        return drafts, lost, ""

    def _has_cached_slot(self, session_id: str) -> bool:
        """Whether the server has one slot with the session's last call in it: the next reads what it adds alone."""
        return self._models.has_one_slot and self._stores.state(session_id).calls.reads_cache

    def _summarise(
        self, plan: FoldPlan, stop: threading.Event, lost: list[SummaryDraft], recent: RecentCalls
    ) -> Callable[..., SummaryDraft]:
        """Returns what writes each draft of a fold: in one place, so that a repair follows the draft that it mends."""
        if isinstance(plan.summariser, ExtractiveSummariser):
            return partial(plan.summariser.summarise, counts=self._terms.counts(plan.session_id))
        ask = partial(
            plan.summariser.summarise,
            spec=plan.spec,
            may_retry=plan.may_retry,
            stop=stop,
            deadline_seconds=self._deadline_seconds,
            on_text=lambda _: self._moved.put(plan.key, time.monotonic()),
            lost=lost,
        )
        in_place = self.last_inputs.request_for(plan.session_id, plan.spec, plan.summariser, recent)
        if in_place is None:
            return ask
        if not plan.may_retry and self._models.has_one_slot and recent.reads_cache:
            plan.summariser.read_ahead(in_place, stop=stop, deadline_seconds=self._deadline_seconds)
        return partial(_in_place_or_quoted, ask, in_place)


def _in_place_or_quoted(
    ask: Callable[..., SummaryDraft], in_place: SummaryRequest, *given: object, **named: object
) -> SummaryDraft:
    """Asks in place, and quotes the source if the provider finds that longer than we do, or refuses it."""
    try:
        return ask(*given, in_place=in_place, **named)
    except (ContextLengthError, RejectedError):
        return ask(*given, **named)
