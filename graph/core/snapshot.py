"""How a session stands when a strategy is asked what to fold; knows nothing of where it was read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from langchain_core.messages import AnyMessage

from graph.record import ArchivedMessage, Record, RecordKind

PromptStyle = Literal["plain", "merge", "rolling", "structured"]


@dataclass(frozen=True)
class SessionSnapshot:
    """What a strategy decides on.

    Attributes:
        complete_turns: How many turns of the session have their answer.
        active: The records in force, oldest first; together they cover the session's beginning without a gap.
        raw: The live messages that no record covers, oldest first; those of an open turn included.
        rate: The compression rate in force now.
        correction: What our estimates are multiplied by to meet the provider's usage; 1.0 while it reports none.
        restored_tokens: Our estimate for the context when a compaction was last undone, 0 if none was since the last
            one: until the context has grown past it, no compaction is made by itself.
        input_tokens: How large a whole input of the session's model may be; None if nobody asks for a bound.
    """

    complete_turns: int
    active: Sequence[Record]
    raw: Sequence[ArchivedMessage]
    rate: float
    correction: float = 1.0
    restored_tokens: int = 0
    input_tokens: int | None = None

    @property
    def covered_turn(self) -> int:
        """The last turn that is covered whole, or left behind by a reset; 0 if none is."""
        return self.raw[0].turn - 1 if self.raw else self.complete_turns

    @property
    def complete_raw(self) -> list[ArchivedMessage]:
        """The raw messages of turns that have their answer."""
        return [entry for entry in self.raw if entry.turn <= self.complete_turns]


def uncovered_ranges(records: Sequence[Record], begin: int) -> list[tuple[int, int | None]]:
    """Returns the ranges of archive positions that no record covers, in order; the last one has no end.

    Args:
        records: The active records, by position.
        begin: The position up to which a reset left everything behind, 0 for none.
    """
    ranges: list[tuple[int, int | None]] = []
    first = begin + 1
    for record in records:
        if first < record.from_position:
            ranges.append((first, record.from_position - 1))
        first = max(first, record.to_position + 1)
    return [*ranges, (first, None)]


@dataclass(frozen=True)
class FoldSpec:
    """A fold that is due: what it covers, what the summariser reads, and how long the result shall be.

    Attributes:
        turns: All turn numbers that it covers, its sources' included.
        messages: What the summariser reads: messages, or older summaries as messages.
        source_ids: Ids of the messages read, for the key; they change when a turn gets another attempt.
        original_chars: Characters of everything it stands for in the archive.
        source_chars: Characters of what the summariser reads; the result must be smaller.
        sources: Ids of the records whose place it takes.
        style: Which prompt asks for it.
        is_bound: Whether the target is an upper bound only, so that a shorter draft is as good.
        max_tokens: Hard bound on the result, our estimate; None for none.
        until_message_id: The last message that it covers; "" for the last one of `source_ids`.
        covered_message_count: How many live messages it covers, its sources' included.
        covered_token_count: Our estimate for these messages.
        version: Of a summary that grows by versions, else 1.
        context_messages: Of a compaction: messages in the context before it; 0 otherwise.
        context_messages_after: Of a compaction: messages in the context after it.
        context_tokens: Of a compaction: our estimate for the context before it.
        answer_tokens: How many tokens the summary model may write; None leaves it to the model.
        is_exact: Whether only a result for just these messages fits; else any finished one of its kind does that still
            covers a beginning without a gap, so that a slow summary isn't thrown away because the chat went on.
        is_waited: Whether a turn may wait for it (once, and for a bounded time).
    """

    kind: RecordKind
    level: int
    turns: tuple[int, ...]
    from_position: int
    to_position: int
    messages: tuple[AnyMessage, ...]
    source_ids: tuple[str, ...]
    original_chars: int
    source_chars: int
    source_tokens: int
    target_chars: int
    rate: float
    sources: tuple[str, ...] = ()
    style: PromptStyle = "plain"
    until_message_id: str = ""
    covered_message_count: int = 0
    covered_token_count: int = 0
    version: int = 1
    context_messages: int = 0
    context_messages_after: int = 0
    context_tokens: int = 0
    is_bound: bool = False
    max_tokens: int | None = None
    answer_tokens: int | None = None
    is_exact: bool = True
    is_waited: bool = True
