"""Makes one planned fold in the calling thread: claims its row, writes the drafts, stores the result."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, Literal

from graph.core.fold_record import begin_record, end_record, end_verbatim, source_of
from graph.core.fold_spec import FoldSpec
from graph.core.review import Flaw, Source, SummaryDraft, flaw_of, review_drafts
from graph.core.summary_request import SummaryRequest
from graph.error import InternalError, StoreError, TurnfoldError
from graph.model.summariser import ExtractiveSummariser, Summariser, generate_summary
from graph.model_error import ContextLengthError
from graph.record import Record
from graph.spending import Spending
from graph.store.active import DISCARDED_CODE
from graph.store.record import RecordStore
from graph.worker.fold_queue import Lane
from graph.worker.last_inputs import LastInputs
from graph.worker.newest import Newest
from graph.worker.session_terms import SessionTerms

_LOG = logging.getLogger(__name__)
_TRIES: Final = 2
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


class FoldMaker:
    """Claims, writes and stores folds.

    Args:
        records: Where the folds are kept.
        terms: What picking sentences weighs them by.
        last_inputs: What the chat models were last sent, for folds that are asked for behind it.
        spending: Hears of what the folds cost.
        clock: Returns the current time, UTC.
        deadline_seconds: How long one draft may take.
    """

    def __init__(
        self,
        records: RecordStore,
        terms: SessionTerms,
        last_inputs: LastInputs,
        spending: Spending,
        *,
        clock: Callable[[], datetime],
        deadline_seconds: float,
    ) -> None:
        self._records = records
        self._terms = terms
        self._last_inputs = last_inputs
        self._spending = spending
        self._clock = clock
        self._deadline_seconds = deadline_seconds
        # By lane, the key of the fold to be tried again, and its draft with what is wrong with it.
        self._unmended: Newest[Lane, tuple[str, tuple[SummaryDraft, Flaw]]] = Newest(_KEPT_DRAFTS)

    def forget(self, session_id: str) -> None:
        """Forgets the drafts of a deleted session."""
        for is_waited in (False, True):
            self._unmended.drop((session_id, is_waited))

    def make(self, plan: FoldPlan, stop: threading.Event) -> Making:
        """Claims a fold, writes and reviews the summary, and stores the result.

        The row is claimed here and not when the fold is queued, so that its expiry counts from the start of the work.

        Returns:
            "made", "failed", or "left" if another worker makes it or made it, or it was discarded meanwhile.
        """
        model = plan.summariser.name
        record = begin_record(plan.session_id, plan.spec, model=model, source_key=plan.key, created_at=self._clock())
        making_seconds = 0 if plan.is_fallback else self._deadline_seconds * _TRIES
        seconds = making_seconds + _EXPIRY_MARGIN_SECONDS
        try:
            if not self._records.start(record, owner=plan.owner, expires_after_seconds=seconds):
                return "left"
            done, is_kept = self._ended(plan, record, stop)
        except StoreError as error:
            _LOG.warning("fold of session=%s could not be kept: %s", plan.session_id, error.code)  # its row expires
            return "failed"
        _LOG.info("fold %s session=%s turns=%s outcome=%s", done.status, done.thread_id, done.turns, done.outcome)
        if not is_kept:
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
                return done, self._records.end(done)
            finally:
                self._count(plan, done)
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - the edge of a worker: logged, and stored as a failure that is retried later
            _LOG.exception("fold of session=%s turns=%s ended by a defect", record.thread_id, record.turns)
            done = record.with_changes(status="FAILED", outcome="failed", error_code=InternalError.code)
            return done, self._records.end(done)

    def _made(self, plan: FoldPlan, record: Record, stop: threading.Event) -> Record:
        began = time.monotonic()
        source = source_of(plan.spec, is_quoted=isinstance(plan.summariser, ExtractiveSummariser))
        if plan.spec.stands_verbatim:
            return end_verbatim(record, source)
        drafts: list[SummaryDraft] = []
        error_code = self._draft(plan, record, source, drafts, stop)
        seconds = time.monotonic() - began
        return end_record(record, source, drafts, error_code, seconds=seconds, is_fallback=plan.is_fallback)

    def _draft(
        self, plan: FoldPlan, record: Record, source: Source, drafts: list[SummaryDraft], stop: threading.Event
    ) -> str:
        """Writes a draft, and has it mended once if it needs it; returns the error code, "" if there was no error.

        A draft that the try before has left is mended, and no other is written.
        """
        key, left = self._unmended.get(plan.lane) or ("", None)
        flawed = left if key == plan.key else None
        try:
            summarise = self._summarise(plan, stop)
            for is_last in (False, True) if flawed is None else (True,):
                if self._records.get(record.thread_id, record.id).status != "IN_PROGRESS":
                    return DISCARDED_CODE  # no longer needed: don't pay for another call
                generate_summary(source.messages, source.target_chars, partial(summarise, flawed=flawed), drafts=drafts)
                self._unmended.drop(plan.lane)
                flaw = flaw_of(drafts[-1], source)
                if flaw is None or is_last:
                    break
                flawed = drafts[-1], flaw
                if not plan.is_trusted and not review_drafts(drafts, source).text:
                    self._unmended.put(plan.lane, (plan.key, flawed))
                    break
        except TurnfoldError as error:
            return error.code
        return ""

    def _summarise(self, plan: FoldPlan, stop: threading.Event) -> Callable[..., SummaryDraft]:
        """Returns what writes each draft of a fold: in one place, so that a repair follows the draft that it mends."""
        if isinstance(plan.summariser, ExtractiveSummariser):
            return partial(plan.summariser.summarise, counts=self._terms.counts(plan.session_id))
        ask = partial(
            plan.summariser.summarise,
            asked=plan.spec.asked,
            may_retry=plan.may_retry,
            stop=stop,
            deadline_seconds=self._deadline_seconds,
        )
        in_place = self._last_inputs.request_for(plan.session_id, plan.spec, plan.summariser)
        return ask if in_place is None else partial(_in_place_or_quoted, ask, in_place)


def _in_place_or_quoted(
    ask: Callable[..., SummaryDraft], in_place: SummaryRequest, *given: object, **named: object
) -> SummaryDraft:
    """Asks in place, and quotes the source if the provider finds that longer than we do."""
    try:
        return ask(*given, in_place=in_place, **named)
    except ContextLengthError:
        return ask(*given, **named)
