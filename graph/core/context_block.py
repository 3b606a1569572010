"""The blocks that a turn's context adds to a model input: those that stay, and a block of this turn alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, takewhile
from typing import Final, Literal, get_args

from langchain_core.messages import AnyMessage

from graph.core.token import estimate_tokens
from prompt.system.framing import BLOCK_CUT, Language

BlockKind = Literal["front", "client", "volatile"]
# Those that stand in the system prompt, in order.
STANDING: Final[tuple[BlockKind, ...]] = ("front", "client")
_KINDS: Final[dict[str, BlockKind]] = {kind: kind for kind in get_args(BlockKind)}
# Of what a model's input has beside the prompt, the tools and the question: together they leave a quarter of it for all
# else, and half without a program's.
LARGEST_SHARES: Final[dict[BlockKind, int]] = {"front": 3, "client": 4, "volatile": 6}


@dataclass(frozen=True)
class ContextBlock:
    """One block as it is sent; the table has it under (session, kind, version).

    Attributes:
        kind: "front" stands in the system prompt and stays the same from turn to turn, as does "client" behind it: the
            instructions of the program that asks; "volatile" stands before the user's words of the open turn, and isn't
            sent again with them later.
        version: Counts the session's blocks of this kind, from 1.
        text: As it is sent.
        kept_lines: How many of its lines are sent; None for all of them. The table has it whole.
    """

    kind: BlockKind
    version: int
    text: str
    kept_lines: int | None = None

    @property
    def name(self) -> str:
        """Tells which block it is in the list of what was sent: "front", or "front/12" if it is cut to 12 lines."""
        return self.kind if self.kept_lines is None else f"{self.kind}/{self.kept_lines}"

    def within(self, most_tokens: int, language: Language) -> ContextBlock:
        """Returns the block with as many of its lines as have room; it is cut for the calls of one turn, never kept so.

        The note that it is cut stays whatever room there is.
        """
        if estimate_tokens(self.text) <= most_tokens:
            return self
        kept = lines_within(self.text, most_tokens, language)
        return replace(self, text=cut_at(self.text, kept, language), kept_lines=kept)


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


def lines_within(text: str, most_tokens: int, language: Language) -> int:
    """Returns how many lines of a block that is too long have room beside the note that it is cut."""
    left_tokens = most_tokens - estimate_tokens(BLOCK_CUT[language])
    used = accumulate(estimate_tokens(line) + 1 for line in text.splitlines())
    return sum(1 for _ in takewhile(lambda tokens: tokens <= left_tokens, used))


def cut_at(text: str, kept_lines: int, language: Language) -> str:
    """Returns a block's first lines, and the note that it is cut."""
    return "\n".join([*text.splitlines()[:kept_lines], BLOCK_CUT[language]])


def read_name(name: str) -> tuple[BlockKind, int | None]:
    """Returns which block this is the `ContextBlock.name` of, and how many of its lines were sent.

    Raises:
        KeyError: There is no such kind of block.
        ValueError: What stands behind the kind is no number.
    """
    kind, _, kept = name.partition("/")
    return _KINDS[kind], int(kept) if kept else None
