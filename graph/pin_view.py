"""The frozen values that tell which messages are pinned."""

from __future__ import annotations

from dataclasses import dataclass


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
