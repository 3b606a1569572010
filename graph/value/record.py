"""Records and archived messages as plain values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NotRequired, TypedDict, get_args

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

RecordKind = Literal["interval", "merge", "verbatim", "rolling", "compaction"]
RecordStatus = Literal["IN_PROGRESS", "COMPLETED", "FAILED"]
RecordOutcome = Literal["compressed", "shortened", "picked", "inflated", "empty", "failed"]


WordKind = Literal["negation", "rule", "preference", "choice", "person", "lifted"]


class LedgerLine(NamedTuple):
    """A sentence of the user that is kept word for word, with its turn.

    "lifted" tells that a sentence of this turn takes an earlier line back, whose id is the text.
    """

    turn: int
    kind: WordKind
    text: str

    @property
    def id(self) -> str:
        return f"{self.turn}-{sha256(self.text.encode()).hexdigest()[:12]}"


def is_line(fields: object) -> bool:
    """True for the fields of a line of this version: an import may have anything there."""
    return (
        isinstance(fields, list | tuple)
        and [type(field) for field in fields] == [int, str, str]
        and fields[1] in get_args(WordKind)
    )


@dataclass(frozen=True)
class ArchivedMessage:
    """An archived message; `position` counts from 1 within the session and is never reused.

    A user's message belongs to every attempt of its turn. `tokens` is our estimate for text and tool calls.
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
    """One fold: the covered turns, the text and the cost. A new field needs a column and a migration, too.

    Positions are inclusive. Tokens are our estimates, except `input_tokens` and `output_tokens` with `is_usage`.

    Attributes:
        thread_id: The session's id (the seed's key).
        turn_length: Number of covered turns; 3 for interval records, 6 for those of two blocks.
        original_chars: Characters of text in the covered messages, tool results included.
        compression_rate: The session's rate at the time, 0.1 to 0.5.
        version: From 1; a rolling summary counts up from the one before.
        replaces: Id of the version before, None for the first.
        source_key: Hash of everything that the text depends on (`fold.spec`).
        summary_tokens: With its label.
        input_tokens: Read by the summary model, over all drafts; `output_tokens` likewise.
        covered_until_message_id: Id of the last covered message (seed 003's key).
        covered_message_count: Number of live messages covered, sources' included.
        context_messages: Number of messages in the context before a compaction; a summary counts as one.
        kept_facts: Facts of the source in the summary, weightiest first; () without a comparison.
        wish: The user's instruction beside the length, "" for none.
        needed_rate: Share of the source that was asked for where it isn't the rate: more as it is full of facts, less
            as much of it is results of tools or pasted; 0 if the target was asked for.
        invented_facts: Numbers, dates, amounts and identifiers of the summary that nothing before it has.
        ledger: The user's rules, preferences, choices and people in the covered turns, word for word.
        days: The days of the covered messages in the user's zone, as `range_of` writes them; "" if they aren't known.
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
    kept_facts: tuple[str, ...] = ()
    missing_facts: tuple[str, ...] = ()
    wish: str = ""
    needed_rate: float = 0.0
    invented_facts: tuple[str, ...] = ()
    ledger: tuple[LedgerLine, ...] = ()
    days: str = ""

    @property
    def source_count(self) -> int:
        return len(self.sources)

    @property
    def is_undone(self) -> bool:
        return self.kind == "verbatim" and self.replaces is not None

    @property
    def context_tokens_after(self) -> int:
        return self.context_tokens - self.source_tokens + self.summary_tokens if self.context_tokens else 0

    def covers(self, other: Record) -> bool:
        return self.from_position <= other.from_position and other.to_position <= self.to_position

    def with_changes(self, **changes: object) -> Record:
        return replace(self, **changes)  # type: ignore[arg-type]  # the fields' types are checked by the stores' tests


class HistoryEntry(TypedDict):
    """An entry of `summary_history` in the graph's state, plain JSON: the seed's seven keys, then our own.

    `ledger` and `days`, which entries without them lack, have the fields of each line, and the days of the label.
    """

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
    ledger: NotRequired[list[list[Any]]]
    days: NotRequired[str]


def to_entry(record: Record) -> HistoryEntry:
    entry = HistoryEntry(
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
    if record.ledger:
        entry["ledger"] = [list(line) for line in record.ledger]
    if record.days:
        entry["days"] = record.days
    return entry
