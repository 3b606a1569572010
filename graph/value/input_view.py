"""The frozen values that tell what a model was sent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from graph.value.view import SavingsMoney

BlockRole = Literal["", "system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class ToolSchema:
    """A tool as a model is told of it; `text` is JSON."""

    name: str
    text: str


@dataclass(frozen=True)
class InputBlock:
    """One block of a model's input, in the order sent.

    Attributes:
        kind: "system", "context", "record", "pin", "message", "tools" or "note"; "shortened" or "cut" if it was made
            smaller for this call; "call" for the arguments of a tool that asked a model itself.
        id: The record's, the message's or the call's id; of the others what tells them apart.
        role: Who speaks in a message, "" for other blocks.
        tokens: Our estimate.
        text: Its words; None if the tables don't have them, as those of the tools.
        turns: The turns that a record covers, or the turn that a message was said in; () for other blocks.
        is_cacheable: Whether it stands in the beginning that the input shares with the call before.
        tools: Of the tools' block; () if they aren't those that this version of the server offers.
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
    """What one call of a model was sent, built again from the tables, and what it cost.

    Attributes:
        attempt: Of the turn, from 1.
        ordinal: Number of the call within its attempt, from 1.
        kind: "answer" for a call of the chat itself, "reasoning" for one by the tool of that name.
        is_verified: Whether what was built again has the hash of the bytes that were sent.
        sent_tokens: Our estimate for what was sent.
        full_tokens: Our estimate for sending the whole history since the last reset before it instead.
        usage_input_tokens: As reported by the provider, None if it wasn't; the same for the next two.
        usage_cached_tokens: The part of the input that was read from the provider's cache.
        error_code: Why the call failed, "" if it didn't.
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
        """Our estimate for what a provider can have kept of the call before."""
        return sum(block.tokens for block in self.blocks if block.is_cacheable)


@dataclass(frozen=True)
class SentRequest:
    """The body of the request that a call sent, built again.

    Attributes:
        body: As indented JSON, with images shortened; None if too little of it is stored. The key is never part of it.
        is_verified: Whether its messages have the hash of those that were sent; nothing else of it has one.
        lacks_tools: Whether tools went along that aren't those which this version of the server offers.
        is_of_program: Whether a program asked, whose tools and parameters aren't stored.
        is_embedded: Whether the embedded model answered, so that nothing left the server.
    """

    body: str | None
    is_verified: bool
    lacks_tools: bool
    is_of_program: bool
    is_embedded: bool


@dataclass(frozen=True)
class HistoryTurn:
    """A turn as the whole history has it: its last attempt.

    Attributes:
        tokens: Our estimate for all of its messages.
        messages: Each with its words, in order.
    """

    number: int
    tokens: int
    messages: tuple[InputBlock, ...]


@dataclass(frozen=True)
class Savings:
    """What folding has saved in a session since its last reset, in tokens.

    Attributes:
        unsent_tokens: Full history minus what was sent, summed over the answered calls (estimates).
        fold_tokens: Input plus output of every summary, discarded and failed ones included.
        is_fold_usage: Whether the provider reported all of `fold_tokens`.
        lost_tokens: Our estimate for what was sent again because something before it was folded, unfolded or left out,
            so that a provider could no longer read it from its cache.
        money: The same in money; None if a model has no price.
    """

    unsent_tokens: int
    fold_tokens: int
    is_fold_usage: bool
    lost_tokens: int
    money: SavingsMoney | None = None

    @property
    def net_tokens(self) -> int:
        """What is left of what wasn't sent; negative if folding has cost more."""
        return self.unsent_tokens - self.fold_tokens - self.lost_tokens
