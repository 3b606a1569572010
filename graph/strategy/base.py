"""The protocol of a strategy and the limits that all strategies follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

from graph.core.model_input import History, Messages, ModelInput, SystemPart
from graph.core.snapshot import SessionSnapshot
from graph.fold.spec import FoldSpec
from graph.value.view import NextFold

_RESERVE_SHARE: Final = 6
# The prompt and the tools take about 700 tokens, a question has the rest.
_MIN_RESERVE_TOKENS: Final = 1_000
_MAX_RESERVE_TOKENS: Final = 4_000


@dataclass(frozen=True)
class Limits:
    """The strategies' limits with their default values.

    Attributes:
        records_budget_tokens: interval: records are merged once all active ones exceed this.
        newest_records: interval: how many of the newest records are never merged.
        merged_together: interval: how many records of one level become one of the next.
        merged_tokens: interval: the upper bound on a merged record.
        app_context_threshold: rolling: a summary is made once un-summarised messages exceed this, in tokens.
        rolling_sends_unsummarised: rolling: whether all un-summarised messages are sent, and the newest exchange is
            never summarised at once.
        app_context_recent_messages: rolling: how many messages are sent raw if not all un-summarised ones are.
        max_context_tokens: compaction: the size of a full context.
        compaction_threshold: compaction: the share of a full context at which it is compacted.
        preserve_recent_messages: compaction: how many messages stay raw.
        enable_auto_compaction: compaction: whether it happens without a command of the user.
        window_turns: window: how many complete turns are sent beside the open one.
        room_tokens: Upper bound on everything before the open turn; None for no bound.
    """

    records_budget_tokens: int = 8_000
    newest_records: int = 16
    merged_together: int = 8
    merged_tokens: int = 600
    app_context_threshold: int = 8_000
    app_context_recent_messages: int = 6
    rolling_sends_unsummarised: bool = True
    max_context_tokens: int = 100_000
    compaction_threshold: float = 0.75
    preserve_recent_messages: int = 4
    enable_auto_compaction: bool = True
    window_turns: int = 10
    room_tokens: int | None = None

    def within(self, input_tokens: int | None) -> Limits:
        """Returns the limits for a model whose whole input is at most `input_tokens`; None for no bound."""
        if input_tokens is None:
            return self
        room = room_within(input_tokens)
        return replace(
            self,
            room_tokens=room,
            records_budget_tokens=min(self.records_budget_tokens, room),
            # The remaining third is for the summary and the newest exchange.
            app_context_threshold=min(self.app_context_threshold, room * 2 // 3),
            max_context_tokens=min(self.max_context_tokens, int(room / self.compaction_threshold)),
        )


def room_within(input_tokens: int) -> int:
    """Returns what is left of an input for all but the prompt, the tools and the open turn.

    For these a sixth is reserved, 1,000 to 4,000 tokens but at most half.
    """
    reserve = min(max(input_tokens // _RESERVE_SHARE, _MIN_RESERVE_TOKENS), _MAX_RESERVE_TOKENS)
    return input_tokens - min(reserve, input_tokens // 2)


def first_turn(strategy: Strategy, open_turn: int) -> int:
    """Returns the first turn that a strategy can need beside its records while `open_turn` is open; 1 for all."""
    return 1 if strategy.whole_turns is None else max(1, open_turn - strategy.whole_turns)


class Strategy(Protocol):
    """Decides when to fold and what to send; has no effects."""

    @property
    def name(self) -> str:
        """The name by which sessions choose it."""

    @property
    def sends_records(self) -> bool:
        """Whether its input holds the active records; otherwise the guard can only leave turns out."""

    @property
    def whole_turns(self) -> int | None:
        """How many turns before the open one it reads whole, folded or not; None for the raw turns only."""

    @property
    def uses_rate(self) -> bool:
        """Whether the length of its summaries follows the compression rate."""

    def next_fold(self, snapshot: SessionSnapshot, /) -> NextFold:
        """Tells the user what isn't folded yet, and when it will be."""

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:
        """Returns the folds that are due, in the order in which they must become active.

        Must not depend on the open turn: folds are prepared after an answer and adopted when the next turn begins.
        """

    def assemble(self, system: SystemPart, history: History, messages: Messages) -> ModelInput:
        """Builds the input of one model call."""
