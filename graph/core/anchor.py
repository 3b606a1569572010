"""What is known of a response that a program was sent, and of the turns around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from graph.view import TurnStatus

AnchorHash = Literal["asked", "idempotency", "chain", "answer"]


@dataclass(frozen=True)
class AnchorRow:
    """An anchor with what its turn and its session are now; times are UTC.

    Attributes:
        family: The session's.
        chain: None until the response is whole, and if nothing was sent.
        status: The turn's, in its last attempt; "failed" if its server died, as the next message will close it.
        model: The turn's, in its last attempt; "" for the default one.
        is_live: Whether the turn's last attempt gave the response.
        is_last: Whether the turn is the session's last one.
        is_head: Whether no later turn of the session has an anchor of this scope.
    """

    session_id: str
    family: str
    turn: int
    attempt: int
    created_at: datetime
    asked: bytes
    chain: bytes | None
    status: TurnStatus
    model: str
    is_live: bool
    is_last: bool
    is_head: bool


@dataclass(frozen=True)
class SaidTurn:
    """A turn as the archive has it, in canonical texts.

    Attributes:
        answer: All that the assistant said, and what was kept of it if the turn was stopped; "" for nothing.
        status: In its last attempt.
        model: That of its last attempt; "" for the default one.
        is_elsewhere: Whether the page or another program asked, so that this one never saw it.
        is_imported: Whether the program brought it along.
        images: What the archive has in place of the question's images, in order.
    """

    number: int
    question: str
    answer: str
    status: TurnStatus
    model: str = ""
    is_elsewhere: bool = False
    is_imported: bool = False
    images: tuple[str, ...] = ()


class Known(Protocol):
    """What the server knows of the histories of one scope."""

    def find(self, kind: AnchorHash, hashes: Sequence[bytes]) -> Sequence[AnchorRow]:
        """Returns the anchors that have one of these hashes, newest first."""
        ...

    def turns(self, session_id: str, first: int, last: int) -> Sequence[SaidTurn]:
        """Returns these turns of a session (both ends included) as far as there are any, oldest first."""
        ...

    def head(self, session_id: str) -> int:
        """Returns the newest turn of a session that has an anchor of the scope, 0 if none has."""
        ...

    def count_seen(self, session_id: str, last: int) -> int:
        """Returns how many of a session's turns, up to this one, programs asked or brought along."""
        ...

    def open_calls(self, session_id: str) -> frozenset[str]:
        """Returns the ids of the calls behind which a session's last turn can go on: it waits, or its server died."""
        ...
