"""Middleware for page and programs: answers only under names of this server, and only to pages of its own.

A page of another site can have its own name lead to this computer (DNS rebinding): the browser then takes the two for
one. What it can't do is send a `Host` that it isn't reached by.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Final, NamedTuple

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from api.problem import Problem
from graph.server.identity import is_loopback, is_reachable
from graph.server.settings import Settings

_AUTHORITY: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(\d{1,5}))?", re.ASCII)
_PORTS: Final = {"http": "80", "https": "443"}
_POLICY_VIOLATION: Final = 1008
# What the paths of the routes for programs begin with.
_OF_PROGRAMS: Final = ("v1", "chat", "sessions")
_WRONG_HOST: Final = Problem(
    403,
    "host_not_allowed",
    "Turnfold doesn't answer under this name. Whoever runs it allows a name by the setting TURNFOLD_HOSTS, "
    "such as TURNFOLD_HOSTS=chat.example.com; localhost always works on the computer itself.",
)
_WITHOUT_SIGN_IN: Final = Problem(
    403,
    "host_not_allowed",
    "Without a sign-in Turnfold answers to its own computer alone. Whoever runs it can set OIDC_ISSUER, or "
    "OPEN_WITHOUT_SIGN_IN=true if something in front of it asks who comes.",
)
_WRONG_ORIGIN: Final = Problem(
    403,
    "origin_not_allowed",
    "Turnfold doesn't answer to pages of other sites. Whoever runs it allows one to use the programs' routes by the "
    "setting CHAT_API_ORIGINS; a proxy in front of it has to pass on the Host that it was asked for.",
)


class _Authority(NamedTuple):
    """A host's name or address, and its port, "" for the scheme's own."""

    name: str
    port: str


class HostCheck:
    """Refuses each connection that came by another name, or from another site's page, with 403 and what to do.

    Without a sign-in it refuses those that reach it at an address of this computer that isn't loopback, too, unless
    `OPEN_WITHOUT_SIGN_IN` lets them in. Allowed are `localhost` and loopback addresses at any port, and what
    `TURNFOLD_HOSTS` names. An `Origin`, which browsers alone send, has to be that of the same host; for the programs'
    routes one of `CHAT_API_ORIGINS` will do. Only headers, path and address of the connection itself count, nothing
    that a proxy adds.

    Args:
        app: Page and routes.
        settings: Returns the settings; called at the first connection.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        self._app = app
        self._read_settings = settings

    @cached_property
    def _settings(self) -> Settings:
        return self._read_settings()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one connection, HTTP or websocket."""
        problem = self._problem(scope) if scope["type"] in ("http", "websocket") else None
        if problem is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(_POLICY_VIOLATION)(scope, receive, send)
        elif is_for_programs(scope):
            await problem.response()(scope, receive, send)
        else:
            await PlainTextResponse(problem.message, problem.status)(scope, receive, send)

    def _problem(self, scope: Scope) -> Problem | None:
        # A start on such an address is refused, but a server that isn't Streamlit's own says nothing of its address.
        if self._is_for_oneself and is_reachable((scope.get("server") or ("",))[0]):
            return _WITHOUT_SIGN_IN
        hosts, origins = (_sent(scope, name) for name in (b"host", b"origin"))
        host = _authority(hosts[0]) if len(hosts) == 1 else None
        if host is None or not (is_loopback(host.name) or self._is_named(host)):
            return _WRONG_HOST
        if is_for_programs(scope) and origins and origins[0] in self._settings.chat_api_origins:
            origins = origins[1:]
        return None if all(_is_of(origin, host) for origin in origins) else _WRONG_ORIGIN

    @cached_property
    def _is_for_oneself(self) -> bool:
        return not (self._settings.has_sign_in or self._settings.open_without_sign_in)

    def _is_named(self, host: _Authority) -> bool:
        names = self._settings.turnfold_hosts
        return host.name in names or f"{host.name}:{host.port}" in names


def is_for_programs(scope: Scope) -> bool:
    """Whether the path is one of the routes for programs."""
    path: str = scope["path"]
    return path.removeprefix("/").partition("/")[0] in _OF_PROGRAMS


def _sent(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for sent, value in scope["headers"] if sent == name]


def _authority(text: str) -> _Authority | None:
    match = _AUTHORITY.fullmatch(text)
    return _Authority(match[1].removesuffix("."), match[2] or "") if match else None


def _is_of(origin: str, host: _Authority) -> bool:
    """Whether the page is of the host that was asked; a proxy may have ended its encryption."""
    scheme, _, rest = origin.partition("://")
    page, default = _authority(rest), _PORTS.get(scheme)
    if page is None or default is None:
        return False
    return page.name == host.name and (page.port or default) == (host.port or default)
