"""The frozen values that the service returns: turns, sessions, costs, pins, programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, NamedTuple

from pydantic import SecretStr

from graph.value.client import ClientOptions
from graph.value.error import TurnfoldError

# "requires_action": a program must answer the calls of its own tools.
TurnStatus = Literal["running", "requires_action", "finished", "failed", "stopped"]
StepStatus = Literal["running", "done", "error"]
Phase = Literal["folding", "waiting", "tool", "answering"]
TokenSource = Literal["estimate", "usage"]
ContextNotice = Literal["", "nearly_full", "full"]
Rating = Literal[-1, 0, 1]


class ExportSize(NamedTuple):
    """How many characters an export has, all of them ASCII, and how many without its images."""

    whole: int
    without_images: int


@dataclass(frozen=True)
class SessionItem:
    """A session as the list shows it. `updated_at` is UTC.

    Attributes:
        found_turn: The turn in which a search found its words; None without a search, or if the title has them.
        found_text: The sentence there that has most of them, cut to a line; "" if `found_turn` is None.
        client: The name of the program that began it, "" for the page.
        is_pinned: Whether it stands before those that aren't.
    """

    session_id: str
    title: str
    updated_at: datetime
    turn_count: int
    is_running: bool
    found_turn: int | None = None
    found_text: str = ""
    client: str = ""
    is_pinned: bool = False


@dataclass(frozen=True)
class SessionView:
    """A session's settings and state.

    Attributes:
        fold_failures: How many calls for the oldest due block failed in a row.
        fold_error_code: The error code of the newest of these failures, or "".
        unsent_messages: Messages that are neither summarised nor sent (strategy "rolling" only).
        context_notice: Set with automatic compaction off: "nearly_full" above 80 % of the limit, "full" above it.
        project_root: The folder of its project, "" for none.
        has_memory: Whether it starts with the project's memory.
        project_problem: Why the newest turn had not all of its project's context, or couldn't be noted there; None if
            nothing went wrong.
        client: The name of the program that began it, "" for the page.
        is_pinned: Whether the list has it before those that aren't.
        forked_from: The owner's session that it is a branch of; "" for none, or one that is gone.
        forked_after: The last turn that it has from there; 0 without one.
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
    project_root: str = ""
    has_memory: bool = True
    project_problem: TurnfoldError | None = None
    client: str = ""
    is_pinned: bool = False
    forked_from: str = ""
    forked_after: int = 0


@dataclass(frozen=True)
class ToolStep:
    """One tool call.

    Attributes:
        arguments: JSON text.
        seconds: None while the call runs.
        turns: The earlier turns that the result of `recall` shows, in order; None for any other tool, and before it
            has a result.
    """

    call_id: str
    name: str
    arguments: str
    result: str
    status: StepStatus
    seconds: float | None
    turns: tuple[int, ...] | None = None


@dataclass(frozen=True)
class TurnView:
    """A turn as the transcript shows it: its last attempt.

    Attributes:
        answer_text: The answer; partial if the turn was stopped, "" if there is none.
        error_code: The `code` of the error that ended it, "" unless `status` is "failed".
        is_last: True for the session's newest turn, which alone can be run again in its place.
        is_cut: True if the model stopped mid-answer at its length limit.
        client: The name of the program that asked, "" for the page.
        user_message_id: By which the question can be pinned.
        answer_message_id: By which the answer can be pinned, "" while there is none.
        rating: 1 if the user found the answer good, -1 for bad, 0 without a word.
    """

    number: int
    attempt: int
    status: TurnStatus
    user_text: str
    answer_text: str
    steps: tuple[ToolStep, ...]
    error_code: str
    error_detail: str
    model: str
    is_last: bool
    is_cut: bool = False
    client: str = ""
    user_message_id: str = ""
    answer_message_id: str = ""
    rating: Rating = 0


@dataclass(frozen=True)
class Transcript:
    """The newest turns, oldest first.

    Attributes:
        earlier_count: How many earlier turns are left out.
        reset_after: The turns behind which the context was emptied: what follows was answered without what precedes.
        can_undo_reset: Whether the last of these resets can be undone.
    """

    turns: tuple[TurnView, ...]
    earlier_count: int
    reset_after: tuple[int, ...] = ()
    can_undo_reset: bool = False


class BegunTurn(NamedTuple):
    """A turn that runs now: in the session that was asked, or in a new branch of it."""

    session_id: str
    number: int


@dataclass(frozen=True)
class LiveTurn:
    """Progress of a running turn, for the page to poll.

    Attributes:
        text: The answer so far; up to a second old if another process runs the turn.
        phase_turns: With phase "folding", the turns that are being folded.
    """

    number: int
    attempt: int
    phase: Phase
    phase_turns: tuple[int, ...]
    text: str
    steps: tuple[ToolStep, ...]
    stop_requested: bool


@dataclass(frozen=True)
class Statistics:
    """Totals over a session's active records, and token totals since the last reset.

    Attributes:
        folded_turn_count: Turns that the records cover, each counted once.
        saved_percent: `round(100 * (1 - summary_chars / original_chars))`; 0 without records; may be negative.
        unsent_tokens: Full history minus what was sent, summed over the answered calls (estimates).
        fold_tokens: Input plus output tokens of every fold, discarded and failed ones included.
        client_changes: How often a program changed its instructions after something had been sent behind them.
        lost_tokens: Our estimate for what had been sent behind them then, which the provider had to read anew.
    """

    record_count: int
    folded_turn_count: int
    original_chars: int
    summary_chars: int
    saved_percent: int
    unsent_tokens: int
    fold_tokens: int
    client_changes: int = 0
    lost_tokens: int = 0


@dataclass(frozen=True)
class NextFold:
    """What of a session isn't folded yet, and when its strategy folds it.

    Attributes:
        turns: The turns of the next block, those still to come included; () if the strategy doesn't fold by turns.
        turns_left: How many of them are still to be answered.
        original_chars: Characters of what was said in them so far.
        summary_chars: The length that a summary of these is asked for at the current rate; `original_chars` if they
            are too short for one and stand word for word.
        tokens: What counts towards `threshold_tokens` (an estimate).
        threshold_tokens: The tokens at which the strategy folds; 0 if it doesn't fold by tokens.
        sent_turns: The complete turns that are sent if the strategy makes no summaries, else None.
        is_due: Whether a fold is due: it is being made, or was made or failed since the last turn began.
        is_reset: Whether the context begins after a reset.
    """

    turns: tuple[int, ...] = ()
    turns_left: int = 0
    original_chars: int = 0
    summary_chars: int = 0
    tokens: int = 0
    threshold_tokens: int = 0
    sent_turns: int | None = None
    is_due: bool = False
    is_reset: bool = False


@dataclass(frozen=True)
class ChartPoint:
    """Tokens that a turn's last answered call sent, and tokens of the full history since the last reset (estimates).

    Attributes:
        has_fold: True if its input was the first that contained one of the active records.
    """

    turn: int
    sent_tokens: int
    full_tokens: int
    has_fold: bool


@dataclass(frozen=True)
class Gauge:
    """How full the context window was at the last model call.

    Attributes:
        source: "usage" if the provider reported `sent_tokens`, "estimate" if we counted them.
    """

    sent_tokens: int
    window_tokens: int
    source: TokenSource


@dataclass(frozen=True)
class ModelOption:
    """A model that a session can choose; `is_offline` marks the embedded one."""

    name: str
    is_offline: bool


@dataclass(frozen=True)
class TurnOptions:
    """Settings for the next turn; None keeps the session's setting.

    Attributes:
        project_root: A folder of `PROJECT_ROOTS` or below one; "" for no project.
        has_memory: False starts the session without the project's memory.
        time_zone: IANA name of the user's time zone, for tools; "" means UTC.
        context: What this request says of its own context: `currentFile`, `selection`.
        client: What the program that sends the turn adds to it; None for the page.
    """

    compression_rate: float | None = None
    strategy: str | None = None
    model: str | None = None
    project_root: str | None = None
    has_memory: bool | None = None
    time_zone: str = ""
    context: Mapping[str, str] = field(default_factory=dict)
    client: ClientOptions | None = None

    @property
    def client_name(self) -> str:
        """The name of the program that sends the turn, "" for the page."""
        return self.client.name if self.client else ""


@dataclass(frozen=True)
class Money:
    """An amount in the currency of the price list.

    Attributes:
        is_estimate: Whether any of its tokens were counted by us, or weren't known to be cached.
    """

    amount: Decimal
    is_estimate: bool


@dataclass(frozen=True)
class CostView:
    """What the model calls of one session, or of all of an owner's, cost.

    Attributes:
        currency: Of the amounts, as it is shown.
        total: All calls of models that have a price, those of summaries too.
        summaries: Those of summaries, discarded and failed ones too.
        unpriced_calls: Calls of models without a price, which are in neither amount; a summary counts as one call.
    """

    currency: str
    total: Money
    summaries: Money
    unpriced_calls: int


@dataclass(frozen=True)
class SavingsMoney:
    """What folding has saved in a session since its last reset, in money; all of it is an estimate.

    Attributes:
        currency: Of the amounts, as it is shown.
        unsent: What the tokens that weren't sent would have cost: where the provider reads from its cache, the cached
            price, as nearly all of them would have been read there.
        folds: What the summaries cost.
        lost: What was paid more for tokens that could no longer be read from the cache.
    """

    currency: str
    unsent: Decimal
    folds: Decimal
    lost: Decimal

    @property
    def net(self) -> Decimal:
        """What is left of what wasn't paid; negative if folding has cost more."""
        return self.unsent - self.folds - self.lost


@dataclass(frozen=True)
class PinnedMessage:
    """A message that is always sent word for word.

    Attributes:
        tokens: Our estimate for it with its label.
        is_sent: Whether the session's model has room for it: more may be pinned than another model takes.
    """

    message_id: str
    turn: int
    tokens: int
    is_sent: bool = True


@dataclass(frozen=True)
class PinView:
    """The pinned messages of a session, oldest first, and how much room there is for them.

    Attributes:
        budget_tokens: What they may take in all.
        used_tokens: What they take.
    """

    messages: tuple[PinnedMessage, ...]
    budget_tokens: int
    used_tokens: int


@dataclass(frozen=True)
class ProgramToken:
    """A token by which a program of the owner is let in, without the token itself. Times are UTC.

    Attributes:
        id: Names it to `withdraw`; it lets nobody in.
        name: The program's name.
        tools: The names of the server's tools that it may use; None for all.
        last_used_on: The last day with a request; None if there was none yet.
    """

    id: str
    name: str
    tools: frozenset[str] | None
    created_at: datetime
    last_used_on: date | None = None


@dataclass(frozen=True)
class MadeToken:
    """A new token; `secret` is told this once and kept nowhere."""

    secret: SecretStr
    shown: ProgramToken
