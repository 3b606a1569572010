"""What a turn tells its watchers while it runs.

Order within one attempt of a turn:
`TurnStarted, (FoldWaiting? Folded?)*, (TokenDelta* (ToolStarted+ ToolFinished+))*, TokenDelta*`, then exactly one of
`TurnFinished | TurnFailed | TurnStopped`. `TurnFinished` comes after the answer is committed. An `AnswerRestarted` may
stand behind any `TokenDelta` and takes back all of them since the last tool call.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TurnStarted:
    """The user's message is committed and a worker has the turn."""

    session_id: str
    turn: int
    attempt: int


@dataclass(frozen=True)
class FoldWaiting:
    """The turn waits (at most 10 s) for the fold of these turns."""

    turns: tuple[int, ...]


@dataclass(frozen=True)
class Folded:
    """A record came into force in this turn."""

    record_id: str
    turns: tuple[int, ...]
    original_chars: int
    summary_chars: int


@dataclass(frozen=True)
class ToolStarted:
    """A tool call of the model began; `arguments` is JSON text."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ToolFinished:
    """A tool call ended; `result` is what the model will read (cut at the tool's limit)."""

    call_id: str
    name: str
    result: str
    is_error: bool
    seconds: float


@dataclass(frozen=True)
class TokenDelta:
    """The next piece of the answer's text."""

    text: str


@dataclass(frozen=True)
class AnswerRestarted:
    """The text streamed so far was no part of the final answer's stream (a retried call): drop it."""


@dataclass(frozen=True)
class TurnFinished:
    """The answer is committed, whole."""

    turn: int
    message_id: str
    text: str


@dataclass(frozen=True)
class TurnFailed:
    """The turn was closed: the user's message is kept and Retry is possible."""

    turn: int
    code: str
    detail: str


@dataclass(frozen=True)
class TurnStopped:
    """The user stopped the turn: `text` is the partial answer that was kept."""

    turn: int
    text: str


Event = (
    TurnStarted
    | FoldWaiting
    | Folded
    | ToolStarted
    | ToolFinished
    | TokenDelta
    | AnswerRestarted
    | TurnFinished
    | TurnFailed
    | TurnStopped
)
