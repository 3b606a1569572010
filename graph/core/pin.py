"""Context blocks and pinned messages, sent in addition to records and turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import Final, Literal, NamedTuple, cast, get_args

from langchain_core.messages import AnyMessage, convert_to_messages
from langchain_core.messages.utils import convert_to_openai_messages

from graph.core.text import estimate_tokens
from graph.core.turn import labelled, text_of
from graph.value.record import ArchivedMessage, HistoryEntry
from prompt.system.framing import BLOCK_CUT, PIN_LABEL, Language

PIN: Final = "pin"
_LARGEST_SHARE: Final = 8
_MOST_TOKENS: Final = 4_000


@dataclass(frozen=True)
class Pin:
    """A pinned message, at its position in the archive."""

    message_id: str
    position: int
    turn: int
    role: str
    text: str

    def line(self, language: Language) -> str:
        return labelled(PIN_LABEL[language][self.role].format(turn=self.turn), self.text)

    def tokens(self, language: Language) -> int:
        return _tokens(self.line(language))


def pin_of(entry: ArchivedMessage) -> Pin:
    message = entry.message
    return Pin(str(message.id), entry.position, entry.turn, message.type, text_of(message).strip())


def budget_tokens(input_tokens: int) -> int:
    """Returns the budget for all pins of a session, for a model with this largest input."""
    return min(_MOST_TOKENS, input_tokens // _LARGEST_SHARE)


def fitting(pins: Sequence[Pin], most_tokens: int, language: Language) -> tuple[Pin, ...]:
    """Returns the newest pins that fit, by position: more may have been pinned with a larger window."""
    retained: list[Pin] = []
    for pin in sorted(pins, key=lambda pin: pin.position, reverse=True):
        if (tokens := pin.tokens(language)) <= most_tokens:
            retained.append(pin)
            most_tokens -= tokens
    return tuple(reversed(retained))


def unsent(pins: Sequence[Pin], messages: Sequence[AnyMessage]) -> list[Pin]:
    if not pins:
        return []
    sent = {str(message.id) for message in messages}
    return sorted((pin for pin in pins if pin.message_id not in sent), key=lambda pin: pin.position)


def place_pins(history: Sequence[HistoryEntry], pins: Sequence[Pin]) -> list[HistoryEntry | Pin]:
    """Inserts each pin after the record that covers it; other pins come last."""
    placed: list[HistoryEntry | Pin] = []
    left = list(pins)
    for entry in history:
        placed.append(entry)
        while left and left[0].position <= entry["to_position"]:
            placed.append(left.pop(0))
    return [*placed, *left]


@lru_cache(maxsize=64)
def _tokens(line: str) -> int:
    return estimate_tokens(line)


BlockKind = Literal["own", "front", "client", "volatile", "before", "mcp"]
# The kinds in the system prompt, in order.
STANDING: Final[tuple[BlockKind, ...]] = ("own", "front", "client")
_KINDS: Final[dict[str, BlockKind]] = {kind: kind for kind in get_args(BlockKind)}
# Of a model's input without prompt, tools and question, for blocks of our own: together they leave a quarter.
LARGEST_SHARES: Final[dict[BlockKind, int]] = {"own": 4, "front": 3, "volatile": 6}


@dataclass(frozen=True)
class ContextBlock:
    """A block as sent; the table has it whole under (session, kind, version).

    Attributes:
        kind: "own" (the user's own instructions), "front" and "client" (instructions of a client program) are in the
            system prompt, in this order, and stay the same from turn to turn; "volatile" precedes the user's words of
            the open turn, and "before" (messages of a client program, as JSON) the open turn; neither is sent again
            later. "mcp" (MCP tools, as JSON) is no part of the messages: it is sent as tools.
        version: Counts the session's blocks of this kind, from 1.
        sent_lines: Number of lines sent; None for all of them.
        fixed_lines: Number of lines at the beginning that are never cut: what the program sent that waits for the
            answer.
    """

    kind: BlockKind
    version: int
    text: str
    sent_lines: int | None = None
    fixed_lines: int = 0

    @property
    def name(self) -> str:
        """Name in the list of blocks: "front", or "front/12" if cut to 12 lines."""
        return self.kind if self.sent_lines is None else f"{self.kind}/{self.sent_lines}"

    @property
    def said(self) -> Said:
        """Returns the messages of a "before" block; raises `ValueError` for anything else."""
        return _said(self.text)

    def within(self, most_tokens: int, language: Language) -> ContextBlock:
        """Returns the block cut to the lines that fit, with a note even if there is no room for it; never stored."""
        if estimate_tokens(self.text) <= most_tokens or self.fixed_lines == len(self.text.splitlines()):
            return self
        retained = max(self.fixed_lines, lines_within(self.text, most_tokens, language))
        return replace(self, text=cut_at(self.text, retained, language), sent_lines=retained)


class Said(NamedTuple):
    """Messages that a program sent before its question, whose message has the id `asked`."""

    asked: str
    messages: tuple[AnyMessage, ...]

    @property
    def text(self) -> str:
        return json.dumps([self.asked, convert_to_openai_messages(list(self.messages))], ensure_ascii=False)


@lru_cache(maxsize=16)
def _said(text: str) -> Said:
    try:
        asked, messages = json.loads(text)
        return Said(str(asked), tuple(cast("list[AnyMessage]", convert_to_messages(messages))))
    except (AttributeError, KeyError, NotImplementedError, RecursionError, TypeError) as error:
        raise ValueError(text) from error  # of an import


@dataclass(frozen=True)
class ContextRequest:
    """Input for composing the blocks of a turn.

    Attributes:
        root: The real path of the session's project, "" for none.
        has_memory: True if the session starts with the project's memory.
        context: Client context of the request, such as `currentFile` and `selection`; checked only to be text.
        front: The session's front block as last sent; "" before the first one, and after a change of `root` or
            `has_memory`. Returning it unchanged keeps the provider's cached prefix valid.
        own: The block of the user's own instructions, "" for none.
        tools: Descriptions of the offered tools by name, as sent to the model.
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
    own: str = ""
    tools: Mapping[str, str] = field(default_factory=dict)


# Returns the texts of the front and of the turn block, "" for none. Raises only `TurnfoldError`: the turn then
# continues with the previous front.
ContextSource = Callable[[ContextRequest], tuple[str, str]]


def lines_within(text: str, most_tokens: int, language: Language) -> int:
    left_tokens = most_tokens - estimate_tokens(BLOCK_CUT[language])
    used = accumulate(estimate_tokens(line) + 1 for line in text.splitlines())
    return sum(1 for _ in takewhile(lambda tokens: tokens <= left_tokens, used))


def cut_at(text: str, sent_lines: int, language: Language) -> str:
    return "\n".join([*text.splitlines()[:sent_lines], BLOCK_CUT[language]])


def read_name(name: str) -> tuple[BlockKind, int | None]:
    """Parses `ContextBlock.name` into kind and number of lines sent.

    Raises:
        KeyError: Unknown kind.
        ValueError: The suffix is no number.
    """
    kind, _, retained = name.partition("/")
    return _KINDS[kind], int(retained) if retained else None
