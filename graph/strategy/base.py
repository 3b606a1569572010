"""What a strategy is, and the numbers that all strategies go by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from langchain_core.messages import AnyMessage

from graph.core.fold_spec import FoldSpec
from graph.core.model_input import ModelInput, SystemPart
from graph.core.snapshot import SessionSnapshot
from graph.record import HistoryEntry

_RESERVE_SHARE: Final = 6
_MIN_RESERVE_TOKENS: Final = 800
_MAX_RESERVE_TOKENS: Final = 4_000


@dataclass(frozen=True)
class Limits:
    """The strategies' numbers with the defaults of the design.

    Attributes:
        records_budget_tokens: interval: merges begin when the records in force pass this.
        newest_records: interval: so many of the newest records are never merged.
        merged_together: interval: so many records of one level become one of the next.
        merged_tokens: interval: a merged record's hard bound.
        app_context_threshold: rolling: a summary is made when un-summarised messages pass this.
        app_context_recent_messages: rolling: so many messages go raw.
        rolling_sends_unsummarised: rolling: whether un-summarised messages beyond these are sent too.
        max_context_tokens: compaction: what counts as full.
        compaction_threshold: compaction: the share of it at which it's compacted.
        preserve_recent_messages: compaction: so many messages stay raw.
        enable_auto_compaction: compaction: whether it's done without being asked for.
        window_turns: window: so many complete turns go with the open one.
        room_tokens: How much all that was said before the open turn may take of an input; None for no bound.
    """

    records_budget_tokens: int = 8_000
    newest_records: int = 16
    merged_together: int = 8
    merged_tokens: int = 600
    app_context_threshold: int = 8_000
    app_context_recent_messages: int = 6
    rolling_sends_unsummarised: bool = False
    max_context_tokens: int = 100_000
    compaction_threshold: float = 0.75
    preserve_recent_messages: int = 4
    enable_auto_compaction: bool = True
    window_turns: int = 10
    room_tokens: int | None = None

    def within(self, input_tokens: int | None) -> Limits:
        """Returns the limits for a model whose whole input may be that large; None if nobody asks for a bound.

        A sixth of the input is left for the prompt, the tools and the open turn: 800 to 4,000 tokens, at most half.
        """
        if input_tokens is None:
            return self
        reserve = min(max(input_tokens // _RESERVE_SHARE, _MIN_RESERVE_TOKENS), _MAX_RESERVE_TOKENS)
        room = input_tokens - min(reserve, input_tokens // 2)
        return replace(
            self,
            room_tokens=room,
            records_budget_tokens=min(self.records_budget_tokens, room),
            # The summary and the newest exchange need the rest.
            app_context_threshold=min(self.app_context_threshold, room * 2 // 3),
            max_context_tokens=min(self.max_context_tokens, int(room / self.compaction_threshold)),
        )


def first_turn(strategy: Strategy, open_turn: int) -> int:
    """Returns the first turn that a strategy can ever need beside its records, when this turn is open; 1 for all."""
    return 1 if strategy.whole_turns is None else max(1, open_turn - strategy.whole_turns)


class Strategy(Protocol):
    """A way to keep a conversation affordable. Pure: it only reads what it's given."""

    @property
    def name(self) -> str:
        """The name by which sessions choose it."""

    @property
    def sends_records(self) -> bool:
        """Whether its input holds the records in force; else the guard can only leave turns out."""

    @property
    def whole_turns(self) -> int | None:
        """How many turns before the open one it gets whole, folded or not; None for just those that aren't folded."""

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:
        """Returns the folds that are due, in the order in which they must come into force.

        Asked when an answer is out (then they're prepared) and when the next turn begins (then they're adopted), so
        that it must not depend on the open turn.
        """

    def assemble(
        self, system: SystemPart, history: Sequence[HistoryEntry], messages: Sequence[AnyMessage]
    ) -> ModelInput:
        """Builds the input of one model call."""
