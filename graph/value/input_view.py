"""Frozen values that show the input of model calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from graph.value.view import SavingsMoney

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
            this
            call; "call" for the arguments of a tool that called a model itself.
        id: Id of the record, message or call; for other kinds a name that distinguishes them.
        role: Role of a message, "" for other blocks.
        tokens: Our estimate.
        text: None if not stored, as for tools.
        turns: The turns that a record covers, or the turn of a message; () for other blocks.
        is_cacheable: True if the block is part of the prefix shared with the call before.
        tools: Definitions in the block of tools; () if they aren't those of this version of the server.
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
    """Input of one model call, rebuilt from the tables, and its cost.

    Attributes:
        attempt: Of the turn, from 1.
        ordinal: Number of the call within the attempt, from 1.
        kind: "answer" for a call of the chat, "reasoning" for a call by the tool of that name.
        is_verified: True if the rebuilt input has the stored hash of the sent bytes.
        sent_tokens: Our estimate for the input.
        full_tokens: Our estimate for the whole history since the last reset instead.
        usage_input_tokens: Reported by the provider, else None; likewise the next two.
        usage_cached_tokens: Input tokens read from the provider's cache.
        error_code: Of a failed call, else "".
        created_at: UTC.
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
    def cacheable_tokens(self) -> int:
        """Our estimate for the prefix shared with the call before."""
        return sum(block.tokens for block in self.blocks if block.is_cacheable)


@dataclass(frozen=True)
class SentRequest:
    """The body of a call's request, rebuilt.

    Attributes:
        body: Indented JSON with images shortened; None if too little is stored. Never contains the key.
        is_verified: True if the messages have the stored hash; the rest of the body has none.
        lacks_tools: True if tools were sent that differ from those of this version of the server.
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
        is_fold_usage: True if the provider reported all of `fold_tokens`.
        lost_tokens: Our estimate for tokens resent outside the provider's cache because an earlier part of the input
            was
            folded, unfolded or left out.
        money: The same in money; None if a model has no price.
    """

    unsent_tokens: int
    fold_tokens: int
    is_fold_usage: bool
    lost_tokens: int
    money: SavingsMoney | None = None

    @property
    def net_tokens(self) -> int:
        return self.unsent_tokens - self.fold_tokens - self.lost_tokens
