"""Which program a request comes from, by its token; how many answers one program may wait for at once."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from api.problem import Problem
from api.refusal import BY_CODE
from graph.api_token import ApiToken
from graph.client import ClientOptions
from graph.settings import Settings

OPEN_ANSWERS: Final = 64
_OFF: Final = Problem(
    404, "unknown_url", "There is nothing at this address. Whoever runs this server opens it by CHAT_API_TOKEN."
)
_TOO_MANY: Final = Problem(
    429,
    "rate_limit_exceeded",
    f"This token has {OPEN_ANSWERS} answers under way. Wait until one of them has ended.",
    retry_after_seconds=5,
)


@dataclass(frozen=True)
class ApiClient:
    """The program that sent a request; stands in `request.state.client`.

    Attributes:
        name: The name of its token.
        owner: Whose sessions it works with: `service.for_owner(client.owner)`.
        tools: The names of the server's tools that it may use; None for all.
    """

    name: str
    owner: str
    tools: frozenset[str] | None

    def options(self) -> ClientOptions:
        """Returns what it adds to a turn begun by routes of our own: its name and which tools may be used."""
        return ClientOptions(self.name, system=None, allowed_tools=self.tools, hears_restarts=True)


class ApiClients:
    """The programs that are let in, by the hashes of their tokens."""

    def __init__(self, tokens: Iterable[ApiToken]) -> None:
        self._by_digest = [
            (_digest(token.token.get_secret_value().encode()), ApiClient(token.name, token.owner, token.tools))
            for token in tokens
        ]

    def __bool__(self) -> bool:
        """Whether any program is let in."""
        return bool(self._by_digest)

    def find(self, authorization: Iterable[bytes]) -> ApiClient | None:
        """Returns the program of the only `Authorization` header, None for anything but one known Bearer token.

        How long it takes tells nothing of the tokens: all are compared, by their hashes, to the last byte.
        """
        scheme, _, token = b"".join(sent := list(authorization)).partition(b" ")
        digest, found = _digest(token.strip()), None
        for known, client in self._by_digest:
            if hmac.compare_digest(known, digest):
                found = client
        return found if len(sent) == 1 and scheme.lower() == b"bearer" else None


class Guard:
    """Middleware of the routes for programs: passes on requests with a token, and says of each whose it is.

    Without any token in the settings there is nothing behind it: each request is answered by 404.

    Args:
        app: The routes.
        settings: Returns the settings; called at the first request.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        self._app = app
        self._settings = settings
        self._open: Counter[str] = Counter()

    @cached_property
    def _clients(self) -> ApiClients:
        return ApiClients(self._settings().api_tokens)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one connection; all that isn't HTTP passes unchanged."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = [value for name, value in scope["headers"] if name == b"authorization"]
        if not self._clients:
            await _OFF.response()(scope, receive, send)
        elif (client := self._clients.find(sent)) is None:
            await BY_CODE["sign_in"].response()(scope, receive, send)
        else:
            scope.setdefault("state", {})["client"] = client
            await self._pass_on(client, scope, receive, send)

    async def _pass_on(self, client: ApiClient, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on; one for an answer only if its program has room for it, and counts it until it ends."""
        if not _is_for_an_answer(scope):
            await self._app(scope, receive, send)
            return
        if self._open[client.name] >= OPEN_ANSWERS:
            await _TOO_MANY.response()(scope, receive, send)
            return
        self._open[client.name] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[client.name] -= 1


def _is_for_an_answer(scope: Scope) -> bool:
    """Whether a request may stay open for as long as a turn runs; a program with many of these can still stop them."""
    path = scope["path"].rstrip("/")
    if scope["method"] == "GET":
        return bool(path.endswith("/events"))
    return scope["method"] == "POST" and not path.endswith("/stop")


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
