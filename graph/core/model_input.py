"""Builds the model input, lists its blocks, and compares them with the previous input."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import takewhile
from typing import Any, Final

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import convert_to_openai_messages

from graph.core.ledger import LEDGER, LEDGER_TOKENS, line_tokens, lines_of, render_line, standing, with_room
from graph.core.manifest import Block, Manifest
from graph.core.open_question import without_answered
from graph.core.pin import PIN, ContextBlock, Pin, place_pins, unsent
from graph.core.text import estimate_tokens, message_tokens, sum_tokens
from graph.core.turn import extract_current_turn, goes_on, label_of, labelled, unlabelled, with_words, words_of
from graph.value.record import HistoryEntry, LedgerLine
from prompt.system import chat
from prompt.system.framing import CONTINUED, CURRENT_PART, LEDGER_HEADING, SUMMARY_HEADING, Language

History = Sequence[HistoryEntry]
Messages = Sequence[AnyMessage]
Placed = HistoryEntry | Pin | LedgerLine

SHORTENED: Final = "shortened"
CUT: Final = "cut"
KEPT_CHARS: Final = "turnfold_kept_chars"
WHOLE_CHARS: Final = "turnfold_whole_chars"
# Distinguishes a context block from a message.
CONTEXT: Final = "context"
# Precedes a record's id in the id of a summary sent as a message, where no question can be prefixed with it.
SUMMARY_PREFIX: Final = "summary-"


@dataclass(frozen=True)
class InputItem:
    """A block of a model input; the tables have its text under (kind, id, version).

    Attributes:
        kind: "system", "context" (its id is the block's name), "record", "pin" (a pinned message under its record),
            "ledger" (a line of the user's word), "message", "tools" or "note". If the guard shrank it for this call:
            "shortened" (a verbatim record as its summary) or "cut" (a tool result). If a tool asks a model: "call" for
            the arguments of the tool call.
        version: Of a record, a context block or the system prompt; for a cut message the number of characters sent; 1
            for others.
        tokens: Estimate.
    """

    kind: str
    id: str
    version: int
    tokens: int


@dataclass(frozen=True)
class ModelInput:
    messages: tuple[AnyMessage, ...]
    items: tuple[InputItem, ...]

    @property
    def sent_tokens(self) -> int:
        return sum(item.tokens for item in self.items)

    def digest(self) -> str:
        """Returns 128 bits of the SHA-256 of the messages in OpenAI's shape (sorted keys, UTF-8)."""
        shape = convert_to_openai_messages(list(self.messages))
        return hashlib.sha256(json.dumps(shape, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class SystemPart:
    """The part of an input outside the conversation: the product's own text and the turn's context.

    Attributes:
        text: The beginning of the system prompt; the same bytes in every turn of a session.
        tool_schema: JSON of the tools sent beside the messages; counted, not rendered.
        note: A sentence appended to the last tool result, so that the cached prefix stays unchanged.
        own: The user's own instructions; follows `text`.
        front: Follows `own`.
        client: The instructions of a client program; follows `front`.
        volatile: Precedes the user's words of the open turn.
        before: Messages of a client program that precede the open turn.
        pins: Those that aren't among the messages are sent under their records.
        ledger: Lines of the ledger whose records aren't sent.
        struck: The lines of the ledger that the user struck out or restored (`standing`).
        ledger_tokens: The room for the ledger's lines.
    """

    text: str
    version: int
    tool_schema: str = ""
    note: str = ""
    name: str = "chat"
    language: Language = "ko"
    own: ContextBlock | None = None
    front: ContextBlock | None = None
    client: ContextBlock | None = None
    volatile: ContextBlock | None = None
    before: ContextBlock | None = None
    pins: tuple[Pin, ...] = ()
    ledger: tuple[LedgerLine, ...] = ()
    struck: Mapping[str, bool] = field(default_factory=dict)
    ledger_tokens: int = LEDGER_TOKENS

    @property
    def standing(self) -> list[ContextBlock]:
        """The blocks in the system prompt, which stay the same from turn to turn."""
        return [block for block in (self.own, self.front, self.client) if block is not None]

    def with_block(self, block: ContextBlock) -> SystemPart:
        changed: dict[str, Any] = {} if block.kind == "mcp" else {block.kind: block}  # "mcp" is sent as tools
        return replace(self, **changed)

    @property
    def item_count(self) -> int:
        return 1 + len(self.standing)


def stored_system(name: str, version: int) -> SystemPart:
    """Returns the system part of a call with the prompt of this name and version.

    Raises:
        KeyError: Unknown prompt.
    """
    language, text = chat.read_prompt(name, version)
    return SystemPart(text, version, name=name, language=language)


def system_part(language: Language, *, can_recall: bool) -> SystemPart:
    return stored_system(chat.prompt_id(language, can_recall=can_recall), chat.PROMPT_VERSION)


def render_system(system: SystemPart, history: Sequence[Placed]) -> str:
    """Renders the system prompt: its own text, the standing blocks, then records and pins under their heading."""
    parts = [system.text]
    for block in system.standing:
        parts += ["", block.text]
    if not history:
        return "\n".join(parts)
    return "\n".join([*parts, "", SUMMARY_HEADING[system.language], render_placed(history, system.language)])


def placed_in(system: SystemPart, history: History, messages: Messages) -> list[Placed]:
    """Returns what stands before the raw turns: the records, each with its pins, and the ledger of what they cover."""
    language = system.language
    placed = place_pins(without_answered(history, language), unsent(system.pins, messages))
    lines = standing((*system.ledger, *lines_of(history)), system.struck)
    return [*placed, *with_room(lines, system.ledger_tokens, language)]


def render_placed(placed: Sequence[Placed], language: Language, *, labels_alone: bool = True) -> str:
    """Renders records and pins with their labels, then the ledger under its heading.

    Without `labels_alone` a single record has no label.
    """
    first = next((index for index, each in enumerate(placed) if isinstance(each, LedgerLine)), len(placed))
    has_labels = labels_alone or sum(isinstance(each, dict) for each in placed) != 1
    parts = [line_of(each, language, has_label=has_labels) for each in placed]
    return "\n".join(parts if first == len(placed) else [*parts[:first], "", LEDGER_HEADING[language], *parts[first:]])


def line_of(entry: Placed, language: Language, *, has_label: bool = True) -> str:
    if isinstance(entry, Pin):
        return entry.line(language)
    if isinstance(entry, LedgerLine):
        return render_line(entry, language)
    if not has_label:
        return unlabelled(entry["summary"])
    return labelled(label_of(entry["turns"], language, entry.get("days", "")), entry["summary"])


def schema_id(schema: str) -> str:
    return hashlib.sha256(schema.encode()).hexdigest()[:16]


def _behind(volatile: ContextBlock, text: str) -> str:
    return f"{volatile.text}\n\n{CURRENT_PART.format(text=text)}"


def record_item(entry: Placed, language: Language) -> InputItem:
    if isinstance(entry, Pin):
        return InputItem(PIN, entry.message_id, 1, entry.tokens(language))
    if isinstance(entry, LedgerLine):
        return InputItem(LEDGER, entry.id, 1, line_tokens(entry, language))
    kind = SHORTENED if entry["kind"] == SHORTENED else "record"
    return InputItem(kind, entry["id"], entry["version"], entry["summary_tokens"])


def _block_item(block: ContextBlock, tokens: int) -> InputItem:
    return InputItem(CONTEXT, block.name, block.version, tokens)


def _message_item(message: AnyMessage) -> InputItem:
    retained_chars = message.additional_kwargs.get(KEPT_CHARS)
    tokens = message_tokens(message)
    if retained_chars is None:
        return InputItem("message", str(message.id), 1, tokens)
    return InputItem(CUT, str(message.id), int(retained_chars), tokens)


@lru_cache(maxsize=64)
def _prompt_tokens(prompt: str) -> int:
    """Caches the estimate of the longest text of an input, which changes only with a fold."""
    return estimate_tokens(prompt)


def raw_messages(messages: Messages, language: Language) -> list[AnyMessage]:
    """Returns the messages to send, beginning with a user's message, as many models require.

    Where a compaction ends inside a turn, a fixed user message replaces the folded beginning of the turn.
    """
    raw = [message for message in messages if not goes_on(message)]
    if raw and not isinstance(raw[0], HumanMessage):
        raw.insert(0, HumanMessage(CONTINUED[language], id=f"continued-{raw[0].id}"))
    return raw


def assemble(system: SystemPart, history: History, messages: Messages) -> ModelInput:
    """Builds `[system prompt with blocks and records] + [raw turns] + [program's messages, turn block, open turn]`."""
    raw = raw_messages(messages, system.language)
    if system.note and raw and isinstance(raw[-1], ToolMessage):
        raw[-1] = with_words(raw[-1], f"{words_of(raw[-1])}\n\n{system.note}")
    placed = placed_in(system, history, raw)
    prompt = render_system(system, placed)
    items = [record_item(entry, system.language) for entry in placed]
    items[:0] = [_block_item(block, _prompt_tokens(block.text)) for block in system.standing]
    # The prompt and the records' heading; a difference, so that the items add up to the tokens sent.
    own_tokens = max(0, _prompt_tokens(prompt) - sum(item.tokens for item in items))
    items.insert(0, InputItem("system", system.name, system.version, own_tokens))
    index = len(raw) - len(extract_current_turn(raw))
    raw_items = [_message_item(message) for message in raw]
    if system.volatile is not None and index < len(raw):
        raw_items.insert(index, _block_item(system.volatile, estimate_tokens(_behind(system.volatile, ""))))
        raw[index] = with_words(raw[index], _behind(system.volatile, words_of(raw[index])))
    if system.before is not None and index < len(raw):
        said = system.before.said.messages
        raw_items.insert(index, _block_item(system.before, sum_tokens(said)))
        raw[index:index] = said
    items += raw_items
    if schema := system.tool_schema:
        items.append(InputItem("tools", schema_id(schema), 1, estimate_tokens(schema)))
    return ModelInput((SystemMessage(prompt), *raw), tuple(items))


TOOLS: Final = "tools"
NOTE: Final = "note"


def full_tokens(system: SystemPart, model_input: ModelInput, history_tokens: int, open_turn: Messages) -> int:
    """Estimates what the same call would send without folds: every message of the session in full."""
    beside = sum(item.tokens for item in model_input.items if item.kind in (TOOLS, CONTEXT))
    return estimate_tokens(system.text) + history_tokens + sum_tokens(open_turn) + beside


def same_blocks(before: Manifest, after: Manifest) -> tuple[bool, ...]:
    """Returns for each block of `after` whether it belongs to the common prefix with `before`.

    Providers read the tools before everything else: with different tools nothing is shared.
    """
    if _tools(before) != _tools(after):
        return (False,) * len(after)
    shared = _shared(_without_tools(before), _without_tools(after))
    # The tools are shared with the system prompt or not at all.
    return tuple(shared > 0 if block[0] == TOOLS else index < shared for index, block in enumerate(after))


def lost_tokens(before: Manifest, after: Manifest) -> int:
    """Estimates the tokens that a call sent again because an earlier part was folded, unfolded or left out.

    These are blocks that both inputs have after the first differing one, without those that would have been uncached
    with the whole history as well: after a changed context or prompt, or with different tools.
    """
    if _tools(before) != _tools(after):
        return 0
    old, new = _without_tools(before), _without_tools(after)
    index = _shared(old, new)
    if index >= min(len(old), len(new)) or {old[index][0], new[index][0]} & {"system", CONTEXT}:
        return 0
    if (old[index][0], new[index][0]) == (NOTE, "message"):
        return 0  # if all is in one message, the newest part of the history precedes the note
    cached = {block[:3] for block in takewhile(lambda block: block[0] != CONTEXT, old[index:])}
    return sum(block[3] for block in new[index:] if block[:3] in cached)


def _shared(before: Sequence[Block], after: Sequence[Block]) -> int:
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0][:3] == pair[1][:3], pairs))


def _without_tools(manifest: Manifest) -> list[Block]:
    return [block for block in manifest if block[0] != TOOLS]


def _tools(manifest: Manifest) -> list[Block]:
    return [block for block in manifest if block[0] == TOOLS]
