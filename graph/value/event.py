"""The events that a running turn emits.

Order within one attempt of a turn:
`TurnStarted, (FoldWaiting? Folded?)*, (said* (ToolStarted+ ToolFinished+))*, said*`, where `said` is a `TokenDelta` or
a `ThoughtDelta`, then exactly one of `TurnFinished | TurnFailed | TurnStopped | ActionRequired |
ToolAsked`. `TurnFinished` comes after the answer is committed. `ToolProgress` may come between `ToolStarted` and
`ToolFinished` of its call. An `AnswerRestarted` may follow any delta and voids all of them since the last tool call.
`InputRead` comes before the first delta of a call, any number of times, where the endpoint tells it, and `LeftOut`
before that, to programs alone. `CallRetried` comes twice for each retry of a call: when it is known to come, and when
it begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class TurnStarted:
    """The user's message is committed, and a worker runs the turn."""

    session_id: str
    turn: int
    attempt: int


@dataclass(frozen=True)
class FoldWaiting:
    """The turn waits for the fold of these turns, at most 10 s; on one slot as long as the fold's stream moves."""

    turns: tuple[int, ...]


@dataclass(frozen=True)
class Folded:
    record_id: str
    turns: tuple[int, ...]
    original_chars: int
    summary_chars: int


@dataclass(frozen=True)
class ToolStarted:
    """A tool call began; `arguments` is JSON text. `server` and `title` are those of an MCP tool, "" for others."""

    call_id: str
    name: str
    arguments: str
    server: str = ""
    title: str = ""


@dataclass(frozen=True)
class ToolProgress:
    """What a running tool call tells of its progress; each replaces the one before."""

    call_id: str
    text: str


@dataclass(frozen=True)
class ToolFinished:
    """A tool call ended; `result` is cut to the limit for tool results, and `turns` are those shown by `recall`.

    `images` are references to its pictures, as in a question.
    """

    call_id: str
    name: str
    result: str
    is_error: bool
    seconds: float
    turns: tuple[int, ...] | None = None
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class InputRead:
    """The endpoint has read so many tokens of the input, cached ones included; it answers when all are read."""

    read_tokens: int
    input_tokens: int


@dataclass(frozen=True)
class CallRetried:
    """A model call failed with `code`, and its next attempt comes in `wait_seconds`, or begins now, if that is 0."""

    code: str
    attempt: int
    most_attempts: int
    wait_seconds: float


@dataclass(frozen=True)
class LeftOut:
    """The input of the call that begins lacks these parts, or has them only in part, as the window has no room."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class TokenDelta:
    text: str


@dataclass(frozen=True)
class ThoughtDelta:
    """A piece of what the model thinks, which is no part of the answer."""

    text: str


@dataclass(frozen=True)
class AnswerRestarted:
    """The model call is retried: its streamed text and thoughts are void.

    Attributes:
        is_sorted: True if the call goes on instead: the text was thoughts, or the reverse, and comes again as such.
    """

    is_sorted: bool = False


@dataclass(frozen=True)
class TurnFinished:
    """The whole answer is committed."""

    turn: int
    message_id: str
    text: str


@dataclass(frozen=True)
class TurnFailed:
    """The turn failed and was closed; the user's message is retained, and Retry is possible."""

    turn: int
    code: str
    detail: str


@dataclass(frozen=True)
class TurnStopped:
    """The turn was stopped; `text` is the partial answer, which is retained."""

    turn: int
    text: str


@dataclass(frozen=True)
class ClientCall:
    """A call of a tool that the program runs itself; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ActionRequired:
    """The turn stays open until the program answers these calls; `text` is the text before them."""

    turn: int
    message_id: str
    text: str
    calls: tuple[ClientCall, ...]


@dataclass(frozen=True)
class PendingCall:
    """A call of an MCP tool that waits for the user's word.

    Attributes:
        tool: Its name at the server; `title` is that for people.
        arguments: Indented JSON.
        is_repeated: An earlier attempt of the turn has made this call already.
    """

    call_id: str
    server: str
    tool: str
    title: str
    arguments: str
    is_repeated: bool = False


@dataclass(frozen=True)
class ToolAsked:
    """The turn stays open until the user allows these calls or not; `text` is the text before them."""

    turn: int
    message_id: str
    text: str
    calls: tuple[PendingCall, ...]


Event = (
    TurnStarted
    | FoldWaiting
    | Folded
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | InputRead
    | CallRetried
    | LeftOut
    | TokenDelta
    | ThoughtDelta
    | AnswerRestarted
    | TurnFinished
    | TurnFailed
    | TurnStopped
    | ActionRequired
    | ToolAsked
)

LAST_EVENTS: Final = (TurnFinished, TurnFailed, TurnStopped, ActionRequired, ToolAsked)
