"""Middleware of the routes for programs: lets pages of the named origins use them from a browser, by their token."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.server.settings import Settings

_OURS: Final = "x-turnfold-"
_ALLOWED: Final = re.compile(rf"authorization|content-type|last-event-id|({_OURS}|x-stainless-)[a-z0-9-]+", re.ASCII)
_EXPOSED: Final = ("location", "retry-after", "x-request-id")


class Cors:
    """Answers the questions that browsers ask before a request, and says who may read an answer.

    They carry no token, so this stands before the check of tokens. Cookies are never asked for, and no origin is
    allowed that `CHAT_API_ORIGINS` doesn't name. `CORSMiddleware` takes no prefixes of headers, and new versions of
    OpenAI's own client send new `X-Stainless-` ones.

    Args:
        app: The routes and the check of tokens.
        settings: Returns the settings; called at the first request.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        self._app = app
        self._settings = settings

    @cached_property
    def _origins(self) -> tuple[str, ...]:
        return self._settings().chat_api_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one connection; all that isn't HTTP passes unchanged."""
        if scope["type"] != "http" or not self._origins:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = next((named for named in self._origins if named == headers.get("origin")), None)
        if origin and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await _permission(origin, headers)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _allow(MutableHeaders(scope=message), origin)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _permission(origin: str, asked: Headers) -> Response:
    """Returns the answer to a browser that asks whether it may send a request."""
    names = [name.strip().lower() for name in asked.get("access-control-request-headers", "").split(",")]
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
            "Access-Control-Allow-Headers": ", ".join(filter(_ALLOWED.fullmatch, names)),
            "Access-Control-Max-Age": "600",
            "Vary": "Origin, Access-Control-Request-Headers",
        },
    )


def _allow(headers: MutableHeaders, origin: str | None) -> None:
    """Adds to an answer which page may read it, and which of its headers."""
    headers.add_vary_header("Origin")
    if origin:
        headers["Access-Control-Allow-Origin"] = origin
        ours = [name for name in headers if name.startswith(_OURS)]
        headers["Access-Control-Expose-Headers"] = ", ".join((*ours, *_EXPOSED))
