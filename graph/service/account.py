"""What an owner has beside sessions: what they cost in all, and the programs that are let in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from pydantic import SecretStr

from graph.core.cost import PriceList, TokenUse, cost_of
from graph.core.text import plain_text
from graph.model.factory import ChatModels
from graph.server.identity import NAME_CHARS, ApiToken, is_name, new_token
from graph.service.access import SessionAccess
from graph.store.api_token import ApiTokenStore
from graph.store.token_use import TokenUseStore
from graph.value.error import InputError
from graph.value.view import CostView, MadeToken, ProgramToken


class Costs:
    """What one owner's sessions cost; nothing is told without prices."""

    def __init__(
        self, access: SessionAccess, *, token_uses: TokenUseStore, prices: PriceList | None, models: ChatModels
    ) -> None:
        self._access = access
        self._token_uses = token_uses
        self._prices = prices
        self._models = models

    def of_session(self, session_id: str) -> CostView | None:
        """Returns what all calls of a session cost, those of earlier attempts and discarded summaries too.

        A fork costs what it adds: what it was copied from counts in its origin.

        Raises:
            NotFoundError: This owner has no such session.
        """
        self._access.own(session_id)
        return self._view(lambda: self._token_uses.of_session(session_id))

    def of_all(self) -> CostView | None:
        """Returns the same for all sessions that the owner has."""
        self._access.check_admitted()
        return self._view(lambda: self._token_uses.of_owner(self._access.owner))

    def _view(self, read: Callable[[], list[TokenUse]]) -> CostView | None:
        if self._prices is None:
            return None
        return cost_of(read(), self._prices, default_model=self._models.default_name)


class Programs:
    """The programs that one owner lets in by tokens, beside those `named` by the server's settings."""

    def __init__(self, owner: str, *, tokens: ApiTokenStore, named: Sequence[ApiToken]) -> None:
        self._owner = owner
        self._tokens = tokens
        self._named = named

    def list(self) -> tuple[ProgramToken, ...]:
        """Returns the owner's tokens that are in force, oldest first."""
        return tuple(self._tokens.of_owner(self._owner))

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
        if any(token.owner == self._owner and token.name == name for token in self._named):
            raise InputError("token_name_taken", name)
        secret = new_token()
        return MadeToken(SecretStr(secret), self._tokens.add(self._owner, name, secret, tools))

    def withdraw(self, token_id: str) -> None:
        """Lets a program in no more, from its next request on; does nothing if it's no token of this owner."""
        self._tokens.withdraw(self._owner, token_id)

    def find(self, secret: str) -> ApiToken | None:
        """Returns what an owner's token stands for; None if there is no such token."""
        found = self._tokens.find(secret)
        if found is None:
            return None
        owner, token = found
        return ApiToken(token.name, owner, SecretStr(secret), token.tools)

    def are_let_in(self) -> bool:
        """Whether any owner has made a token that is in force."""
        return self._tokens.has_any()
