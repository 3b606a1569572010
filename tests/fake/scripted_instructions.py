"""The instructions of a scripted service, over plain texts."""

from __future__ import annotations

from collections.abc import Callable

from graph.core.instruction import checked_instructions, checked_preset
from graph.core.text import estimate_tokens
from tests.fake.scripted_session import ScriptedSession


class ScriptedInstructions:
    """Keeps the text for all chats in `all`, those of chats by id in `chats`, and presets in `named`."""

    def __init__(self, session_of: Callable[[str], ScriptedSession]) -> None:
        self._session_of = session_of
        self.all = ""
        self.chats: dict[str, str] = {}
        self.named: dict[str, str] = {}

    def for_all(self) -> str:
        return self.all

    def keep_for_all(self, text: str) -> None:
        self.all = checked_instructions(text)

    def of_session(self, session_id: str) -> str:
        return self.chats.get(session_id, "")

    def keep_of_session(self, session_id: str, text: str) -> None:
        self.chats[session_id] = checked_instructions(text)

    def take_brought(self, session_id: str, *, is_used: bool) -> None:
        session = self._session_of(session_id)
        if is_used:
            self.chats[session_id] = session.brought_instructions
        session.brought_instructions = ""

    def checked(self, text: str) -> str:
        return checked_instructions(text)

    def presets(self) -> dict[str, str]:
        return dict(self.named)

    def keep_preset(self, name: str, text: str) -> str:
        name, text = checked_preset(name, text)
        self.named[name] = text
        return name

    def forget_preset(self, name: str) -> None:
        del self.named[name]

    def tokens(self, text: str) -> int:
        return estimate_tokens(text)
