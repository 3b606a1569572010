"""Makes the blocks that tell what a model was sent, of what the tables have for them."""

from __future__ import annotations

import json
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage

from graph.core.context_block import ContextBlock
from graph.core.manifest import Block
from graph.core.model_input import SystemPart
from graph.core.pin import Pin
from graph.core.turn import text_of
from graph.input_view import BlockRole, InputBlock
from graph.record import ArchivedMessage, HistoryEntry
from prompt.system.framing import CONTINUED, Language

_ROLES: Final[dict[str, BlockRole]] = {"human": "user", "ai": "assistant", "tool": "tool"}
# Begins the id of the fixed message that stands for the folded beginning of a turn; no table has it.
CONTINUED_ID: Final = "continued-"
# None for what no table has.
Part = SystemPart | ContextBlock | HistoryEntry | Pin | ArchivedMessage | None


def input_block(block: Block, part: Part, language: Language) -> InputBlock:
    """Returns a block with its words: those of a record without its label, as the strategies differ there."""
    kind, name, version, tokens = block
    match part:
        case SystemPart() | ContextBlock():
            known = name if isinstance(part, SystemPart) else part.kind
            return InputBlock(kind, known, version, "", tokens, part.text)
        case dict():
            return InputBlock(kind, name, version, "", tokens, part["summary"], tuple(part["turns"]))
        case Pin():
            return InputBlock(kind, name, version, _ROLES[part.role], tokens, part.text, (part.turn,))
        case ArchivedMessage():
            return said_block(block, part)
    if name.startswith(CONTINUED_ID):
        return InputBlock(kind, name, version, "user", tokens, CONTINUED[language])
    return InputBlock(kind, name, version, "", tokens, None)


def said_block(block: Block, said: ArchivedMessage) -> InputBlock:
    """Returns the block of a message."""
    kind, name, version, tokens = block
    role = _ROLES.get(said.message.type, "")
    return InputBlock(kind, name, version, role, tokens, _words(said.message), (said.turn,))


def _words(message: AnyMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    called = [f"(tool call: {call['name']} {json.dumps(call['args'], ensure_ascii=False)})" for call in calls]
    return "\n".join(line for line in (text_of(message), *called) if line)
