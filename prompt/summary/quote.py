"""Quotes messages as material inside a prompt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

LANGUAGE_NAMES: Final = {
    "ko": "Korean (한국어)",
    "ja": "Japanese (日本語)",
    "zh": "Chinese (中文)",
    "latin": "the user's language, not Korean",
}
_SPEAKERS: Final = (
    (HumanMessage, "user"),
    (AIMessage, "assistant"),
    (ToolMessage, "tool"),
    (SystemMessage, "previous summary"),
)


def quote_messages(messages: Iterable[AnyMessage]) -> str:
    """Renders messages as quoted paragraphs, each with its speaker; a closing tag in them can't end the quote."""
    return "\n".join(_quote(message) for message in messages)


def quote_text(text: str) -> str:
    """Escapes closing tags, so that a text can't end the quote that it stands in."""
    return text.replace("</source", "<\\/source").replace("</summary", "<\\/summary")


def _quote(message: AnyMessage) -> str:
    speaker = next((name for kind, name in _SPEAKERS if isinstance(message, kind)), message.type)
    calls = [f"{call['name']}({call['args']})" for call in message.tool_calls] if isinstance(message, AIMessage) else []
    parts = [message.text, *(f"(tool call: {call})" for call in calls)]
    return f"[{speaker}] " + quote_text("\n".join(part for part in parts if part))
