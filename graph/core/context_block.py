"""The blocks that a turn's context adds to a model input: those that stay, and a block of this turn alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from langchain_core.messages import AnyMessage

from graph.core.token import estimate_tokens
from prompt.system.framing import BLOCK_CUT, Language

BlockKind = Literal["front", "client", "volatile"]
# Those that stand in the system prompt, in order.
STANDING: Final[tuple[BlockKind, ...]] = ("front", "client")


@dataclass(frozen=True)
class ContextBlock:
    """One block as it is sent; the table has it under (session, kind, version).

    Attributes:
        kind: "front" stands in the system prompt and stays the same from turn to turn, as does "client" behind it: the
            instructions of the program that asks; "volatile" stands before the user's words of the open turn, and isn't
            sent again with them later.
        version: Counts the session's blocks of this kind, from 1.
    """

    kind: BlockKind
    version: int
    text: str


@dataclass(frozen=True)
class ContextRequest:
    """What the blocks of a turn are composed of.

    Attributes:
        root: The real path of the session's project, "" for none.
        has_memory: Whether the session starts with the project's memory.
        language: The language of the session's fixed sentences.
        turn: The number of the turn.
        message: The user's message.
        context: What the request says of its own context, such as `currentFile` and `selection`; not checked further
            than that it is text.
        front: The session's front as it was last sent; "" before the first one, and after a change of `root` or
            `has_memory`. What is returned unchanged keeps the provider's cached prefix valid.
        tools: What the model reads of each tool that it is offered, by its name.
    """

    session_id: str
    owner: str
    root: str
    has_memory: bool
    language: Language
    turn: int
    message: AnyMessage
    context: Mapping[str, str]
    front: str = ""
    tools: Mapping[str, str] = field(default_factory=dict)


# Returns the texts of the front and of the block of this turn, "" for none. Raises nothing but a `TurnfoldError`: the
# turn then goes on with the front as it was.
ContextSource = Callable[[ContextRequest], tuple[str, str]]


def cut_block(text: str, most_tokens: int, language: Language) -> str:
    """Cuts a block to a number of tokens at the end of a line, and notes that it is cut; "" if no line has room."""
    if estimate_tokens(text) <= most_tokens:
        return text
    note = BLOCK_CUT[language]
    left_tokens = most_tokens - estimate_tokens(note)
    kept = []
    for line in text.splitlines():
        left_tokens -= estimate_tokens(line) + 1
        if left_tokens < 0:
            break
        kept.append(line)
    return "\n".join([*kept, note]) if kept else ""
