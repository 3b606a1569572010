"""Builds what the model is sent, and says block by block what that is."""

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
from prompt.system.framing import CONTINUED, SUMMARY_HEADING

History = Sequence[HistoryEntry]
Messages = Sequence[AnyMessage]

SHORTENED: Final = "shortened"
CUT: Final = "cut"
KEPT_CHARS: Final = "turnfold_kept_chars"
_INDENT: Final = "  "
# How the lines begin that divide an input, of every strategy.
_DIVIDER: Final = re.compile(
    r"\[(?:\d+-\d+턴|이전 대화 요약|Previous conversation summary)\]"
    r"|\[(?:CONVERSATION CONTEXT|RECENT MESSAGES|CURRENT MESSAGE)\]"
    r"|(?:USER|ASSISTANT|TOOL): |---"
)


@dataclass(frozen=True)
class InputItem:
    """One block of a model input; the text behind (kind, id, version) is in the tables, never copied.

    Attributes:
        kind: "system", "record", "message", "tools" or "note"; where the guard had to make something shorter for this
            call, "shortened" (a word-for-word record as its summary) or "cut" (a tool result); where a tool asks a
            model, "call" for the arguments of its own call.
        version: Of a record and the system prompt; of a cut message how many of its characters were kept; else 1.
        tokens: Our estimate for the block.
    """

    kind: str
    id: str
    version: int
    tokens: int


@dataclass(frozen=True)
class ModelInput:
    """The messages of one model call and the list of what they're made of, in the order sent."""

    messages: tuple[AnyMessage, ...]
    items: tuple[InputItem, ...]

    @property
    def sent_tokens(self) -> int:
        """Our estimate for all that is sent."""
        return sum(item.tokens for item in self.items)

    def digest(self) -> str:
        """Hashes the messages as the provider reads them (OpenAI's shape, sorted keys, UTF-8); 128 bits are enough."""
        shape = convert_to_openai_messages(list(self.messages))
        return hashlib.sha256(json.dumps(shape, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class SystemPart:
    """What goes with every input beside what was said.

    Attributes:
        text: The product's own part of the system prompt; the same bytes in every turn of a session.
        tool_schema: JSON of the tools sent beside the messages; counted, not rendered. "" for none.
        note: Words for the model that go last, into the last tool result, so that the prefix stays unchanged.
    """

    text: str
    version: int
    tool_schema: str = ""
    note: str = ""


def labelled(label: str, text: str) -> str:
    """Renders a text behind its label; its further lines are indented, so that none of them can look like a label."""
    return label + f"\n{_INDENT}".join(text.splitlines())


def unlabelled(text: str) -> str:
    """Renders a text that stands without a label; a first line that looks like one is indented too."""
    block = labelled("", text)
    return _INDENT + block if _DIVIDER.match(block) else block


def render_system(system: SystemPart, history: History) -> str:
    """Renders the system prompt: the product's words, then every record in force under its heading, oldest first."""
    if not history:
        return system.text
    lines = [labelled(label_of(entry["turns"]), entry["summary"]) for entry in history]
    return "\n".join([system.text, "", SUMMARY_HEADING, *lines])


def record_item(entry: HistoryEntry) -> InputItem:
    """Returns the block that a record is."""
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
    """Estimates a system prompt once: it's the same from one fold to the next, and the longest text of an input."""
    return estimate_tokens(prompt)


def raw_messages(messages: Messages) -> list[AnyMessage]:
    """Returns the working set as it's sent: folded turns have left it, so nothing has to be counted here.

    Coverage can end inside a turn (a compaction's); then a user's message stands in for the beginning that was
    folded, as many models take no conversation that begins with an answer.
    """
    raw = list(messages)
    if raw and not isinstance(raw[0], HumanMessage):
        raw.insert(0, HumanMessage(CONTINUED, id=f"continued-{raw[0].id}"))
    return raw


def assemble(system: SystemPart, history: History, messages: Messages) -> ModelInput:
    """Builds `[system prompt with records] + [raw turns] + [open turn]`.

    Args:
        system: The product's own part of the input.
        history: Active records, oldest first.
        messages: The working set.
    """
    raw = raw_messages(messages)
    if system.note and raw and isinstance(raw[-1], ToolMessage):
        raw[-1] = raw[-1].model_copy(update={"content": f"{raw[-1].content}\n\n{system.note}"})
    prompt = render_system(system, history)
    # What the whole prompt is beyond its records, their heading included, so that the items' sum is what is sent.
    own_tokens = max(0, _prompt_tokens(prompt) - sum(entry["summary_tokens"] for entry in history))
    items = [InputItem("system", "chat", system.version, own_tokens)]
    items += [record_item(entry) for entry in history]
    items += [_message_item(message) for message in raw]
    if schema := system.tool_schema:
        items.append(InputItem("tools", hashlib.sha256(schema.encode()).hexdigest()[:16], 1, estimate_tokens(schema)))
    return ModelInput((SystemMessage(prompt), *raw), tuple(items))
