"""Seed 002's strategy: every three turns become one summary; knows nothing of the other strategies."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AnyMessage

from graph.core.assembly import ModelInput, SystemPart, assemble
from graph.core.merge import merge_order
from graph.core.record import ArchivedMessage, HistoryEntry
from graph.core.schedule import due_blocks, target_chars
from graph.core.standing import FoldOrder, Standing
from graph.core.strategy.limit import Limits


class IntervalStrategy:
    """Turns 3k+1 to 3k+3 are folded together; all summaries are sent, then the raw turns. Old ones are merged."""

    name = "interval"
    sends_records = True
    whole_turns = None

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def orders(self, standing: Standing) -> tuple[FoldOrder, ...]:
        """Returns the complete blocks that no record covers, oldest first, then a merge if one is due."""
        blocks = []
        for block in due_blocks(standing.complete_turns, standing.covered_turn):
            source = [entry for entry in standing.raw if block.first_turn <= entry.turn <= block.last_turn]
            blocks.append(block_order(source, standing.rate))
        merge = merge_order(standing.in_force, standing.rate, self._limits)
        return tuple(blocks) if merge is None else (*blocks, merge)

    def assemble(
        self,
        system: SystemPart,
        history: Sequence[HistoryEntry],
        messages: Sequence[AnyMessage],
        *,
        tool_schema: str,
        note: str,
    ) -> ModelInput:
        """Builds `[all summaries] + [raw turns] + [open turn]`."""
        return assemble(system, history, messages, tool_schema=tool_schema, note=note)


def block_order(source: Sequence[ArchivedMessage], rate: float) -> FoldOrder:
    """Returns the fold of these messages of complete turns at this rate (seed 002's formula)."""
    chars = sum(entry.chars for entry in source)
    return FoldOrder(
        kind="interval",
        level=0,
        turns=tuple(dict.fromkeys(entry.turn for entry in source)),
        from_position=source[0].position,
        to_position=source[-1].position,
        messages=tuple(entry.message for entry in source),
        source_ids=tuple(str(entry.message.id) for entry in source),
        original_chars=chars,
        source_chars=chars,
        source_tokens=sum(entry.tokens for entry in source),
        target_chars=target_chars(chars, rate),
        rate=rate,
        covered_message_count=len(source),
        covered_token_count=sum(entry.tokens for entry in source),
    )
