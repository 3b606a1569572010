"""Makes the summary of a block, in the background, once for all that want it; knows nothing of turns in progress."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from langchain_core.messages import AnyMessage

from graph.core.adopt import Source, feedback_on, judge, label_of
from graph.core.language import user_language
from graph.core.record import Record
from graph.core.schedule import source_key
from graph.core.standing import FoldOrder, Standing
from graph.core.strategy.base import Strategy
from graph.core.token import estimate_tokens
from graph.error import InternalError, StoreError, TurnfoldError
from graph.model.summariser import ExtractiveSummariser, Summariser, SummaryDraft
from graph.store.opening import Stores

_LOG = logging.getLogger(__name__)
_TRIES: Final = 2
_POLL_SECONDS: Final = 0.05
_EXPIRY_MARGIN_SECONDS: Final = 10


def generate_summary(messages: Sequence[AnyMessage], target_length: int, summariser: Summariser | None = None) -> str:
    """Summarises messages to about `target_length` characters, once, as it comes; adoption is judged elsewhere.

    Args:
        messages: Messages of complete turns, tool calls and results included.
        target_length: `int(original_chars * compression_rate)`.
        summariser: Who writes it; without one the extractive summariser picks sentences, no model needed.

    Raises:
        ModelError: The summary model failed.
    """
    writer = summariser or ExtractiveSummariser()
    draft = writer.summarise(messages, target_length, stop=threading.Event(), deadline_seconds=60)
    return draft.text.strip()


@dataclass(frozen=True)
class FoldPlan:
    """A fold that is due, who will make it, and the hash of all that its text depends on."""

    session_id: str
    owner: str
    order: FoldOrder
    summariser: Summariser
    key: str


class Folder:
    """Plans, makes and finds the summaries of blocks. It takes no lease: adoption is the turn's business."""

    def __init__(
        self,
        *,
        stores: Stores,
        summariser: Callable[[str], Summariser],
        clock: Callable[[], datetime],
        deadline_seconds: float,
        input_tokens: Callable[[str], int],
    ) -> None:
        self._stores = stores
        self._summariser = summariser
        self._clock = clock
        self._deadline_seconds = deadline_seconds
        self._input_tokens = input_tokens
        self._closing = threading.Event()
        self._waited_for: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="fold")

    def standing(self, session_id: str, *, complete_turns: int, rate: float) -> Standing:
        """Reads how a session stands: its records in force and the messages that none of them covers."""
        in_force = self._stores.records.in_force(session_id)
        covered_to = self._stores.records.covered_to(session_id)
        raw = self._stores.archive.live(session_id, from_position=covered_to + 1)
        return Standing(complete_turns, in_force, raw, rate, self._stores.calls.correction(session_id))

    def plan(self, session_id: str, order: FoldOrder, *, owner: str, model: str) -> FoldPlan:
        """Says who makes a fold, and by which key it's found again.

        Args:
            session_id: The session.
            order: The fold.
            owner: The session's owner.
            model: The session's chat model; the summary model follows from it.

        Raises:
            ModelError: Which model it is can't be told, as the endpoint doesn't answer.
        """
        summariser = self._summariser(model)
        key = source_key(order, model=summariser.name, prompt_version=summariser.prompt_version)
        return FoldPlan(session_id, owner, order, summariser, key)

    def prepared(self, plan: FoldPlan) -> Record | None:
        """Returns the finished summary of exactly this plan, if there is one."""
        return self._stores.records.prepared(plan.session_id, plan.key)

    def wait(self, plan: FoldPlan, seconds: float, stop: threading.Event) -> Record | None:
        """Makes sure that the summary is being made and waits for it.

        Returns:
            The finished record; None if it failed, took longer than `seconds`, or `stop` was set. It is still
            made to its end, for the next chance.
        """
        self.start(plan)
        until = time.monotonic() + seconds
        while (record := self.prepared(plan)) is None:
            is_running = self._stores.records.in_progress(plan.session_id, plan.key, self._clock())
            if not is_running or time.monotonic() >= until or stop.wait(_POLL_SECONDS):
                if not stop.is_set():
                    self._waited_for[plan.session_id] = plan.key
                # One more look: it may have been finished between the two questions.
                return self.prepared(plan)
        return record

    def make_now(
        self,
        session_id: str,
        order: FoldOrder,
        *,
        owner: str,
        model: str,
        stop: threading.Event,
        wait_seconds: float | None = None,
    ) -> Record | None:
        """Makes a fold that can't be done without: by the summary model, or by picking sentences if that fails.

        Args:
            session_id: The session.
            order: The fold.
            owner: The session's owner.
            model: The session's chat model.
            stop: When set, the wait ends at once.
            wait_seconds: How long the summary model may take; None for its deadline.

        Returns:
            The finished record; None if `stop` was set, or nothing smaller than the source came of it.
        """
        plan = self.plan(session_id, order, owner=owner, model=model)
        record = self.wait(plan, self._deadline_seconds if wait_seconds is None else wait_seconds, stop)
        if record is None and not stop.is_set():
            picked = ExtractiveSummariser()
            key = source_key(order, model=picked.name, prompt_version=picked.prompt_version)
            record = self.wait(replace(plan, summariser=picked, key=key), self._deadline_seconds, stop)
        return record

    def was_waited_for(self, plan: FoldPlan) -> bool:
        """Whether a turn has waited for this fold in vain: none shall again, or a summariser that hangs slows all."""
        return self._waited_for.get(plan.session_id) == plan.key

    def start(self, plan: FoldPlan) -> bool:
        """Begins the making in the background, unless it's under way or done; returns whether it began."""
        record = self._draft_record(plan)
        expires_at = self._clock() + timedelta(seconds=self._deadline_seconds * _TRIES + _EXPIRY_MARGIN_SECONDS)
        if self._closing.is_set() or not self._stores.records.start(record, owner=plan.owner, expires_at=expires_at):
            return False
        self._pool.submit(self._make, plan, record)
        return True

    def prepare_due(self, session_id: str, *, owner: str, strategy: Strategy) -> None:
        """Begins all folds of a session that are due, in the background; for when its answer is out."""
        session, last = self._stores.sessions.get(session_id, owner), self._stores.turns.last(session_id)
        if last is None:
            return
        complete_turns = last.number - 1 if last.status == "running" else last.number
        standing = self.standing(session_id, complete_turns=complete_turns, rate=session.compression_rate)
        standing = replace(standing, input_tokens=self._input_tokens(session.model))
        for order in strategy.orders(standing):
            self.start(self.plan(session_id, order, owner=owner, model=session.model))

    def close(self) -> None:
        """Ends what is being made and waits for the workers; what hadn't begun is kept as failed, not left open."""
        self._closing.set()
        self._pool.shutdown(wait=True)

    def _draft_record(self, plan: FoldPlan) -> Record:
        order = plan.order
        return Record(
            id=f"rec-{uuid.uuid4().hex}",
            thread_id=plan.session_id,
            turns=order.turns,
            turn_length=len(order.turns),
            original_chars=order.original_chars,
            summary_chars=0,
            compression_rate=order.rate,
            summary="",
            kind=order.kind,
            level=order.level,
            from_position=order.from_position,
            to_position=order.to_position,
            status="IN_PROGRESS",
            outcome=None,
            created_at=self._clock(),
            model=plan.summariser.name,
            target_chars=order.target_chars,
            source_key=plan.key,
            source_tokens=order.source_tokens,
            summary_tokens=0,
            sources=order.sources,
            version=order.version,
            covered_until_message_id=order.until_message_id or order.source_ids[-1],
            covered_message_count=order.covered_message_count,
            covered_token_count=order.covered_token_count,
            context_messages=order.context_messages,
            context_messages_after=order.context_messages_after,
            context_tokens=order.context_tokens,
        )

    def _make(self, plan: FoldPlan, record: Record) -> None:
        """Runs in a worker: writes the summary, judges it, and keeps what came of it."""
        try:
            done = self._made(plan, record)
        except Exception:  # noqa: BLE001 - the edge of a worker: logged, and kept as a failure that is tried again
            _LOG.exception("fold of session=%s turns=%s ended by a defect", record.thread_id, record.turns)
            done = record.with_changes(status="FAILED", outcome="failed", error_code=InternalError.code)
        try:
            keep = self._stores.records.complete if done.status == "COMPLETED" else self._stores.records.fail
            keep(done)
        except StoreError as error:
            _LOG.warning("fold of session=%s could not be kept: %s", done.thread_id, error.code)  # its row expires
            return
        _LOG.info("fold %s session=%s turns=%s outcome=%s", done.status, done.thread_id, done.turns, done.outcome)

    def _made(self, plan: FoldPlan, record: Record) -> Record:
        began, order = time.monotonic(), plan.order
        source = Source(
            order.messages,
            order.source_chars,
            order.source_tokens,
            order.target_chars,
            label_of(order.turns),
            # Picked sentences are the source's own words, in whichever languages these are.
            None if isinstance(plan.summariser, ExtractiveSummariser) else user_language(order.messages),
            is_bound=order.is_bound,
            max_tokens=order.max_tokens,
        )
        drafts: list[SummaryDraft] = []
        error_code = self._draft(plan, source, drafts)
        return _concluded(record, source, drafts, error_code, seconds=time.monotonic() - began)

    def _draft(self, plan: FoldPlan, source: Source, drafts: list[SummaryDraft]) -> str:
        """Writes one draft, and a second if the first asks for it; returns the code of what went wrong, or ""."""
        feedback = ""
        for _ in range(_TRIES):
            try:
                draft = plan.summariser.summarise(
                    source.messages,
                    source.target_chars,
                    feedback=feedback,
                    style=plan.order.style,
                    answer_tokens=plan.order.answer_tokens,
                    stop=self._closing,
                    deadline_seconds=self._deadline_seconds,
                )
            except TurnfoldError as error:
                return error.code
            drafts.append(draft)
            feedback = feedback_on(draft.text, source)
            if not feedback:
                break
        return ""


def _concluded(
    record: Record, source: Source, drafts: Sequence[SummaryDraft], error_code: str, *, seconds: float
) -> Record:
    """Returns the record as it ends: COMPLETED with a text that stands for its source, or FAILED with the reason."""
    cost = {
        "input_tokens": sum(draft.input_tokens for draft in drafts),
        "output_tokens": sum(draft.output_tokens for draft in drafts),
        "is_usage": bool(drafts) and all(draft.is_usage for draft in drafts),
        "seconds": seconds,
    }
    if not drafts:
        return record.with_changes(status="FAILED", outcome="failed", error_code=error_code, **cost)
    verdict = judge([draft.text for draft in drafts], source)
    if not verdict.text:
        return record.with_changes(status="FAILED", outcome=verdict.outcome, error_code=verdict.error_code, **cost)
    return record.with_changes(
        status="COMPLETED",
        kind="verbatim" if verdict.is_verbatim else record.kind,
        outcome=verdict.outcome,
        summary=verdict.text,
        summary_chars=len(verdict.text),
        summary_tokens=estimate_tokens(source.label + verdict.text),
        **cost,
    )
