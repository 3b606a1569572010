"""Seed 004's strategy: when the context is nearly full, all but the newest messages become one structured summary."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from langchain_core.messages import HumanMessage

from graph.core.model_input import (
    SUMMARY_PREFIX,
    History,
    InputItem,
    Messages,
    ModelInput,
    SystemPart,
    assemble,
    placed_in,
    record_item,
    render_placed,
)
from graph.core.snapshot import SessionSnapshot
from graph.core.text import estimate_tokens
from graph.core.turn import with_words, words_of
from graph.fold.spec import FoldSpec, fold_of
from graph.strategy.base import Limits
from graph.strategy.rolling import unsent_count
from graph.value.view import NextFold
from prompt.system.framing import COMPACTION_HEADING, COMPACTION_NOTE

SUMMARY_TOKENS: Final = 2_048
SUMMARY_CHARS: Final = 6_000
_SPARE_MESSAGES: Final = 2
_LEAST_SHARE: Final = 10
_GROWN_SHARE: Final = 1.1


class CompactionStrategy:
    """Replaces everything but the last 4 messages with a summary each time the context reaches 75 %."""

    name = "compaction"
    sends_records = True
    whole_turns = None
    uses_rate = False

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def next_fold(self, snapshot: SessionSnapshot) -> NextFold:
        limits = self._limits.within(snapshot.input_tokens)
        if not limits.enable_auto_compaction:
            return NextFold()
        return NextFold(
            tokens=round(snapshot.context_tokens * snapshot.correction),
            threshold_tokens=threshold_of(limits),
            is_due=should_compact(snapshot, limits),
        )

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:
        limits = self._limits.within(snapshot.input_tokens)
        if not limits.enable_auto_compaction or not should_compact(snapshot, limits):
            return ()
        spec = compaction_fold(snapshot, limits.preserve_recent_messages)
        return () if spec is None else (spec,)

    def assemble(self, system: SystemPart, history: History, messages: Messages) -> ModelInput:
        """Builds `[summary as a user message] + [all raw messages]`.

        A following user message is joined with the summary: no model takes two user messages in a row.
        """
        if not history:
            return assemble(system, (), messages)
        placed = placed_in(system, history, messages)
        summary = f"{COMPACTION_HEADING}\n\n{render_placed(placed, system.language, labels_alone=False)}"
        if messages and not isinstance(messages[0], HumanMessage):
            messages = [HumanMessage("", id=SUMMARY_PREFIX + history[-1]["id"]), *messages]
        base = assemble(replace(system, pins=(), ledger=()), (), messages)
        prompt, first, *later = base.messages
        own = words_of(first)
        note = COMPACTION_NOTE[system.language].format(first=history[0]["turns"][0], last=history[-1]["turns"][-1])
        joined = f"{summary}\n\n{note}\n\n---\n\n{own}" if own else summary
        records = [record_item(entry, system.language) for entry in placed]
        beside = estimate_tokens(joined) - estimate_tokens(own) - sum(record.tokens for record in records)
        around = InputItem("note", "context", 1, max(0, beside))
        return ModelInput(
            (prompt, with_words(first, joined), *later),
            (*base.items[: system.item_count], *records, around, *base.items[system.item_count :]),
        )


def should_compact(snapshot: SessionSnapshot, limits: Limits) -> bool:
    """Returns True if there is enough to compact and the context has reached its threshold (seed 004).

    A compaction that the user undid isn't repeated until the context has grown by a tenth.
    """
    if snapshot.message_count <= limits.preserve_recent_messages + _SPARE_MESSAGES:
        return False
    if snapshot.context_tokens <= snapshot.restored_tokens * _GROWN_SHARE:
        return False
    return snapshot.context_tokens * snapshot.correction >= threshold_of(limits)


def threshold_of(limits: Limits) -> int:
    return int(limits.max_context_tokens * limits.compaction_threshold)


def compaction_fold(snapshot: SessionSnapshot, preserve_messages: int) -> FoldSpec | None:
    """Returns the compaction of everything but the last messages; None if there is too little to compact.

    A tool result always stays with its call.
    """
    if snapshot.message_count <= preserve_messages + _SPARE_MESSAGES:
        return None
    raw = snapshot.complete_raw
    cut = unsent_count([entry.message for entry in raw], preserve_messages)
    covered, preserved = raw[:cut], raw[cut:]
    if not covered:
        return None
    spec = fold_of(
        snapshot.active,
        covered,
        kind="compaction",
        rate=snapshot.rate,
        language=snapshot.language,
        style="structured",
        time_zone=snapshot.time_zone,
    )
    max_tokens = min(SUMMARY_TOKENS, _half_tokens(spec.source_tokens, sum(entry.tokens for entry in preserved)))
    preserved_turns = {entry.turn for entry in preserved}
    whole_turns = tuple(turn for turn in spec.turns if turn not in preserved_turns)
    return replace(
        spec.bounded(max_tokens, most_chars=SUMMARY_CHARS),
        # A turn that is cut in two counts as covered only if no whole turn is covered.
        turns=whole_turns or spec.turns,
        context_messages=snapshot.message_count,
        context_messages_after=len(preserved) + 1,
        context_tokens=snapshot.context_tokens,
        answer_tokens=SUMMARY_TOKENS,
        is_exact=False,
    )


def _half_tokens(covered_tokens: int, preserved_tokens: int) -> int:
    """Returns the summary's upper bound that halves the context, or at least the covered messages."""
    half = (covered_tokens + preserved_tokens) // 2 - preserved_tokens
    return half if half > covered_tokens // _LEAST_SHARE else covered_tokens // 2
