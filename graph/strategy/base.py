"""The protocol of strategies and their common limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

from graph.core.model_input import History, Messages, ModelInput, SystemPart
from graph.core.snapshot import SessionSnapshot
from graph.fold.spec import FoldSpec
from graph.value.view import FoldWhen, NextFold

_RESERVE_SHARE: Final = 6
# The prompt and the tools take about 700 tokens, which leaves the rest for a question.
_MIN_RESERVE_TOKENS: Final = 1_000
_MAX_RESERVE_TOKENS: Final = 4_000


@dataclass(frozen=True)
class Limits:
    """Limits of the strategies.

    Attributes:
        fold_when: interval: when due blocks are folded in sessions that chose nothing.
        records_budget_tokens: interval: records are merged once all active ones exceed this.
        newest_records: interval: number of newest records that are never merged.
        merged_together: interval: number of records of a level merged into one of the next.
        merged_tokens: interval: the upper bound on a merged record whose sources are small; otherwise 35 % of them.
        app_context_threshold: rolling: a summary is made once un-summarised messages exceed this, in tokens.
        rolling_sends_unsummarised: rolling: True to send all un-summarised messages and leave the newest exchange out
            of the next summary.
        app_context_recent_messages: rolling: number of raw messages sent if not all un-summarised ones are.
        compaction_threshold: compaction: the share of a full context at which it is compacted.
        preserve_recent_messages: compaction: number of messages that stay raw.
        window_turns: window: number of complete turns sent in addition to the open one.
        room_tokens: Upper bound on everything before the open turn; None for no bound.
    """

    fold_when: FoldWhen = "due"
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
    """Returns the size of an input less the reserve for the prompt, the tools and the open turn.

    The reserve is a sixth, 1,000 to 4,000 tokens but at most half.
    """
    reserve = min(max(input_tokens // _RESERVE_SHARE, _MIN_RESERVE_TOKENS), _MAX_RESERVE_TOKENS)
    return input_tokens - min(reserve, input_tokens // 2)


class Strategy(Protocol):
    """Decides when to fold and what to send; has no side effects."""

    @property
    def name(self) -> str: ...

    @property
    def sends_records(self) -> bool:
        """True if the input includes the active records; otherwise the guard can only leave turns out."""

    @property
    def whole_turns(self) -> int | None:
        """Number of turns before the open one that are read whole, folded or not; None for the raw turns only."""

    @property
    def uses_rate(self) -> bool:
        """True if the length of the summaries follows the compression rate."""

    def next_fold(self, snapshot: SessionSnapshot, /) -> NextFold:
        """Returns the pending fold for display: its content and when it falls due."""

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:
        """Returns the due folds, in the order in which they must become active.

        Must not depend on the open turn: folds are prepared after an answer and adopted when the next turn starts.
        """

    def assemble(self, system: SystemPart, history: History, messages: Messages) -> ModelInput: ...
