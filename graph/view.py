"""What the page may know of a session, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

TurnStatus = Literal["running", "finished", "failed", "stopped"]
StepStatus = Literal["running", "done", "error"]
Phase = Literal["folding", "waiting", "tool", "answering"]
TokenSource = Literal["estimate", "usage"]
ContextNotice = Literal["", "nearly_full", "full"]


@dataclass(frozen=True)
class SessionItem:
    """A session as the list shows it; newest first. `updated_at` is UTC."""

    session_id: str
    title: str
    updated_at: datetime
    turn_count: int
    is_running: bool


@dataclass(frozen=True)
class SessionView:
    """A session's own settings and what the page needs to say about it.

    Attributes:
        fold_failures: How many times in a row the oldest due block couldn't be folded (0: none).
        fold_error_code: The error code of the newest of these failures, or "".
        unsent_messages: Messages that are neither summarised nor sent (strategy "rolling"); they're in the archive.
        context_notice: With automatic compaction off: "nearly_full" from 80 %, "full" from 100 %; else "".
    """

    session_id: str
    title: str
    compression_rate: float
    strategy: str
    model: str
    turn_count: int
    is_running: bool
    fold_failures: int
    fold_error_code: str
    unsent_messages: int = 0
    context_notice: ContextNotice = ""


@dataclass(frozen=True)
class ToolStep:
    """One tool call of a turn; `arguments` is JSON text; `seconds` is None while it runs."""

    call_id: str
    name: str
    arguments: str
    result: str
    status: StepStatus
    seconds: float | None


@dataclass(frozen=True)
class TurnView:
    """A turn as the transcript shows it: its last attempt.

    Attributes:
        answer_text: The answer, the partial one if it was stopped, "" if there is none.
        error_code: Why it failed (an error's `code`), "" unless `status` is "failed".
        steps: The tool calls in order.
        is_last: Whether Retry and Regenerate are possible.
        is_cut: Whether the model stopped in the middle of the answer, at its limit of length.
    """

    number: int
    attempt: int
    status: TurnStatus
    user_text: str
    answer_text: str
    steps: tuple[ToolStep, ...]
    error_code: str
    error_detail: str
    started_at: datetime
    model: str
    is_last: bool
    is_cut: bool = False


@dataclass(frozen=True)
class Transcript:
    """The newest turns, oldest first; `earlier_count` more stand before them."""

    turns: tuple[TurnView, ...]
    earlier_count: int


@dataclass(frozen=True)
class LiveTurn:
    """A running turn as it stands now; the page polls it.

    Attributes:
        text: The answer streamed so far.
        phase_turns: With phase "folding": the turns that are being folded.
        is_here: Whether this process runs it (else text comes from the row and lags by about a second).
    """

    number: int
    attempt: int
    phase: Phase
    phase_turns: tuple[int, ...]
    text: str
    steps: tuple[ToolStep, ...]
    stop_requested: bool
    is_here: bool


@dataclass(frozen=True)
class Statistics:
    """The sums under the panel, over the records in force; fold costs are over every record made since a reset.

    Attributes:
        saved_percent: `round(100 * (1 - summary_chars / original_chars))`; 0 without records; may be negative.
        folded_turn_count: Turns that a record stands for, each counted once.
        unsent_tokens: Full history since a reset minus sent, summed over the answered calls since (estimates).
        fold_tokens: Input plus output tokens of making every record, thrown-away ones included.
    """

    record_count: int
    folded_turn_count: int
    original_chars: int
    summary_chars: int
    saved_percent: int
    unsent_tokens: int
    fold_tokens: int


@dataclass(frozen=True)
class ChartPoint:
    """Tokens of one turn's last answered call against the full history since a reset, both estimates.

    Attributes:
        has_fold: Whether its input was the first to hold one of the records in force.
    """

    turn: int
    sent_tokens: int
    full_tokens: int
    has_fold: bool


@dataclass(frozen=True)
class Gauge:
    """How full the context window was at the last model call.

    Attributes:
        source: "usage" if the provider reported the number, "estimate" if we counted it.
    """

    sent_tokens: int
    window_tokens: int
    source: TokenSource


@dataclass(frozen=True)
class ModelOption:
    """A model that the endpoint offers; the embedded one has `is_offline`."""

    name: str
    is_offline: bool


@dataclass(frozen=True)
class TurnOptions:
    """How the next turn shall run; None leaves the session's own setting (or the server's default) as it is.

    Attributes:
        time_zone: IANA name of the user's zone, for tools; "" means UTC.
    """

    compression_rate: float | None = None
    strategy: str | None = None
    model: str | None = None
    time_zone: str = ""
