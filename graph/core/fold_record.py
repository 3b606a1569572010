"""The record of a fold as plain values: how it begins, what its drafts are judged against, and how it ends."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime

from graph.core.language import user_language
from graph.core.review import Source, SummaryDraft, judge, label_of
from graph.core.snapshot import FoldOrder
from graph.core.token import estimate_tokens
from graph.record import Record


def begin_record(session_id: str, order: FoldOrder, *, model: str, source_key: str, created_at: datetime) -> Record:
    """Returns the record of a fold that is about to be made."""
    return Record(
        id=f"rec-{secrets.token_urlsafe(9)}",
        thread_id=session_id,
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
        created_at=created_at,
        model=model,
        target_chars=order.target_chars,
        source_key=source_key,
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


def source_of(order: FoldOrder, *, is_quoted: bool) -> Source:
    """Returns what the drafts of a fold are judged against.

    Args:
        order: The fold.
        is_quoted: Whether the drafts are picked sentences: the source's own words, in whichever languages these are.
    """
    return Source(
        order.messages,
        order.source_chars,
        order.source_tokens,
        order.target_chars,
        label_of(order.turns),
        None if is_quoted else user_language(order.messages),
        is_bound=order.is_bound,
        max_tokens=order.max_tokens,
        is_quoted=is_quoted,
    )


def end_record(
    record: Record,
    source: Source,
    drafts: Sequence[SummaryDraft],
    error_code: str,
    *,
    seconds: float,
    is_fallback: bool = False,
) -> Record:
    """Returns the record as it ends: COMPLETED with a text that stands for its source, or FAILED with the reason.

    Args:
        record: As it began.
        source: What the drafts are judged against.
        drafts: All that were written, in order.
        error_code: Why there is none, "" if there is one.
        seconds: How long the making took.
        is_fallback: Whether sentences were picked because the summary model gave nothing.
    """
    cost = {
        "input_tokens": sum(draft.input_tokens for draft in drafts),
        "output_tokens": sum(draft.output_tokens for draft in drafts),
        "is_usage": bool(drafts) and all(draft.is_usage for draft in drafts),
        "seconds": seconds,
    }
    if not drafts:
        return record.with_changes(status="FAILED", outcome="failed", error_code=error_code, **cost)
    verdict = judge(drafts, source)
    if not verdict.text:
        return record.with_changes(status="FAILED", outcome=verdict.outcome, error_code=verdict.error_code, **cost)
    return record.with_changes(
        status="COMPLETED",
        kind="verbatim" if verdict.is_verbatim else record.kind,
        outcome="picked" if is_fallback and not verdict.is_verbatim else verdict.outcome,
        summary=verdict.text,
        summary_chars=len(verdict.text),
        summary_tokens=estimate_tokens(source.label + verdict.text),
        **cost,
    )
