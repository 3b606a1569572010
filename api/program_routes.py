"""All routes of the HTTP API behind one token check, and their OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import anyio
import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from api import chat, completions, sessions
from api.chat import Chat
from api.completions import PATIENCE_SECONDS, CreateCompletion
from api.middleware import Cors, Edge, is_for_programs
from api.openapi import document
from api.route_table import ServedOperations, with_slash
from api.token_guard import ApiClients, Guard, ProgramSource
from graph.server.settings import Settings
from graph.service import ChatService

_DOCUMENT: Final = "/openapi.json"
OPERATIONS: Final = (*completions.OPERATIONS, sessions.SUMMARIZE, chat.SEND, chat.FOLLOW, *sessions.OPERATIONS)


class ProgramRoutes:
    """The HTTP API over a service.

    Usage:
        >>> programs = ProgramRoutes(service.for_owner, lambda: settings, lambda: service.programs)
        >>> app = Starlette(routes=programs.routes())
        ...
        >>> programs.close()

    Args:
        service_of: Returns the service of an owner; called for each request.
        settings: Returns the settings; called at the first request.
        tokens: Returns the tokens created by owners; called for each request.
        patience_seconds: How long a completion waits for its first event before the status is sent, and how long its
            stream may be silent.
    """

    def __init__(
        self,
        service_of: Callable[[str], ChatService],
        settings: Callable[[], Settings],
        tokens: Callable[[], ProgramSource],
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._settings = settings
        self._tokens = tokens
        self._create = CreateCompletion(lambda owner: service_of(owner).completions, patience_seconds=patience_seconds)
        self._chat = Chat(service_of)
        self._served = ServedOperations(service_of)

    def routes(self) -> list[BaseRoute]:
        """Returns the routes; they take every path below `/v1`, `/chat` and `/sessions`."""
        checks = Middleware(Cors, self._settings), Middleware(Edge), Middleware(Guard, self._settings, self._tokens)
        routes = [
            *self._served.routes(OPERATIONS),
            *with_slash(completions.CREATE.path, self._create, ["POST"]),
            *with_slash(chat.SEND.path, self._chat.send, ["POST"]),
            *with_slash(chat.FOLLOW.path, self._chat.follow, ["GET"]),
        ]
        described = [Route(_DOCUMENT, self._show_document, methods=["GET"])]
        # A redirect would use the Host header, and turn a POST into a GET.
        return [
            _OfPrograms(Router(routes, redirect_slashes=False, middleware=checks)),
            Route(_DOCUMENT, Router(described, redirect_slashes=False, middleware=[Middleware(Edge)])),
        ]

    def close(self) -> None:
        """Ends open responses at shutdown; from any thread."""
        self._create.close()
        self._chat.close()

    async def _show_document(self, _: Request) -> JSONResponse:
        clients = ApiClients(self._settings().api_tokens, self._tokens)
        # Without any token the API is off.
        if not await anyio.to_thread.run_sync(clients.are_let_in):
            raise HTTPException(404)
        return JSONResponse(self._document)

    @cached_property
    def _document(self) -> dict[str, Any]:
        return document(OPERATIONS)


class _OfPrograms(BaseRoute):
    """Matches every path of the HTTP API, so that no other part of the server answers there.

    A `Mount` matches its own path only with a trailing slash, and never a path with a line break.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.FULL if scope["type"] == "http" and is_for_programs(scope) else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)
