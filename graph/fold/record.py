"""Creates the record of a fold at its start and its end."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from graph.core.text import estimate_tokens
from graph.fold.fact_check import check_facts
from graph.fold.ledger import ledger_of, told_in, without_room
from graph.fold.review import Review, SummaryDraft, quote, review_drafts
from graph.fold.spec import FoldSpec
from graph.value.record import Record


def begin_record(session_id: str, spec: FoldSpec, *, model: str, source_key: str, created_at: datetime) -> Record:
    return Record(
        id=f"rec-{secrets.token_urlsafe(9)}",
        thread_id=session_id,
        turns=spec.turns,
        turn_length=len(spec.turns),
        original_chars=spec.original_chars,
        summary_chars=0,
        compression_rate=spec.rate,
        summary="",
        kind=spec.kind,
        level=spec.level,
        from_position=spec.from_position,
        to_position=spec.to_position,
        status="IN_PROGRESS",
        outcome=None,
        created_at=created_at,
        model=model,
        target_chars=spec.target_chars,
        source_key=source_key,
        source_tokens=spec.source_tokens,
        summary_tokens=0,
        sources=spec.sources,
        version=spec.version,
        covered_until_message_id=spec.until_message_id or spec.source_ids[-1],
        covered_message_count=spec.covered_message_count,
        covered_token_count=spec.covered_token_count,
        context_messages=spec.context_messages,
        context_messages_after=spec.context_messages_after,
        context_tokens=spec.context_tokens,
        wish=spec.instruction,
        needed_rate=spec.needed_rate,
    )


def end_record(
    record: Record,
    spec: FoldSpec,
    drafts: Sequence[SummaryDraft],
    error_code: str,
    *,
    seconds: float,
    lost: Sequence[SummaryDraft] = (),
    is_fallback: bool = False,
) -> Record:
    """Returns the finished record: COMPLETED with the adopted text, or FAILED with an error code.

    `error_code`, the reason for a missing draft, is ignored if there is a draft. Drafts that broke off (`lost`) only
    add their cost. `is_fallback` is True if sentences were extracted because the summary model failed.
    """
    paid = (*drafts, *lost)
    cost: dict[str, object] = {
        "input_tokens": sum(draft.input_tokens for draft in paid),
        "output_tokens": sum(draft.output_tokens for draft in paid),
        "is_usage": bool(paid) and all(draft.is_usage for draft in paid),
        "seconds": seconds,
    }
    review = review_drafts(drafts, spec) if drafts else Review("", "failed", error_code=error_code)
    return _ended(record, spec, review, cost, is_fallback=is_fallback)


def end_verbatim(record: Record, spec: FoldSpec) -> Record:
    """Returns the record of a source too short for a summary: the quoted source, at no cost."""
    review = Review(quote(spec.messages, spec.language), "inflated", is_verbatim=True)
    return _ended(record, spec, review, {}, is_fallback=False)


def _ended(record: Record, spec: FoldSpec, review: Review, cost: Mapping[str, object], *, is_fallback: bool) -> Record:
    if not review.text:
        return record.with_changes(status="FAILED", outcome=review.outcome, error_code=review.error_code, **cost)
    told = told_in(review.text, spec)
    ledger = ledger_of(spec, told.lines)
    review = check_facts(replace(review, text=told.text), spec, apart=without_room(spec, ledger))
    return record.with_changes(
        status="COMPLETED",
        kind="verbatim" if review.is_verbatim else record.kind,
        outcome="picked" if is_fallback and not review.is_verbatim else review.outcome,
        summary=review.text,
        summary_chars=len(review.text),
        summary_tokens=estimate_tokens(spec.label + review.text),
        kept_facts=review.retained,
        missing_facts=review.missing,
        invented_facts=review.invented,
        ledger=ledger,
        days=spec.days,
        **cost,
    )
