"""Serves the server's figures, and keeps them and Streamlit's own to whoever may read them."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import cached_property
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from api.token_guard import bearer_token
from graph.server.identity import digest_of, is_loopback
from graph.server.metrics import CONTENT_TYPE
from graph.server.settings import Settings

PATH: Final = "/metrics"
# What a proxy says of whom it asks for: then the address of the connection is its own.
_BY_PROXY: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_NOT_FOUND: Final = 404
_NO_TOKEN: Final = 401


def metrics_route(figures: Callable[[], bytes]) -> Route:
    """Returns the route of the server's own figures; `MetricsGuard` stands before it.

    Args:
        figures: Returns them in Prometheus's text format.
    """

    def show(_: Request) -> Response:
        return Response(figures(), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})

    return Route(PATH, show, methods=["GET"])


class MetricsGuard:
    """Middleware: lets nobody read figures but whoever sends `METRICS_TOKEN`, or without one this computer itself.

    It holds for each path that ends in `/metrics`: ours, and Streamlit's `/_stcore/metrics`, wherever that is mounted.

    Args:
        app: Page and routes.
        settings: Returns the settings; called at the first request for figures.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        self._app = app
        self._settings = settings

    @cached_property
    def _digest(self) -> bytes | None:
        token = self._settings().metrics_token
        return None if token is None else digest_of(token.get_secret_value())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one connection; all that isn't a request for figures passes unchanged."""
        app = self._app
        if scope["type"] == "http" and scope["path"].rstrip("/").endswith(PATH):
            request = Request(scope)
            if self._digest is None and not _is_from_here(request):
                app = PlainTextResponse("Not Found", _NOT_FOUND)
            elif self._digest is not None and not _has_token(request, self._digest):
                app = PlainTextResponse("Unauthorized", _NO_TOKEN, {"WWW-Authenticate": "Bearer"})
        await app(scope, receive, send)


def _is_from_here(request: Request) -> bool:
    if request.client is None or any(name in request.headers for name in _BY_PROXY):
        return False
    return is_loopback(request.client.host) and is_loopback(request.url.hostname or "")


def _has_token(request: Request, digest: bytes) -> bool:
    sent = [value for name, value in request.headers.raw if name == b"authorization"]
    return hmac.compare_digest(digest_of(bearer_token(sent)), digest)
