"""Why a file can't be attached to a message."""

from __future__ import annotations

from typing import ClassVar, Literal

from graph.error import TurnfoldError

AttachmentReason = Literal[
    "busy",
    "damaged",
    "empty",
    "encrypted",
    "kind",
    "lost",
    "no_text",
    "not_text",
    "too_heavy",
    "too_large",
    "too_long",
    "too_many",
    "too_many_pages",
]


class AttachmentError(TurnfoldError):
    """A file is refused, and nothing of it was kept; `detail` is its name."""

    code: ClassVar[str] = "attachment"

    def __init__(self, reason: AttachmentReason, name: str = "") -> None:
        super().__init__(name)
        self.reason = reason
