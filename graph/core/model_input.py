"""Builds the model input and lists its blocks."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import convert_to_openai_messages

from graph.core.review import label_of
from graph.core.token import estimate_tokens, message_tokens
from graph.record import HistoryEntry
from prompt.system import chat
from prompt.system.framing import COMPACTION_HEADING, CONTINUED, SUMMARY_HEADING, Language

History = Sequence[HistoryEntry]
Messages = Sequence[AnyMessage]

SHORTENED: Final = "shortened"
CUT: Final = "cut"
KEPT_CHARS: Final = "turnfold_kept_chars"
_INDENT: Final = "  "
_HEADINGS: Final = "|".join(map(re.escape, [*SUMMARY_HEADING.values(), COMPACTION_HEADING]))
# Beginnings of the lines that divide an input, of every strategy and in both languages.
_DIVIDER: Final = re.compile(
    rf"\[(?:\d+-\d+턴|Turns \d+-\d+)\]|{_HEADINGS}"
    r"|\[(?:CONVERSATION CONTEXT|RECENT MESSAGES|CURRENT MESSAGE)\]"
    r"|(?:USER|ASSISTANT|TOOL): |---",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class InputItem:
    """One block of a model input. Its text is not copied: the tables have it under (kind, id, version).

    Attributes:
        kind: "system", "record", "message", "tools" or "note". If the guard shrank it for this call: "shortened" (a
            verbatim record as its summary) or "cut" (a tool result). If a tool asks a model: "call" for the arguments
            of the tool call.
        version: Of a record or the system prompt; for a cut message the number of characters kept; 1 for the others.
        tokens: Our estimate for the block.
    """

    kind: str
    id: str
    version: int
    tokens: int


@dataclass(frozen=True)
class ModelInput:
    """The messages of one model call and the blocks that they consist of, in the order sent."""

    messages: tuple[AnyMessage, ...]
    items: tuple[InputItem, ...]

    @property
    def sent_tokens(self) -> int:
        """Our estimate for the whole input."""
        return sum(item.tokens for item in self.items)

    def digest(self) -> str:
        """Returns 128 bits of the SHA-256 of the messages in OpenAI's shape (sorted keys, UTF-8)."""
        shape = convert_to_openai_messages(list(self.messages))
        return hashlib.sha256(json.dumps(shape, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class SystemPart:
    """The product's own part of every input.

    Attributes:
        text: The beginning of the system prompt; the same bytes in every turn of a session.
        tool_schema: JSON of the tools sent beside the messages; counted, not rendered. "" for none.
        note: A sentence appended to the last tool result, so that the cached prefix stays unchanged.
        name: Tells with the version which text it is; see `prompt.system.chat.read_prompt`.
        language: The language of the labels, headings and notes; the same in every turn of a session.
    """

    text: str
    version: int
    tool_schema: str = ""
    note: str = ""
    name: str = "chat"
    language: Language = "ko"


def stored_system(name: str, version: int) -> SystemPart:
    """Returns the system part of a call that was sent the prompt of this name and version.

    Raises:
        KeyError: There is no such prompt.
    """
    language, text = chat.read_prompt(name, version)
    return SystemPart(text, version, name=name, language=language)


def system_part(language: Language, *, can_recall: bool) -> SystemPart:
    """Returns the system part of a session in this language.

    Args:
        language: The session's language.
        can_recall: Whether the tool `recall` is offered.
    """
    return stored_system(chat.prompt_id(language, can_recall=can_recall), chat.PROMPT_VERSION)


def labelled(label: str, text: str) -> str:
    """Renders a text behind its label; further lines are indented, so that none of them can imitate a label."""
    return label + f"\n{_INDENT}".join(text.splitlines())


def unlabelled(text: str) -> str:
    """Renders a text without a label; a first line that imitates one is indented too."""
    block = labelled("", text)
    return _INDENT + block if _DIVIDER.match(block) else block


def render_system(system: SystemPart, history: History) -> str:
    """Renders the system prompt: the product's own text, then the active records under their heading, oldest first."""
    if not history:
        return system.text
    lines = [labelled(label_of(entry["turns"], system.language), entry["summary"]) for entry in history]
    return "\n".join([system.text, "", SUMMARY_HEADING[system.language], *lines])


def record_item(entry: HistoryEntry) -> InputItem:
    """Returns the block of a record."""
    kind = SHORTENED if entry["kind"] == SHORTENED else "record"
    return InputItem(kind, entry["id"], entry["version"], entry["summary_tokens"])


def _message_item(message: AnyMessage) -> InputItem:
    kept_chars = message.additional_kwargs.get(KEPT_CHARS)
    tokens = message_tokens(message)
    if kept_chars is None:
        return InputItem("message", str(message.id), 1, tokens)
    return InputItem(CUT, str(message.id), int(kept_chars), tokens)


@lru_cache(maxsize=64)
def _prompt_tokens(prompt: str) -> int:
    """Caches the estimate of the longest text of an input, which changes only with a fold."""
    return estimate_tokens(prompt)


def raw_messages(messages: Messages, language: Language) -> list[AnyMessage]:
    """Returns the messages to send, beginning with a user's message, as many models require.

    A compaction can end inside a turn; then a fixed user message replaces the folded beginning of that turn.
    """
    raw = list(messages)
    if raw and not isinstance(raw[0], HumanMessage):
        raw.insert(0, HumanMessage(CONTINUED[language], id=f"continued-{raw[0].id}"))
    return raw


def assemble(system: SystemPart, history: History, messages: Messages) -> ModelInput:
    """Builds `[system prompt with records] + [raw turns] + [open turn]`.

    Args:
        system: The product's own part of the input.
        history: Active records, oldest first.
        messages: The working set.
    """
    raw = raw_messages(messages, system.language)
    if system.note and raw and isinstance(raw[-1], ToolMessage):
        raw[-1] = raw[-1].model_copy(update={"content": f"{raw[-1].content}\n\n{system.note}"})
    prompt = render_system(system, history)
    # The prompt and the records' heading; a difference, so that the items add up to what is sent.
    own_tokens = max(0, _prompt_tokens(prompt) - sum(entry["summary_tokens"] for entry in history))
    items = [InputItem("system", system.name, system.version, own_tokens)]
    items += [record_item(entry) for entry in history]
    items += [_message_item(message) for message in raw]
    if schema := system.tool_schema:
        items.append(InputItem("tools", hashlib.sha256(schema.encode()).hexdigest()[:16], 1, estimate_tokens(schema)))
    return ModelInput((SystemMessage(prompt), *raw), tuple(items))
