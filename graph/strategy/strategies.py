"""All strategies by name, the one that folds nothing, and the fold that makes an existing record again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from graph.core.model_input import History, Messages, ModelInput, SystemPart, assemble
from graph.core.snapshot import SessionSnapshot
from graph.core.turn import extract_current_turn, extract_last_n_turns
from graph.fold.spec import FoldSpec, PromptStyle, fold_of
from graph.strategy import compaction, rolling
from graph.strategy.base import Limits, Strategy
from graph.strategy.compaction import CompactionStrategy
from graph.strategy.interval import IntervalStrategy, sized
from graph.strategy.merge import merge_fold
from graph.strategy.rolling import RollingStrategy
from graph.value.record import ArchivedMessage, Record, RecordKind
from graph.value.view import NextFold
from prompt.system.framing import Language


class WindowStrategy:
    """Sends the last N complete turns and the open one; with N = 0 the open one alone (seed 003's "disabled")."""

    name = "window"
    sends_records = False
    uses_rate = False

    def __init__(self, limits: Limits) -> None:
        self.whole_turns = limits.window_turns

    def next_fold(self, _snapshot: SessionSnapshot, /) -> NextFold:
        return NextFold(sent_turns=self.whole_turns)

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:  # noqa: ARG002 - the protocol's; nothing is due
        return ()

    def assemble(self, system: SystemPart, history: History, messages: Messages) -> ModelInput:  # noqa: ARG002 - the protocol's; records of other strategies aren't sent
        retained = [*extract_last_n_turns(messages, self.whole_turns), *extract_current_turn(messages)]
        return assemble(system, (), retained)


_CLASSES = (IntervalStrategy, RollingStrategy, CompactionStrategy, WindowStrategy)


@dataclass(frozen=True)
class Strategies:
    """The selectable strategies in display order, and that of sessions without a choice."""

    by_name: Mapping[str, Strategy]
    default: Strategy

    def of(self, name: str) -> Strategy:
        """Returns the strategy by name; the default one for "" or a name that no longer exists."""
        return self.by_name.get(name, self.default)


def build_strategies(limits: Limits, *, default_name: str, is_enabled: bool) -> Strategies:
    """Without `is_enabled` (`APP_CONTEXT_ENABLED`), "window" with only the current turn is the default.

    A session that chooses "window" then gets the same, so that the name has one meaning.
    """
    limits = limits if is_enabled else replace(limits, window_turns=0)
    by_name: dict[str, Strategy] = {kind.name: kind(limits) for kind in _CLASSES}
    return Strategies(by_name, by_name[default_name if is_enabled else WindowStrategy.name])


_STYLES: Final[dict[RecordKind, PromptStyle]] = {"rolling": "rolling", "compaction": "structured"}
_LIMITS: Final = {
    "rolling": (rolling.SUMMARY_TOKENS, rolling.SUMMARY_CHARS),
    "compaction": (compaction.SUMMARY_TOKENS, compaction.SUMMARY_CHARS),
}


def regeneration_fold(
    record: Record,
    sources: Sequence[Record],
    entries: Sequence[ArchivedMessage],
    *,
    kind: RecordKind,
    rate: float,
    language: Language,
) -> FoldSpec:
    """Returns the fold of a record's own sources.

    Args:
        record: The record, in any version.
        sources: The records that it was made from, oldest first.
        said: The covered live messages after these.
        kind: The kind before the record was undone.
        rate: Target share of the source.
        language: The session's language.
    """
    if kind == "merge":
        tokens = sum(source.summary_tokens for source in sources)
        return merge_fold(sources, rate, max(1, min(tokens // 2, int(tokens * rate))), language)
    spec = fold_of(sources, entries, kind=kind, rate=rate, language=language, style=_STYLES.get(kind, "plain"))
    spec = replace(spec, turns=record.turns, until_message_id=record.covered_until_message_id)
    if kind == "interval":
        return sized(replace(spec, verbatim_chars=0))
    max_tokens, max_chars = _LIMITS[kind]
    return replace(
        spec.bounded(max_tokens, most_chars=min(max_chars, spec.target_chars)),
        context_messages=record.context_messages,
        context_messages_after=record.context_messages_after,
        context_tokens=record.context_tokens,
        answer_tokens=max_tokens,
    )
