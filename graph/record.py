"""What a record and an archived message are, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_core.messages import AnyMessage

RecordKind = Literal["interval", "merge", "verbatim", "rolling", "compaction"]
RecordStatus = Literal["IN_PROGRESS", "COMPLETED", "FAILED"]
RecordOutcome = Literal["compressed", "shortened", "picked", "inflated", "empty", "failed"]


@dataclass(frozen=True)
class ArchivedMessage:
    """A message as it stands in the archive.

    Attributes:
        position: Its number in the session, from 1, never used again.
        turn: The turn it belongs to, from 1.
        attempt: The attempt of the turn that said it, from 1; a user's message belongs to every attempt.
        tokens: Our estimate for the message (text and tool calls).
    """

    position: int
    turn: int
    attempt: int
    message: AnyMessage
    chars: int
    tokens: int
    created_at: datetime


@dataclass(frozen=True)
class Record:
    """One fold: which turns it stands for, in which words, and what it cost to make.

    Attributes:
        thread_id: The session's id (the seed's key).
        turns: The covered turn numbers, derived from the range of positions.
        turn_length: How many turns; 3 for interval records.
        original_chars: Characters of text content in the range, tool results included.
        summary_chars: `len(summary)`.
        compression_rate: The rate in force when it was made, 0.1 to 0.5.
        from_position: First archive position covered.
        to_position: Last archive position covered (inclusive).
        source_key: Hash of all that the text depends on (`core.fold_spec.source_key`).
        source_tokens: Our estimate for the covered messages.
        summary_tokens: Our estimate for the summary with its label.
        input_tokens: Tokens read by the summary model, over all its tries.
        output_tokens: Tokens written by it.
        is_usage: Whether the provider reported these two (else they're our estimate).
        error_code: Why it failed, "" otherwise.
        seconds: How long the making took.
        covered_until_message_id: The last message it covers (seed 003's key).
        covered_message_count: How many live messages it covers, its sources' included.
        covered_token_count: Our estimate for these messages.
        context_messages: Messages in the context before a compaction; the summary before counts as one.
        context_messages_after: The same after it.
        context_tokens: Our estimate for the context before a compaction.
    """

    id: str
    thread_id: str
    turns: tuple[int, ...]
    turn_length: int
    original_chars: int
    summary_chars: int
    compression_rate: float
    summary: str
    kind: RecordKind
    level: int
    from_position: int
    to_position: int
    status: RecordStatus
    outcome: RecordOutcome | None
    created_at: datetime
    model: str
    target_chars: int
    source_key: str
    source_tokens: int
    summary_tokens: int
    input_tokens: int = 0
    output_tokens: int = 0
    is_usage: bool = False
    version: int = 1
    replaces: str | None = None
    sources: tuple[str, ...] = ()
    edited: bool = False
    error_code: str = ""
    seconds: float = 0.0
    covered_until_message_id: str = ""
    covered_message_count: int = 0
    covered_token_count: int = 0
    context_messages: int = 0
    context_messages_after: int = 0
    context_tokens: int = 0

    @property
    def source_count(self) -> int:
        """How many records it took the place of."""
        return len(self.sources)

    @property
    def context_tokens_after(self) -> int:
        """Of a compaction: our estimate for the context after it; 0 otherwise."""
        return self.context_tokens - self.source_tokens + self.summary_tokens if self.context_tokens else 0

    def with_changes(self, **changes: object) -> Record:
        """Returns a copy with these fields changed; the record itself never changes."""
        return replace(self, **changes)  # type: ignore[arg-type]  # the fields' types are checked by the stores' tests


class HistoryEntry(TypedDict):
    """An entry of `summary_history` in state: the seed's seven keys, and what the input needs. Plain JSON."""

    thread_id: str
    turns: list[int]
    turn_length: int
    original_chars: int
    summary_chars: int
    compression_rate: float
    summary: str
    id: str
    kind: str
    version: int
    to_position: int
    summary_tokens: int


def to_entry(record: Record) -> HistoryEntry:
    """Renders a record as the plain JSON that graph state may hold."""
    return HistoryEntry(
        thread_id=record.thread_id,
        turns=list(record.turns),
        turn_length=record.turn_length,
        original_chars=record.original_chars,
        summary_chars=record.summary_chars,
        compression_rate=record.compression_rate,
        summary=record.summary,
        id=record.id,
        kind=record.kind,
        version=record.version,
        to_position=record.to_position,
        summary_tokens=record.summary_tokens,
    )
