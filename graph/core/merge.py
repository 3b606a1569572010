"""When old interval records become one of the next level, so that the input stays bounded; sends nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from langchain_core.messages import HumanMessage

from graph.core.adopt import label_of
from graph.core.record import Record
from graph.core.standing import FoldOrder
from graph.core.strategy.limit import Limits

# Short records would else make merged ones of nearly their own size, and the input would grow by levels.
_MERGED_SHARE: Final = 0.28
_DENSITY_MARGIN: Final = 0.95


def merge_order(in_force: Sequence[Record], rate: float, limits: Limits) -> FoldOrder | None:
    """Returns the one merge that is due: the oldest 8 records of one level, or None.

    The newest 16 records are never merged. A turn is re-summarised once a level, so at most log8(records) times.

    Args:
        in_force: The records in force, oldest first.
        rate: The compression rate in force now; the merge only keeps it, its length comes from the budget.
        limits: The budget and how many become one.
    """
    if sum(record.summary_tokens for record in in_force) <= limits.records_budget_tokens:
        return None
    old = in_force[: max(0, len(in_force) - limits.newest_records)]
    runs = [list(run) for _, run in groupby(old, key=lambda record: record.level)]
    # The lowest level first: its records are the largest and the most.
    due = min((run for run in runs if len(run) >= limits.merged_together), key=lambda run: run[0].level, default=None)
    return None if due is None else _order(due[: limits.merged_together], rate, limits.merged_tokens)


def _order(sources: Sequence[Record], rate: float, merged_tokens: int) -> FoldOrder:
    texts = [label_of(record.turns) + record.summary for record in sources]
    chars = sum(len(text) for text in texts)
    tokens = sum(record.summary_tokens for record in sources)
    max_tokens = min(merged_tokens, max(1, int(tokens * _MERGED_SHARE)))
    return FoldOrder(
        kind="merge",
        level=sources[0].level + 1,
        turns=tuple(turn for record in sources for turn in record.turns),
        from_position=sources[0].from_position,
        to_position=sources[-1].to_position,
        messages=tuple(HumanMessage(text) for text in texts),
        source_ids=tuple(record.id for record in sources),
        original_chars=sum(record.original_chars for record in sources),
        source_chars=chars,
        source_tokens=tokens,
        target_chars=max(1, int(max_tokens * _DENSITY_MARGIN * chars / max(1, tokens))),
        rate=rate,
        sources=tuple(record.id for record in sources),
        style="merge",
        until_message_id=sources[-1].covered_until_message_id,
        covered_message_count=sum(record.covered_message_count for record in sources),
        covered_token_count=sum(record.covered_token_count for record in sources),
        is_bound=True,
        max_tokens=max_tokens,
        is_waited=False,
    )
