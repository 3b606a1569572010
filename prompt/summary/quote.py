"""Quotes messages inside a prompt: a numbered tag for each message, which quoted text can't imitate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

BEFORE_CHARS: Final = 600
LANGUAGE_NAMES: Final[Mapping[str, str]] = {
    "ko": "Korean (한국어)",
    "ja": "Japanese (日本語)",
    "zh": "Chinese (中文)",
    "cyrillic": "the user's language, in Cyrillic script",
    "arabic": "the user's language, in Arabic script",
}
USERS_LANGUAGE: Final = "the language of the user's own messages"
_SPEAKERS: Final = (
    (HumanMessage, "user"),
    (AIMessage, "assistant"),
    (ToolMessage, "tool"),
    (SystemMessage, "previous summary"),
)
_OUR_TAG: Final = re.compile(r"<(?=(?:\s*/\s*)?(?:m|source|before|summary|facts)\b)", re.IGNORECASE)


def escape(text: str) -> str:
    """Escapes each `<` that opens one of the prompt's tags, so that a text can't end its quote or forge a speaker."""
    return _OUR_TAG.sub("&lt;", text)


def quote_messages(messages: Sequence[AnyMessage], turns: Sequence[int] = ()) -> str:
    """Renders each message as `<m turn="2" from="user">…</m>`, oldest first.

    Args:
        messages: The messages; a `SystemMessage` is a previous summary.
        turns: The turn of each message, 0 for none; () counts from 1, a new turn at each user message.
    """
    numbers = turns or count_turns(messages)
    return "\n".join(_quote(message, turn) for message, turn in zip(messages, numbers, strict=True))


def quote_before(before: str) -> str:
    """Renders the end of the text just before the source, with a trailing newline; "" for an empty text."""
    text = before.strip()
    if len(text) > BEFORE_CHARS:
        text = "…" + text[1 - BEFORE_CHARS :]
    return f"<before>\n{escape(text)}\n</before>\n" if text else ""


def count_turns(messages: Iterable[AnyMessage]) -> list[int]:
    """Returns the turn of each message, with turn 1 at the first user message; 0 for a previous summary."""
    turns: list[int] = []
    turn = 0
    for message in messages:
        turn += isinstance(message, HumanMessage)
        turns.append(0 if isinstance(message, SystemMessage) else max(1, turn))
    return turns


def name_language(language: str) -> str:
    """Returns the name of a summary's language for an English prompt.

    Args:
        language: "ko", "en", or the script of the user's own words ("latin", "ja", "zh", "cyrillic", "arabic").
    """
    return LANGUAGE_NAMES.get(language, USERS_LANGUAGE)


def _quote(message: AnyMessage, turn: int) -> str:
    speaker = next((name for kind, name in _SPEAKERS if isinstance(message, kind)), message.type)
    calls = [f"{call['name']}({call['args']})" for call in message.tool_calls] if isinstance(message, AIMessage) else []
    parts = [message.text, *(f"(tool call: {call})" for call in calls)]
    text = escape("\n".join(part for part in parts if part))
    number = f'turn="{turn}" ' if turn else ""
    return f'<m {number}from="{speaker}">{text}</m>'
