"""All routes for programs behind one check of tokens, and the OpenAPI document of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from api.completions import Door
from api.middleware import Cors, Edge, is_for_programs
from api.openapi import document
from api.route_table import Operation, ServedOperations
from api.token_guard import ApiClients, Guard, ProgramSource
from graph.server.settings import Settings
from graph.service import ChatService

_CHAT_THREADS: Final = 16
_DOCUMENT: Final = "/openapi.json"
# Each module with routes has its operations here.
OPERATIONS: Final[tuple[Operation, ...]] = (
    *completions.OPERATIONS,
    *sessions.SUMMARY_OPERATIONS,
    *chat.OPERATIONS,
    *sessions.SESSION_OPERATIONS,
)


class ProgramRoutes:
    """What programs reach of the service.

    Usage:
        >>> programs = ProgramRoutes(service.for_owner, lambda: settings, lambda: service.programs)
        >>> app = Starlette(routes=programs.routes())
        ...
        >>> programs.close()

    Args:
        service_of: Returns the service of an owner; called for each request.
        settings: Returns the settings; called at the first request.
        tokens: Returns what knows the tokens that owners have made; called for each request.
    """

    def __init__(
        self,
        service_of: Callable[[str], ChatService],
        settings: Callable[[], Settings],
        tokens: Callable[[], ProgramSource],
    ) -> None:
        self._settings = settings
        self._tokens = tokens
        self._door = Door(lambda owner: service_of(owner).completions)
        self._chat = Chat(service_of, anyio.CapacityLimiter(_CHAT_THREADS))
        self._served = ServedOperations(service_of)

    def routes(self) -> list[BaseRoute]:
        """Returns all of them, other addresses below theirs included."""
        guarded = [
            self._door.routes(beside=self._served.routes(sessions.SUMMARY_OPERATIONS, below="/v1")),
            *self._chat.routes(),
            *self._served.routes(sessions.SESSION_OPERATIONS),
        ]
        checks = Middleware(Cors, self._settings), Middleware(Edge), Middleware(Guard, self._settings, self._tokens)
        return [
            _OfPrograms(_behind(checks, guarded)),
            Route(_DOCUMENT, _behind([Middleware(Edge)], [Route(_DOCUMENT, self._show_document, methods=["GET"])])),
        ]

    def close(self) -> None:
        """Ends what is being answered, as the server ends; from any thread."""
        self._door.close()
        self._chat.close()

    async def _show_document(self, _: Request) -> JSONResponse:
        clients = ApiClients(self._settings().api_tokens, self._tokens)
        # Without a token the routes don't exist, and nothing says that they could.
        if not await anyio.to_thread.run_sync(clients.are_let_in):
            raise HTTPException(404)
        return JSONResponse(self._document)

    @cached_property
    def _document(self) -> dict[str, Any]:
        return document(OPERATIONS)


class _OfPrograms(BaseRoute):
    """Leads every path of the routes for programs to them, so that no other part of the server answers there.

    A `Mount` answers its own path only with a slash behind it, and none that has a line break.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether it is a request for one of them."""
        return (Match.FULL if scope["type"] == "http" and is_for_programs(scope) else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on."""
        await self.app(scope, receive, send)


def _behind(layers: Sequence[Middleware], routes: Sequence[BaseRoute]) -> ASGIApp:
    """Returns the routes behind these layers, the outermost first."""
    # A redirect would follow the Host header, and makes a GET of a POST.
    app: ASGIApp = Router(routes, redirect_slashes=False)
    for layer in reversed(layers):
        app = layer.cls(app, *layer.args, **layer.kwargs)
    return app
