"""Authenticates programs by token, and limits how many answers a program may wait for at once."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import anyio
import anyio.to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from api.problem import BY_CODE, Problem
from graph.server.identity import ApiToken, digest_of
from graph.server.settings import Settings
from graph.value.client import ClientOptions

OPEN_ANSWERS: Final = 64
_THREADS: Final = 16
_OFF: Final = Problem(
    404,
    "unknown_url",
    "There is nothing at this address. Whoever runs this server opens it by CHAT_API_TOKEN, or a user by a token that "
    "is made on the page.",
)
_TOO_MANY: Final = Problem(
    429,
    "rate_limit_exceeded",
    f"This token has {OPEN_ANSWERS} answers under way. Wait until one of them has ended.",
    retry_after_seconds=5,
)


@dataclass(frozen=True)
class ApiClient:
    """The program that sent a request; stored in `request.state.client`.

    Attributes:
        name: The token's name.
        owner: The owner of the program's sessions: `service.for_owner(client.owner)`.
        tools: Names of the server's allowed tools; None for all.
    """

    name: str
    owner: str
    tools: frozenset[str] | None

    def options(self) -> ClientOptions:
        """Returns the turn options of routes other than `/v1`: the program's name and its allowed tools."""
        return ClientOptions(self.name, system=None, allowed_tools=self.tools, hears_restarts=True)


def bearer_token(authorization: Iterable[bytes]) -> str:
    """Returns the token of the only `Authorization` header, "" for anything but a Bearer token."""
    scheme, _, sent = b"".join(headers := list(authorization)).partition(b" ")
    return sent.strip().decode("ascii", "replace") if len(headers) == 1 and scheme.lower() == b"bearer" else ""


class ProgramSource(Protocol):
    """The tokens created by owners; implemented by `service.programs`."""

    def find(self, secret: str) -> ApiToken | None: ...

    def are_let_in(self) -> bool: ...


class ApiClients:
    """The known programs, by the hashes of their tokens.

    Args:
        tokens: Tokens from the settings.
        programs: Returns the tokens created by owners.
    """

    def __init__(self, tokens: Iterable[ApiToken], programs: Callable[[], ProgramSource]) -> None:
        self._by_digest = [(digest_of(token.token.get_secret_value()), token) for token in tokens]
        self._programs = programs

    def are_let_in(self) -> bool:
        return bool(self._by_digest) or self._programs().are_let_in()

    def find(self, authorization: Iterable[bytes]) -> ApiClient | None:
        """Returns the program of the only `Authorization` header, None for anything but a known Bearer token.

        Takes constant time for the tokens from the settings: all are compared, by their hashes, to the last byte.

        Raises:
            StoreError: The tokens can't be read.
        """
        if not (secret := bearer_token(authorization)):
            return None
        token = self._listed(secret) or self._programs().find(secret)
        return None if token is None else ApiClient(token.name, token.owner, token.tools)

    def _listed(self, secret: str) -> ApiToken | None:
        digest, found = digest_of(secret), None
        for known, token in self._by_digest:
            if hmac.compare_digest(known, digest):
                found = token
        return found


class Guard:
    """Middleware of the HTTP API: requires a token and stores the program in the request's state.

    Answers 404 to everything while no token exists.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings], programs: Callable[[], ProgramSource]) -> None:
        self._app = app
        self._settings = settings
        self._programs = programs
        self._open: Counter[tuple[str, str]] = Counter()

    @cached_property
    def _clients(self) -> ApiClients:
        return ApiClients(self._settings().api_tokens, self._programs)

    @cached_property
    def _threads(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = [value for name, value in scope["headers"] if name == b"authorization"]
        admitted = await anyio.to_thread.run_sync(self._admitted, sent, limiter=self._threads)
        if isinstance(admitted, Problem):
            await admitted.response()(scope, receive, send)
        else:
            scope.setdefault("state", {})["client"] = admitted
            await self._pass_on(admitted, scope, receive, send)

    def _admitted(self, authorization: list[bytes]) -> ApiClient | Problem:
        if (client := self._clients.find(authorization)) is not None:
            return client
        return BY_CODE["sign_in"] if self._clients.are_let_in() else _OFF

    async def _pass_on(self, client: ApiClient, scope: Scope, receive: Receive, send: Send) -> None:
        """Forwards a request; a request for an answer counts towards the program's limit while open."""
        if not _is_for_an_answer(scope):
            await self._app(scope, receive, send)
            return
        program = client.owner, client.name
        if self._open[program] >= OPEN_ANSWERS:
            await _TOO_MANY.response()(scope, receive, send)
            return
        self._open[program] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[program] -= 1


def _is_for_an_answer(scope: Scope) -> bool:
    """Returns True if a request may stay open as long as a turn runs; stopping a turn never counts."""
    path = scope["path"].rstrip("/")
    if scope["method"] == "GET":
        return bool(path.endswith("/events"))
    return scope["method"] == "POST" and not path.endswith("/stop")
