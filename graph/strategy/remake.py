"""The fold of an existing record's sources, to regenerate its text or to check an edited one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from graph.fold.fact_carry import carried_facts, room_for_firm
from graph.fold.spec import FoldSpec, PromptStyle, fold_of
from graph.strategy import compaction, rolling
from graph.strategy.merge import merge_fold
from graph.value.record import ArchivedMessage, Record, RecordKind
from prompt.system.framing import Language

_STYLES: Final[dict[RecordKind, PromptStyle]] = {"rolling": "rolling", "compaction": "structured"}
_LIMITS: Final = {
    "rolling": (rolling.SUMMARY_TOKENS, rolling.SUMMARY_CHARS),
    "compaction": (compaction.SUMMARY_TOKENS, compaction.SUMMARY_CHARS),
}


def fold_anew(
    record: Record,
    sources: Sequence[Record],
    said: Sequence[ArchivedMessage],
    *,
    kind: RecordKind,
    rate: float,
    language: Language,
) -> FoldSpec:
    """Returns the fold of a record's own sources: older records, and the covered live messages after these.

    `kind` is that before the record was undone.
    """
    if kind == "merge":
        tokens = sum(source.summary_tokens for source in sources)
        enough_tokens = max(int(tokens * rate), room_for_firm(carried_facts(sources), language))
        return merge_fold(sources, rate, max(1, min(tokens // 2, enough_tokens)), language)
    spec = fold_of(sources, said, kind=kind, rate=rate, language=language, style=_STYLES.get(kind, "plain"))
    spec = replace(spec, turns=record.turns, until_message_id=record.covered_until_message_id)
    if kind == "interval":
        return spec
    max_tokens, max_chars = _LIMITS[kind]
    return replace(
        spec.bounded(max_tokens, most_chars=min(max_chars, spec.target_chars)),
        context_messages=record.context_messages,
        context_messages_after=record.context_messages_after,
        context_tokens=record.context_tokens,
        answer_tokens=max_tokens,
    )
