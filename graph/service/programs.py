"""The programs of an owner: makes, lists and withdraws their tokens, and finds whose a token is."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import SecretStr

from graph.core.text import plain_text
from graph.server.identity import NAME_CHARS, ApiToken, is_name, new_token
from graph.service.access import SessionAccess
from graph.value.error import InputError
from graph.value.view import MadeToken, ProgramToken


class Programs:
    """The programs that one owner lets in by tokens, beside those that the server's settings name."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access

    def list(self) -> tuple[ProgramToken, ...]:
        """Returns the owner's tokens that are in force, oldest first."""
        return tuple(self._access.programs.tokens.of_owner(self._access.owner))

    def admit(self, name: str, *, tools: Collection[str] | None = None) -> MadeToken:
        """Makes a token for a program, which works with this owner's sessions.

        Args:
            name: Of the program: what the page shows beside what it asked.
            tools: The names of the server's tools that it may use; None for all.

        Raises:
            InputError: `bad_program_name`, `token_name_taken` or `too_many_tokens`.
            StoreError: It couldn't be kept.
        """
        name = plain_text(name).strip()
        if not is_name(name, most_chars=NAME_CHARS):
            raise InputError("bad_program_name")
        settings, owner = self._access.settings, self._access.owner
        if any(token.owner == owner and token.name == name for token in settings.api_tokens):
            raise InputError("token_name_taken", name)
        secret = new_token()
        return MadeToken(SecretStr(secret), self._access.programs.tokens.add(owner, name, secret, tools))

    def withdraw(self, token_id: str) -> None:
        """Lets a program in no more, from its next request on; does nothing if it's no token of this owner."""
        self._access.programs.tokens.withdraw(self._access.owner, token_id)

    def find(self, secret: str) -> ApiToken | None:
        """Returns what an owner's token stands for; None if there is no such token."""
        found = self._access.programs.tokens.find(secret)
        if found is None:
            return None
        owner, token = found
        return ApiToken(token.name, owner, SecretStr(secret), token.tools)

    def are_let_in(self) -> bool:
        """Whether any owner has made a token that is in force."""
        return self._access.programs.tokens.has_any()
