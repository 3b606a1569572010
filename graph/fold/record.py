"""Creates the record of a fold at its start and its end, and the source that drafts are compared with."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime

from graph.core.language import user_scripts
from graph.core.text import estimate_tokens
from graph.core.turn import label_of
from graph.fold.fact_check import CheckedText, check_facts
from graph.fold.review import Review, Source, SummaryDraft, quote, review_drafts
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
        wish=spec.wish,
    )


def source_of(spec: FoldSpec, *, is_quoted: bool) -> Source:
    """Returns the source that a fold's drafts are compared with.

    Args:
        spec: The fold.
        is_quoted: True for extracted sentences, which may be in any language of the source.
    """
    return Source(
        spec.messages,
        spec.source_chars,
        spec.source_tokens,
        spec.target_chars,
        label_of(spec.turns, spec.language),
        frozenset() if is_quoted else _scripts_of(spec),
        is_bound=spec.is_bound,
        max_tokens=spec.max_tokens,
        is_quoted=is_quoted,
        is_summary=spec.style == "merge",
        session_language=spec.language,
        carried=spec.carried,
    )


def _scripts_of(spec: FoldSpec) -> frozenset[str]:
    """Returns the allowed scripts of a summary, the user's and the session's; empty if the user wrote no words."""
    found = user_scripts(spec.messages)
    return found | {"ko" if spec.language == "ko" else "latin"} if found else found


def end_record(
    record: Record,
    source: Source,
    drafts: Sequence[SummaryDraft],
    error_code: str,
    *,
    seconds: float,
    is_fallback: bool = False,
) -> Record:
    """Returns the finished record: COMPLETED with the adopted text, or FAILED with an error code.

    Args:
        record: The record as it was started.
        source: Reference data for reviewing the drafts.
        drafts: All drafts in order.
        error_code: Reason for a missing draft; ignored if there is a draft.
        seconds: Duration.
        is_fallback: True if sentences were extracted because the summary model failed.
    """
    cost: dict[str, object] = {
        "input_tokens": sum(draft.input_tokens for draft in drafts),
        "output_tokens": sum(draft.output_tokens for draft in drafts),
        "is_usage": bool(drafts) and all(draft.is_usage for draft in drafts),
        "seconds": seconds,
    }
    review = review_drafts(drafts, source) if drafts else Review("", "failed", error_code=error_code)
    return _ended(record, source, review, cost, is_fallback=is_fallback)


def end_verbatim(record: Record, source: Source) -> Record:
    """Returns the record of a source too short for a summary: the quoted source, at no cost."""
    return _ended(
        record,
        source,
        Review(quote(source.messages, source.session_language), "inflated", is_verbatim=True),
        {},
        is_fallback=False,
    )


def _ended(record: Record, source: Source, review: Review, cost: Mapping[str, object], *, is_fallback: bool) -> Record:
    if not review.text:
        return record.with_changes(status="FAILED", outcome=review.outcome, error_code=review.error_code, **cost)
    # A verbatim text contains all its facts.
    checked = CheckedText(review.text, (), ()) if review.is_verbatim else check_facts(review.text, source)
    return record.with_changes(
        status="COMPLETED",
        kind="verbatim" if review.is_verbatim else record.kind,
        outcome="picked" if is_fallback and not review.is_verbatim else review.outcome,
        summary=checked.text,
        summary_chars=len(checked.text),
        summary_tokens=estimate_tokens(source.label + checked.text),
        kept_facts=checked.kept,
        missing_facts=checked.missing,
        **cost,
    )
