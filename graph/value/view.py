"""Frozen values that the service returns: turns, inputs, sessions, costs, pins, programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Final, Literal, NamedTuple, get_args

from pydantic import SecretStr

from graph.value.client import ClientOptions
from graph.value.error import TurnfoldError
from graph.value.event import CallRetried, PendingCall
from graph.value.mcp import Failure, UnusableTool
from graph.value.record import Record, WordKind

# How far ahead the turn from which folding pays is looked for.
FORECAST_TURNS: Final = 200
MOST_INSTRUCTIONS_CHARS: Final = 2_000
# Stands where a model's name does in an example chat: no model was called.
EXAMPLE_MODEL: Final = "example"
# "requires_action": a program must answer the calls of its own tools. "asking": the user must allow calls or not.
TurnStatus = Literal["running", "requires_action", "asking", "finished", "failed", "stopped"]
# "declined": the user didn't allow the call, so it wasn't made.
StepStatus = Literal["running", "done", "error", "declined"]
Phase = Literal["folding", "waiting", "reading", "thinking", "tool", "answering"]
ContextNotice = Literal["", "nearly_full", "full"]
Thinking = Literal["", "off", "low", "high"]
# "due": each block as soon as it is due. "pays": two blocks in one call, or one where there is no room for it.
FoldWhen = Literal["due", "pays"]


class ExportSize(NamedTuple):
    """Characters of an export, all of them ASCII, and how many of them are images, and the whole of long texts."""

    whole: int
    images: int
    long_texts: int


class MissingFact(NamedTuple):
    """A fact that a summary lacks, and the sentence that has it, in a message of "human" or "ai"; "" if none has."""

    text: str
    clause: str
    turn: int = 0
    role: str = ""
    message_id: str = ""


@dataclass(frozen=True)
class SessionItem:
    """A session in the list. `updated_at` is UTC.

    `found_count` turns have the searched words. `found_turn` is the newest of them, and `found_text` its best sentence,
    cut to a line; None and "" without a search, or if the title matches and no more than one turn does. `client` is ""
    for the page. `forked_from` is the session that this is a branch of, "" for none, even if it was deleted.
    `is_asking` is True while its last turn waits for the user's word on tool calls.
    """

    session_id: str
    title: str
    updated_at: datetime
    turn_count: int
    is_running: bool
    found_turn: int | None = None
    found_text: str = ""
    found_count: int = 0
    client: str = ""
    is_pinned: bool = False
    forked_from: str = ""
    project_root: str = ""
    is_asking: bool = False


@dataclass(frozen=True)
class SessionView:
    """A session's settings and state.

    Attributes:
        fold_failures: Consecutive failed calls for the oldest due block.
        unsent_messages: Messages neither summarised nor sent (strategy "rolling" only).
        context_notice: With automatic compaction off: "nearly_full" above 80 % of the limit, "full" above the limit.
        project_problem: Why the newest turn lacked a part of the project's context or couldn't be noted there, or None.
        client: The name of the program that started the session, "" for the page.
        forked_from: The owner's session that this is a branch of; "" for none, or one since deleted.
        forked_after: The last turn shared with it; 0 without one.
        thinking: How much the model is to think, "" for its own measure.
        is_asking: True while the newest turn waits for the user's word on tool calls.
        brought_instructions: What the chat's file would have the model told, as long as the user hasn't decided on it.
        fold_when: When due blocks are folded (strategy "interval" only).
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
    thinking: Thinking = ""
    is_asking: bool = False
    fold_when: FoldWhen = "due"
    brought_instructions: str = ""

    @property
    def can_stop(self) -> bool:
        """Returns whether Stop ends something: a turn that is answered, or one that waits for the user's word."""
        return self.is_running or self.is_asking


@dataclass(frozen=True)
class ToolStep:
    """One tool call; `arguments` is JSON, and `seconds` is None while it runs.

    `turns` are the earlier turns in a result of `recall`, None for other tools. `server` and `title` are those of an
    MCP tool, "" for other tools; `progress` is what it told last while it runs; `images` are references to pictures of
    its result, by which `turns.image` finds them; `attempt` is the earlier one that made the call, 0 for its own.
    """

    call_id: str
    name: str
    arguments: str
    result: str
    status: StepStatus
    seconds: float | None
    turns: tuple[int, ...] | None = None
    server: str = ""
    title: str = ""
    progress: str = ""
    images: tuple[str, ...] = ()
    attempt: int = 0


class NamedImage(NamedTuple):
    """An image of a question: its name, "" for a program's, and its URL.

    The URL of a kept image is its reference, by which `turns.image` finds it.
    """

    name: str
    url: str


@dataclass(frozen=True)
class TurnView:
    """The last attempt of a turn, as the transcript shows it.

    Attributes:
        answer_text: Partial if the turn was stopped, "" for none.
        error_code: The `code` of the error, "" unless `status` is "failed".
        is_last: True for the session's newest turn, which alone can be regenerated in place.
        is_cut: True if the model stopped mid-answer at its length limit, or was stopped because it repeated itself.
        is_endless: True if it was stopped because it repeated itself.
        is_edited: True if the user wrote this version of the answer.
        client: The name of the program that sent the turn, "" for the page.
        answer_message_id: "" while there is no answer.
        thought_seconds: How long the model thought, 0 for no thoughts; `Turns.thoughts` returns them.
        started_at: Start of the attempt, in UTC; `seconds` is how long it took, 0 while it runs.
        input_tokens: Of all its answered calls, 0 for none; with `output_tokens`.
        is_usage: True if the provider reported all of them; else they are our estimate in whole or in part.
        attempts: The numbers of those that have an answer, this one included; () if there is no other.
        images: Those of the question, in order; each has its line at the end of `user_text`.
        pending: The calls that wait for the user's word, while `status` is "asking"; they aren't among `steps`.
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
    is_endless: bool = False
    is_edited: bool = False
    client: str = ""
    user_message_id: str = ""
    answer_message_id: str = ""
    thought_seconds: float = 0.0
    started_at: datetime | None = None
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    is_usage: bool = False
    images: tuple[NamedImage, ...] = ()
    attempts: tuple[int, ...] = ()
    pending: tuple[PendingCall, ...] = ()


@dataclass(frozen=True)
class Transcript:
    """The newest turns, oldest first; `earlier_count` earlier ones are left out.

    `reset_after` has the turns followed by a reset: later turns were answered without them and those before.
    `previous_at` is when the last turn that is left out began.
    """

    turns: tuple[TurnView, ...]
    earlier_count: int
    reset_after: tuple[int, ...] = ()
    can_undo_reset: bool = False
    previous_at: datetime | None = None


class Place(NamedTuple):
    """A turn to jump to, by a line of it, and how often its texts have the searched words."""

    turn: int
    text: str
    started_at: datetime
    hits: int = 1


class Outline(NamedTuple):
    """A chat's places in order; `marks` are the searched words as its texts have them."""

    places: tuple[Place, ...]
    marks: tuple[str, ...] = ()


class Passages(NamedTuple):
    """Earlier turns as the tool `recall` shows them to a model; `is_error` if it was asked for what can't be there."""

    text: str
    turns: tuple[int, ...]
    is_error: bool = False


class StartedTurn(NamedTuple):
    """A turn just started, in the session or in a new branch."""

    session_id: str
    number: int


@dataclass(frozen=True)
class LiveTurn:
    """Progress of a running turn, polled by the page; `text` is up to a second old if another process runs the turn.

    Attributes:
        phase_turns: In phase "folding", the turns being folded.
        phase_percent: In phase "reading", how much of the input the model's server has read.
        phase_since: When the phase began, or the wait for a retry, in this process's monotonic time; 0 if unknown.
        retry: In phase "waiting", the attempt that is waited for, None for the first.
        thoughts: The model's thoughts so far, which are no part of the answer.
        thought_seconds: How long, without the thoughts of phase "thinking".
        thinking_since: In phase "thinking", when it began, in this process's monotonic time.
    """

    number: int
    attempt: int
    phase: Phase
    phase_turns: tuple[int, ...]
    text: str
    steps: tuple[ToolStep, ...]
    stop_requested: bool
    phase_percent: int = 0
    phase_since: float = 0.0
    retry: CallRetried | None = None
    thoughts: str = ""
    thought_seconds: float = 0.0
    thinking_since: float = 0.0


@dataclass(frozen=True)
class Statistics:
    """Totals over a session's active records, and token totals since the last reset.

    Attributes:
        folded_turn_count: Covered turns, each counted once.
        saved_percent: `round(100 * (1 - summary_chars / original_chars))`; 0 without records; may be negative.
        unsent_tokens: Full history minus sent input, summed over the answered calls (estimates).
        fold_tokens: Input plus output tokens of every fold, discarded and failed ones included.
        client_changes: How often a program changed its system messages with a sent history behind them.
        lost_tokens: Our estimate for these histories, which the provider couldn't read from its cache.
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
class PastStatistics(Statistics):
    """Totals of what came before the last reset; `is_fold_usage` is False if some of `fold_tokens` were estimated."""

    is_fold_usage: bool = True


@dataclass(frozen=True)
class NextFold:
    """The unfolded part of a session, that of `ready` folds left out, and when the strategy folds it.

    Attributes:
        turns: Turns of the next block, future ones included; () if the strategy doesn't fold by turns.
        turns_left: How many of them have no answer yet.
        summary_chars: Target length at the current rate; `original_chars` if too short for a summary.
        threshold_tokens: The `tokens` at which the strategy folds; 0 if it doesn't fold by tokens.
        sent_turns: Number of complete turns sent if the strategy makes no summaries, else None.
        is_due: True if a fold is due: in progress, or made or failed since the last turn started.
        is_making: True if a due fold is in progress.
        is_held: True if it waits until turns that follow one another pause, as the endpoint has one slot.
        ready: The finished folds that the next turn will use, oldest first, without merges.
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
    is_making: bool = False
    is_held: bool = False
    ready: tuple[Record, ...] = ()

    @property
    def stands_verbatim(self) -> bool:
        return 0 < self.original_chars == self.summary_chars


@dataclass(frozen=True)
class ChartPoint:
    """Estimated tokens of a turn's last answered call and of the full history since the last reset.

    `has_fold` marks the first input with an active record.
    """

    turn: int
    sent_tokens: int
    full_tokens: int
    has_fold: bool


@dataclass(frozen=True)
class Gauge:
    """Fill level of the context window at the next model call.

    Attributes:
        sent_tokens: Estimate of the input, without the question.
        is_guess: True if nobody tells the window of the model.
        reported_tokens: The input of the last call as the provider reported it, None without a report.
    """

    sent_tokens: int
    window_tokens: int
    is_guess: bool = False
    reported_tokens: int | None = None


@dataclass(frozen=True)
class ModelOption:
    """A model to choose.

    `has_tools` is False if it is known to take none, so that recall and clock are off; `thinks` is True if it is known
    to think as much as a session chooses; `takes_images` is None if it isn't known.
    """

    name: str
    is_offline: bool
    has_tools: bool = True
    thinks: bool = False
    takes_images: bool | None = None


class EndpointProblem(NamedTuple):
    """Why the models of an endpoint aren't known; `address` has no credentials."""

    address: str
    error_code: str


@dataclass(frozen=True)
class TurnOptions:
    """Settings for the next turn; None keeps the session's setting.

    Attributes:
        project_root: A folder of `PROJECT_ROOTS` or below one; "" for no project.
        fold_when: When due blocks are folded (strategy "interval" only).
        thinking: How much the model is to think, where it can be chosen; "" for its own measure.
        instructions: The user's own for this chat, `MOST_INSTRUCTIONS_CHARS` at most.
        time_zone: IANA name of the user's time zone, for tools; "" means UTC.
        context: Context of this request: `currentFile`, `selection`.
        mcp_tools: Offered names of the MCP tools of this chat, as `mcp.choose` takes them.
        client: The program's part of the request; None for the page.
    """

    compression_rate: float | None = None
    strategy: str | None = None
    fold_when: FoldWhen | None = None
    model: str | None = None
    project_root: str | None = None
    has_memory: bool | None = None
    thinking: Thinking | None = None
    instructions: str | None = None
    mcp_tools: tuple[str, ...] | None = None
    time_zone: str = ""
    context: Mapping[str, str] = field(default_factory=dict)
    client: ClientOptions | None = None

    @property
    def client_name(self) -> str:
        return self.client.name if self.client else ""


Word = Literal["once", "always", "no"]
McpState = Literal["idle", "starting", "ready", "failed"]


class McpTool(NamedTuple):
    """A tool of an MCP server, to be chosen for a chat.

    Attributes:
        name: Its name at the server.
        offered: Its name for the model; `McpChat.choose` takes it.
        tokens: Our estimate of its schema, which every request has while it is chosen.
        asks: True if each call waits for the user's word, unless it was given for all of the chat.
        is_on: True if it is chosen and can be called.
        is_changed: True if it is chosen, but its server has changed it since: it isn't called until it is chosen again.
        is_allowed: True if the user has allowed all of its calls in this chat.
    """

    name: str
    offered: str
    title: str
    description: str
    tokens: int
    asks: bool
    is_on: bool = False
    is_changed: bool = False
    is_allowed: bool = False


class McpServer(NamedTuple):
    """An MCP server and its tools; while it isn't ready, only those that are chosen.

    `unusable` are the first tools that it has and nobody can choose.
    """

    name: str
    state: McpState
    tools: tuple[McpTool, ...]
    failure: Failure | None = None
    unusable: tuple[UnusableTool, ...] = ()


@dataclass(frozen=True)
class McpChoice:
    """The MCP servers and tools to choose from for a chat.

    Attributes:
        count: How many tools are chosen.
        tokens: Our estimate of all chosen schemas.
        is_too_much: True for over 40 tools, or over 8 % of the model's window.
    """

    servers: tuple[McpServer, ...]
    count: int = 0
    tokens: int = 0
    is_too_much: bool = False

    @property
    def chosen(self) -> tuple[str, ...]:
        """The offered names of the chosen tools."""
        return tuple(tool.offered for server in self.servers for tool in server.tools if tool.is_on)


@dataclass(frozen=True)
class Money:
    """An amount in the price list's currency; an estimate if tokens or their cached share weren't reported."""

    amount: Decimal
    is_estimate: bool


@dataclass(frozen=True)
class CostView:
    """Cost of the model calls of a session, or of all of an owner's sessions.

    `summaries` includes discarded and failed ones; neither amount includes the `unpriced_calls`.
    """

    currency: str
    total: Money
    summaries: Money
    unpriced_calls: int


@dataclass(frozen=True)
class SavingsMoney:
    """Estimated money saved by folding in a session since the last reset.

    `unsent` uses the cached price if the provider has a cache, which would have held nearly all of these tokens;
    `lost` is the surcharge for tokens no longer read from the cache.
    """

    currency: str
    unsent: Decimal
    folds: Decimal
    lost: Decimal

    @property
    def net(self) -> Decimal:
        return self.unsent - self.folds - self.lost


@dataclass(frozen=True)
class PinnedMessage:
    """A message always sent verbatim, unless the model has no room (`is_sent`).

    `tokens` include the label; `title` is the message's first words.
    """

    message_id: str
    turn: int
    tokens: int
    title: str
    is_sent: bool = True


@dataclass(frozen=True)
class PinView:
    """The pinned messages of a session, oldest first, and the token budget for them."""

    messages: tuple[PinnedMessage, ...]
    budget_tokens: int
    used_tokens: int


FactClass = Literal["rule", "decision", "preference", "number", "date", "name", "path"]
FACT_CLASSES: Final[tuple[FactClass, ...]] = get_args(FactClass)


class FactCount(NamedTuple):
    """How many of the facts of a class that were said summaries have or the ledger keeps, of how many."""

    name: FactClass
    kept: int
    total: int


@dataclass(frozen=True)
class KeptLine:
    """A line of the ledger: a sentence of the user that is kept word for word.

    Attributes:
        state: "sent"; "no_room", then the summaries say it; "struck" out by the user; "taken_back" by a later sentence.
    """

    id: str
    turn: int
    kind: WordKind
    text: str
    state: Literal["sent", "no_room", "struck", "taken_back"]


@dataclass(frozen=True)
class LedgerView:
    """The user's rules, choices, preferences and people of folded turns, oldest first, and the room for them."""

    lines: tuple[KeptLine, ...]
    budget_tokens: int
    used_tokens: int


@dataclass(frozen=True)
class ProgramToken:
    """An API token of an owner's program, without the secret; `tools` is None for all server tools. Times are UTC.

    `is_personal` is true if one person uses the token, false if several share it.
    """

    id: str
    name: str
    tools: frozenset[str] | None
    created_at: datetime
    last_used_on: date | None = None
    is_personal: bool = True


@dataclass(frozen=True)
class MadeToken:
    """A new token; `secret` is returned only here and isn't stored."""

    secret: SecretStr
    shown: ProgramToken


BlockRole = Literal["", "system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class ToolSchema:
    """A tool's definition as sent to a model; `text` is JSON."""

    name: str
    text: str


@dataclass(frozen=True)
class InputBlock:
    """One block of a model's input, in the order sent.

    Attributes:
        kind: "system", "context", "record", "pin", "message", "tools" or "note"; "shortened" or "cut" if reduced for
            this call; "call" for the arguments of a tool that called a model itself.
        tokens: Our estimate.
        text: None if not stored, as for tools.
        turns: The turns that a record covers, or the turn of a message; () for other blocks.
        is_cacheable: True if the block is part of the prefix shared with the call before.
        tools: () if they aren't those of this version of the server.
    """

    kind: str
    id: str
    version: int
    role: BlockRole
    tokens: int
    text: str | None
    turns: tuple[int, ...] = ()
    is_cacheable: bool = False
    tools: tuple[ToolSchema, ...] = ()


@dataclass(frozen=True)
class CallInput:
    """Rebuilt input of one model call, and its cost; times are UTC.

    Attributes:
        ordinal: Number of the call within the attempt, from 1.
        kind: "answer" for a call of the chat, "reasoning" for a call by the tool of that name.
        is_verified: True if the rebuilt input matches the stored hash.
        sent_tokens: Our estimate for the input.
        full_tokens: Our estimate for the whole history since the last reset instead.
        usage_input_tokens: Reported by the provider, else None; likewise the next two.
    """

    attempt: int
    ordinal: int
    kind: Literal["answer", "reasoning"]
    model: str
    is_verified: bool
    sent_tokens: int
    full_tokens: int
    usage_input_tokens: int | None
    usage_output_tokens: int | None
    usage_cached_tokens: int | None
    seconds: float
    error_code: str
    created_at: datetime
    blocks: tuple[InputBlock, ...]

    @property
    def is_sent(self) -> bool:
        """False for an example's call, which was only prepared."""
        return self.model != EXAMPLE_MODEL

    @property
    def cacheable_tokens(self) -> int:
        return sum(block.tokens for block in self.blocks if block.is_cacheable)


@dataclass(frozen=True)
class SentRequest:
    """The rebuilt body of a call's request.

    Attributes:
        body: Indented JSON with images shortened; None if too little is stored. Never contains the key.
        is_verified: True if the messages match the stored hash; the rest of the body has none.
        lacks_tools: True if other tools were sent than this version of the server has.
        is_of_program: True for a program's request, whose tools and parameters aren't stored.
        is_embedded: True if the embedded model answered: nothing left the server.
    """

    body: str | None
    is_verified: bool
    lacks_tools: bool
    is_of_program: bool
    is_embedded: bool


@dataclass(frozen=True)
class HistoryTurn:
    """The last attempt of a turn, as part of the full history; `tokens` is our estimate for all messages."""

    number: int
    tokens: int
    messages: tuple[InputBlock, ...]


@dataclass(frozen=True)
class Savings:
    """Tokens saved by folding in a session since the last reset.

    Attributes:
        unsent_tokens: Full history minus sent input, summed over the answered calls (estimates).
        fold_tokens: Input plus output of every summary, discarded and failed ones included.
        lost_tokens: Our estimate for tokens resent uncached because an earlier part of the input changed.
        net_tokens: The difference in input tokens at full price: cached ones count a tenth, output four times.
        cached_tokens: The part of `unsent_tokens` that the provider's cache would have held.
        money: None if a model has no price.
        has_example: True if calls of an example are among them, which were only prepared.
        pays_from: Below zero, the turn from which folding is expected to have paid; None if none can be told.
        broken_off_count: Summaries that were paid for in part, and then stopped or no longer needed.
        full_tokens: The full history, summed over the answered calls.
    """

    unsent_tokens: int
    fold_tokens: int
    is_fold_usage: bool
    lost_tokens: int
    net_tokens: int
    cached_tokens: int = 0
    money: SavingsMoney | None = None
    has_example: bool = False
    pays_from: int | None = None
    broken_off_count: int = 0
    full_tokens: int = 0

    @property
    def is_paid_back(self) -> bool:
        """Whether folding cost no more than it saved: in money if anything has a price, else in tokens."""
        return (self.money.net if self.money is not None and self.money.folds else self.net_tokens) >= 0
