"""All routes for programs beside OpenAI's own, the document of all of them, and the page that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp

from api import session_route, summary_route
from api.docs_page import chosen_language, render
from api.edge import Edge
from api.openapi import document
from api.route_table import Operation
from api.served import ServedOperations
from graph.service import ChatService
from graph.settings import Settings

# Each module with routes of its own has its operations here, too.
OPERATIONS: Final[tuple[Operation, ...]] = (*session_route.OPERATIONS, *summary_route.OPERATIONS)


class ProgramRoutes:
    """What programs reach beside `/v1`'s own routes.

    Usage:
        >>> more = ProgramRoutes(service.for_owner, settings)
        >>> app = Starlette(routes=[door.routes(guard, beside=more.below_v1()), *more.routes(guard)])

    Args:
        service_of: Returns the service of an owner.
        settings: Returns the settings; called at the first request.
    """

    def __init__(self, service_of: Callable[[str], ChatService], settings: Callable[[], Settings]) -> None:
        self._served = ServedOperations(service_of)
        self._settings = settings

    def below_v1(self) -> list[Route]:
        """Returns the routes that belong below `/v1`."""
        return self._served.routes(summary_route.OPERATIONS, below="/v1")

    def routes(self, *middleware: Middleware, beside: Iterable[Route] = ()) -> list[BaseRoute]:
        """Returns the routes of sessions, the document and its page.

        Args:
            middleware: What stands before the routes; it sets `request.state.client`.
            beside: Further routes below `/chat` and `/sessions`.
        """
        guarded = [*self._served.routes(session_route.OPERATIONS), *beside]
        return [
            *_behind(guarded, ("/chat", "/sessions"), middleware),
            Route("/openapi.json", Edge(Router([Route("/openapi.json", self._show_document)]))),
            Route("/docs", Edge(Router([Route("/docs", self._show_docs)]))),
        ]

    def _show_document(self, _: Request) -> JSONResponse:
        self._check_open()
        return JSONResponse(self._document)

    def _show_docs(self, request: Request) -> HTMLResponse:
        self._check_open()
        language = chosen_language(request.query_params.get("lang", ""), request.headers.get("accept-language", ""))
        headers = {"Content-Language": language, "Vary": "Accept-Language"}
        return HTMLResponse(render(self._document, language), headers=headers)

    @cached_property
    def _document(self) -> dict[str, Any]:
        return document(OPERATIONS)

    def _check_open(self) -> None:
        """Without a token there is no door, and nothing tells of one."""
        if not self._settings().api_tokens:
            raise HTTPException(404)


def _behind(routes: Sequence[BaseRoute], prefixes: Iterable[str], middleware: Sequence[Middleware]) -> list[BaseRoute]:
    """Returns what leads all paths of these beginnings to the routes, behind one instance of each middleware.

    A `Mount` answers the beginning itself only with a slash behind it.
    """
    # A redirect would follow the Host header, and makes a GET of a POST.
    app: ASGIApp = Router(routes, redirect_slashes=False)
    for layer in reversed((Middleware(Edge), *middleware)):
        app = layer.cls(app, *layer.args, **layer.kwargs)
    return [Route(path, app) for prefix in prefixes for path in (prefix, f"{prefix}/{{rest:path}}")]
