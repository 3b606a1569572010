"""Makes the summary of a block, in the background, once for all that want it; knows nothing of turns in progress."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from langchain_core.messages import AnyMessage

from graph.core.adopt import Source, feedback_on, judge, label_of
from graph.core.language import user_language
from graph.core.record import ArchivedMessage, Record
from graph.core.schedule import Block, source_key, target_chars
from graph.core.strategy.base import Strategy
from graph.core.token import estimate_tokens
from graph.error import TurnfoldError
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
    """A block that is due, and all that its summary depends on (`key` is the hash of that)."""

    session_id: str
    owner: str
    block: Block
    rate: float
    summariser: Summariser
    source: tuple[ArchivedMessage, ...]
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
    ) -> None:
        self._stores = stores
        self._summariser = summariser
        self._clock = clock
        self._deadline_seconds = deadline_seconds
        self._closing = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="fold")

    def plan(self, session_id: str, block: Block, *, owner: str, rate: float, model: str) -> FoldPlan:
        """Reads the block's live messages and names what a summary of them would depend on.

        Args:
            session_id: The session.
            block: Complete turns of it.
            owner: The session's owner.
            rate: The compression rate in force now.
            model: The session's chat model; the summary model follows from it.

        Raises:
            ModelError: Which model it is can't be told, as the endpoint doesn't answer.
        """
        source = tuple(self._stores.archive.live_turns(session_id, block.first_turn, block.last_turn))
        summariser = self._summariser(model)
        key = source_key(source, rate=rate, model=summariser.name, prompt_version=summariser.prompt_version)
        return FoldPlan(session_id, owner, block, rate, summariser, source, key)

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
                # One more look: it may have been finished between the two questions.
                return self.prepared(plan)
        return record

    def start(self, plan: FoldPlan) -> bool:
        """Begins the making in the background, unless it's under way or done; returns whether it began."""
        record = self._draft_record(plan)
        expires_at = self._clock() + timedelta(seconds=self._deadline_seconds * _TRIES + _EXPIRY_MARGIN_SECONDS)
        if self._closing.is_set() or not self._stores.records.start(record, owner=plan.owner, expires_at=expires_at):
            return False
        self._pool.submit(self._make, plan, record)
        return True

    def due(self, session_id: str, *, complete_turns: int, strategy: Strategy) -> tuple[Block, ...]:
        """Returns the blocks of a session that are to be folded now, oldest first."""
        newest = self._stores.records.newest(session_id, last=1)
        return strategy.due_blocks(complete_turns, newest[-1].turns[-1] if newest else 0)

    def prepare_due(self, session_id: str, *, owner: str, strategy: Strategy) -> None:
        """Begins the summaries of all complete, uncovered blocks of a session; for when its answer is out."""
        session = self._stores.sessions.get(session_id, owner)
        for block in self.due(session_id, complete_turns=session.turn_count, strategy=strategy):
            self.start(self.plan(session_id, block, owner=owner, rate=session.compression_rate, model=session.model))

    def close(self) -> None:
        """Ends what is being made and waits for the workers."""
        self._closing.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _draft_record(self, plan: FoldPlan) -> Record:
        original = sum(entry.chars for entry in plan.source)
        return Record(
            id=f"rec-{uuid.uuid4().hex}",
            thread_id=plan.session_id,
            turns=plan.block.turns,
            turn_length=len(plan.block.turns),
            original_chars=original,
            summary_chars=0,
            compression_rate=plan.rate,
            summary="",
            kind="interval",
            level=0,
            from_position=plan.source[0].position,
            to_position=plan.source[-1].position,
            status="IN_PROGRESS",
            outcome=None,
            created_at=self._clock(),
            model=plan.summariser.name,
            target_chars=target_chars(original, plan.rate),
            source_key=plan.key,
            source_tokens=sum(entry.tokens for entry in plan.source),
            summary_tokens=0,
        )

    def _make(self, plan: FoldPlan, record: Record) -> None:
        """Runs in a worker: writes the summary, judges it, and keeps what came of it."""
        began = time.monotonic()
        messages = [entry.message for entry in plan.source]
        source = Source(
            messages, record.original_chars, record.source_tokens, record.target_chars, label_of(record.turns),
            user_language(messages),
        )  # fmt: skip
        drafts: list[SummaryDraft] = []
        try:
            error_code = self._draft(plan, source, drafts)
            done = _concluded(record, source, drafts, error_code, seconds=time.monotonic() - began)
            keep = self._stores.records.complete if done.status == "COMPLETED" else self._stores.records.fail
            keep(done)
            _LOG.info("fold %s session=%s turns=%s outcome=%s", done.status, done.thread_id, done.turns, done.outcome)
        except Exception:  # noqa: BLE001 - the edge of a worker: nobody above could hear of it; the row expires
            _LOG.exception("fold of session=%s turns=%s ended by a defect", record.thread_id, record.turns)

    def _draft(self, plan: FoldPlan, source: Source, drafts: list[SummaryDraft]) -> str:
        """Writes one draft, and a second if the first asks for it; returns the code of what went wrong, or ""."""
        feedback = ""
        for _ in range(_TRIES):
            try:
                draft = plan.summariser.summarise(
                    source.messages,
                    source.target_chars,
                    feedback=feedback,
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
