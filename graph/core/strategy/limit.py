"""The numbers of the strategies, each a setting; knows nothing of where they're set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The strategies' numbers with the defaults of the design.

    Attributes:
        records_budget_tokens: interval: merges begin when the records in force pass this.
        newest_records: interval: so many of the newest records are never merged.
        merged_together: interval: so many records of one level become one of the next.
        merged_tokens: interval: a merged record's hard bound.
        rolling_threshold_tokens: rolling: a summary is made when un-summarised messages pass this.
        rolling_recent_messages: rolling: so many messages go raw.
        rolling_sends_unsummarised: rolling: whether un-summarised messages beyond these are sent too.
        max_context_tokens: compaction: what counts as full.
        compaction_threshold: compaction: the share of it at which it's compacted.
        preserve_recent_messages: compaction: so many messages stay raw.
        enable_auto_compaction: compaction: whether it's done without being asked for.
        window_turns: window: so many complete turns go with the open one.
    """

    records_budget_tokens: int = 8_000
    newest_records: int = 16
    merged_together: int = 8
    merged_tokens: int = 600
    rolling_threshold_tokens: int = 8_000
    rolling_recent_messages: int = 6
    rolling_sends_unsummarised: bool = False
    max_context_tokens: int = 100_000
    compaction_threshold: float = 0.75
    preserve_recent_messages: int = 4
    enable_auto_compaction: bool = True
    window_turns: int = 10
