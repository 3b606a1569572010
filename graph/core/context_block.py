"""The blocks that a turn's context adds to a model input: a front that stays and a block of this turn alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BlockKind = Literal["front", "volatile"]


@dataclass(frozen=True)
class ContextBlock:
    """One block as it is sent; the table has it under (session, kind, version).

    Attributes:
        kind: "front" stands in the system prompt and stays the same from turn to turn; "volatile" stands before the
            user's words of the open turn, and isn't sent again with them later.
        version: Counts the session's blocks of this kind, from 1.
    """

    kind: BlockKind
    version: int
    text: str
