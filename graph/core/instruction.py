"""The user's own instructions, for all chats and for one, as they stand in the system prompt."""

from __future__ import annotations

from typing import Final

from graph.core.text import plain_text
from graph.core.turn import headed
from graph.value.error import InputError
from graph.value.view import MOST_INSTRUCTIONS_CHARS
from prompt.system.framing import OWN_CHAT_HEADING, OWN_HEADING, Language

MOST_PRESET_NAME_CHARS: Final = 40
MOST_PRESETS: Final = 50


def checked_instructions(text: str) -> str:
    """Returns a text as it is stored; raises `InputError` `instructions_too_long` over 2,000 characters."""
    text = plain_text(text).strip()
    if len(text) > MOST_INSTRUCTIONS_CHARS:
        raise InputError("instructions_too_long", f"{len(text)} > {MOST_INSTRUCTIONS_CHARS}")
    return text


def checked_preset(name: str, text: str) -> tuple[str, str]:
    """Returns a preset's name and text as they are stored; raises `InputError` if a limit isn't kept."""
    name, text = " ".join(plain_text(name).split()), checked_instructions(text)
    if not (text and 1 <= len(name) <= MOST_PRESET_NAME_CHARS):
        raise InputError("bad_preset")
    return name, text


def own_block(for_all: str, for_chat: str, language: Language) -> str:
    """Renders the two texts, each below its heading; "" if both are empty."""
    parts = (OWN_HEADING[language], for_all), (OWN_CHAT_HEADING[language], for_chat)
    return "\n\n".join(headed(heading, text) for heading, text in parts if text)
