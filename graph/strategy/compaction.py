"""Seed 004's strategy: when the context is nearly full, all but the newest messages become one structured summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from graph.core.fold_spec import FoldSpec, fold_of
from graph.core.model_input import InputItem, ModelInput, SystemPart, assemble, record_item
from graph.core.snapshot import SessionSnapshot
from graph.core.token import estimate_tokens
from graph.core.turn import text_of
from graph.record import ArchivedMessage, HistoryEntry
from graph.strategy.base import Limits
from graph.strategy.rolling import render_summary
from prompt.system.framing import COMPACTION_HEADING

SUMMARY_TOKENS: Final = 2_048
SUMMARY_CHARS: Final = 6_000
_SPARE_MESSAGES: Final = 2
_DENSITY_MARGIN: Final = 0.95
_LEAST_SHARE: Final = 10
_GROWN_SHARE: Final = 1.1


class CompactionStrategy:
    """At 75 % of the context everything but the last 4 messages is replaced by a summary; again at each 75 %."""

    name = "compaction"
    sends_records = True
    whole_turns = None

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:
        """Returns the compaction that is due, if one is."""
        limits = self._limits.within(snapshot.input_tokens)
        if not limits.enable_auto_compaction or not should_compact(snapshot, limits):
            return ()
        spec = compaction_fold(snapshot, limits.preserve_recent_messages)
        return () if spec is None else (spec,)

    def assemble(
        self, system: SystemPart, history: Sequence[HistoryEntry], messages: Sequence[AnyMessage]
    ) -> ModelInput:
        """Builds `[summary as a user message] + [all raw messages]`.

        Where a user's message follows, the two are one message, as no model takes two user messages running.
        """
        if not history:
            return assemble(system, (), messages)
        summary = f"{COMPACTION_HEADING}\n\n{render_summary(history)}"
        if messages and not isinstance(messages[0], HumanMessage):
            messages = [HumanMessage("", id=f"summary-{history[-1]['id']}"), *messages]
        base = assemble(system, (), messages)
        raw = list(base.messages[1:])
        own = text_of(raw[0])
        joined = f"{summary}\n\n---\n\n{own}" if own else summary
        raw[0] = raw[0].model_copy(update={"content": joined})
        records = [record_item(entry) for entry in history]
        beside = estimate_tokens(joined) - estimate_tokens(own) - sum(entry["summary_tokens"] for entry in history)
        around = InputItem("note", "context", 1, max(0, beside))
        return ModelInput((base.messages[0], *raw), (base.items[0], *records, around, *base.items[1:]))


def context_tokens(snapshot: SessionSnapshot) -> int:
    """Estimates what is in the context: the records in force and all raw messages of complete turns."""
    records = sum(record.summary_tokens for record in snapshot.active)
    return records + sum(entry.tokens for entry in snapshot.complete_raw)


def message_count(snapshot: SessionSnapshot) -> int:
    """Counts the messages in the context; the summaries together count as one."""
    return len(snapshot.complete_raw) + bool(snapshot.active)


def should_compact(snapshot: SessionSnapshot, limits: Limits) -> bool:
    """Whether there's enough to compact, and the context has reached its threshold (seed 004).

    One that the user undid isn't made again until the context has grown by a tenth.
    """
    if message_count(snapshot) <= limits.preserve_recent_messages + _SPARE_MESSAGES:
        return False
    tokens = context_tokens(snapshot)
    if tokens <= snapshot.restored_tokens * _GROWN_SHARE:
        return False  # the user has just undone it
    threshold_tokens = int(limits.max_context_tokens * limits.compaction_threshold)
    return tokens * snapshot.correction >= threshold_tokens


def compaction_fold(snapshot: SessionSnapshot, preserve_messages: int) -> FoldSpec | None:
    """Returns the compaction of everything but the last messages; None if there's nothing to do.

    Args:
        snapshot: The session's snapshot.
        preserve_messages: How many messages stay raw; a tool result never stays without its call.
    """
    raw = snapshot.complete_raw
    if message_count(snapshot) <= preserve_messages + _SPARE_MESSAGES:
        return None
    cut = max(0, len(raw) - preserve_messages)
    while 0 < cut < len(raw) and isinstance(raw[cut].message, ToolMessage):
        cut -= 1
    covered = raw[:cut]
    if not covered:
        return None
    spec = fold_of(snapshot.active, covered, kind="compaction", rate=snapshot.rate, style="structured")
    max_tokens = min(SUMMARY_TOKENS, _half_tokens(spec.source_tokens, sum(entry.tokens for entry in raw[cut:])))
    return replace(
        spec.bounded(max_tokens, most_chars=SUMMARY_CHARS),
        turns=_covered_turns(snapshot, covered, raw[cut:]),
        context_messages=message_count(snapshot),
        context_messages_after=len(raw) - cut + 1,
        context_tokens=context_tokens(snapshot),
        answer_tokens=SUMMARY_TOKENS,
        is_exact=False,
    )


def _half_tokens(covered_tokens: int, kept_tokens: int) -> int:
    """Returns what the summary may take so that the context falls by half.

    What is kept may be more than half by itself: then what is covered falls by half.
    """
    half = (covered_tokens + kept_tokens) // 2 - kept_tokens
    return half if half > covered_tokens // _LEAST_SHARE else covered_tokens // 2


def _covered_turns(
    snapshot: SessionSnapshot, covered: Sequence[ArchivedMessage], kept: Sequence[ArchivedMessage]
) -> tuple[int, ...]:
    """Returns the turns that are covered whole; the one that is cut in two only if there's no other."""
    partly = {entry.turn for entry in kept}
    turns = dict.fromkeys([t for record in snapshot.active for t in record.turns] + [e.turn for e in covered])
    whole = tuple(turn for turn in turns if turn not in partly)
    return whole or tuple(turns)
