"""The frozen values that tell what a model was sent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

BlockRole = Literal["", "system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class InputBlock:
    """One block of a model's input, in the order sent.

    Attributes:
        kind: "system", "context", "record", "message", "tools" or "note"; "shortened" or "cut" if it was made smaller
            for this call; "call" for the arguments of a tool that asked a model itself.
        id: The record's, the message's or the call's id; of the others what tells them apart.
        role: Who speaks in a message, "" for other blocks.
        tokens: Our estimate.
        text: Its words; None if the tables don't have them, as those of the tools' schemas.
    """

    kind: str
    id: str
    version: int
    role: BlockRole
    tokens: int
    text: str | None


@dataclass(frozen=True)
class CallInput:
    """What one call of a model was sent, built again from the tables, and what it cost.

    Attributes:
        attempt: Of the turn, from 1.
        ordinal: Number of the call within its attempt, from 1.
        kind: "answer" for a call of the chat itself, "reasoning" for one by the tool of that name.
        is_verified: Whether what was built again has the hash of the bytes that were sent.
        sent_tokens: Our estimate for what was sent.
        full_tokens: Our estimate for sending the whole history instead.
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
