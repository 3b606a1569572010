"""What a user wants every chat, or one, to be told: about themselves, and how to answer."""

from __future__ import annotations

from graph.core.instruction import checked_instructions
from graph.core.text import estimate_tokens
from graph.service.access import SessionAccess


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
        """Replaces the text of one chat."""
        self._access.own(session_id)
        self._stores.sessions.update(session_id, self._access.owner, instructions=checked_instructions(text))

    def checked(self, text: str) -> str:
        """Returns a text as it is kept, for a chat that its first message creates."""
        return checked_instructions(text)

    def tokens(self, text: str) -> int:
        """Estimates the tokens of a text, whatever its length."""
        return estimate_tokens(text.strip())
