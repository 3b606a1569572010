"""What a user wants every chat, or one, to be told: about themselves, and how to answer."""

from __future__ import annotations

from collections.abc import Mapping

from graph.core.instruction import MOST_PRESETS, checked_instructions, checked_preset
from graph.core.text import estimate_tokens
from graph.service.access import SessionAccess
from graph.value.error import InputError


class Instructions:
    """The instructions of one owner, sent from the next turn on.

    Methods that take a session id raise `NotFoundError` for an unknown session; those that keep a text raise
    `InputError` `instructions_too_long`.
    """

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._stores = access.stores

    def for_all(self) -> str:
        """Returns the text for all chats but those that programs begin, "" for none."""
        self._access.check_admitted()
        return self._stores.instructions.get(self._access.owner)

    def keep_for_all(self, text: str) -> None:
        """Replaces the text for all chats."""
        self._access.check_admitted()
        self._stores.instructions.keep(self._access.owner, checked_instructions(text))

    def of_session(self, session_id: str) -> str:
        """Returns the text of one chat, "" for none."""
        return self._access.own(session_id).instructions

    def keep_of_session(self, session_id: str, text: str) -> None:
        """Replaces the text of one chat, and what its file brought."""
        self._access.own(session_id)
        checked = checked_instructions(text)
        self._stores.sessions.update(session_id, self._access.owner, instructions=checked, brought_instructions="")

    def take_brought(self, session_id: str, *, is_used: bool) -> None:
        """Makes the text that a chat's file brought the chat's own, or leaves it out for good."""
        session = self._access.own(session_id)
        self.keep_of_session(session_id, session.brought_instructions if is_used else session.instructions)

    def checked(self, text: str) -> str:
        """Returns a text as it is kept, for a chat that its first message creates."""
        return checked_instructions(text)

    def presets(self) -> Mapping[str, str]:
        """Returns the texts kept to be chosen for a chat, by name, in the order of the names."""
        self._access.check_admitted()
        return self._stores.instructions.presets(self._access.owner)

    def keep_preset(self, name: str, text: str) -> str:
        """Keeps a text by a name, in place of one of that name; returns the name as it is kept.

        Raises:
            InputError: `bad_preset` (no name, one over 40 characters, or no text), `instructions_too_long` or
                `too_many_presets` (over 50).
        """
        self._access.check_admitted()
        name, text = checked_preset(name, text)
        if not self._stores.instructions.keep_preset(self._access.owner, name, text, most=MOST_PRESETS):
            raise InputError("too_many_presets", str(MOST_PRESETS))
        return name

    def forget_preset(self, name: str) -> None:
        """Deletes a preset; chats that it was chosen for keep its text."""
        self._access.check_admitted()
        self._stores.instructions.forget_preset(self._access.owner, name)

    def tokens(self, text: str) -> int:
        """Estimates the tokens of a text, whatever its length."""
        return estimate_tokens(text.strip())
