"""ASGI middleware: request ids and OpenAI-shaped errors, CORS, Host and Origin checks, and the guard of /metrics."""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Callable
from functools import cached_property
from typing import Final, NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from api.problem import REQUEST_ID, Problem, ProblemError, new_request_id, problem_of
from api.token_guard import bearer_token
from graph.server.identity import digest_of, is_loopback, is_reachable
from graph.server.metrics import CONTENT_TYPE
from graph.server.settings import Settings
from graph.value.error import InternalError, TurnfoldError

_log = logging.getLogger(__name__)


class Edge:
    """Middleware: answers errors with a `Problem`; logs internal errors without any user text."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id, is_answered = new_request_id(), False
        problem: Problem | None = None  # stays None if the client disconnected

        async def send_with_id(message: Message) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.start":
                is_answered = True
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            return  # the client is gone
        except (ProblemError, TurnfoldError, HTTPException) as error:
            problem = problem_of(error)
        except Exception:  # last handler of a request: every failure is logged and answered in the same shape
            _log.exception("request %s failed", request_id)
            if is_answered:
                raise  # a client takes a broken-off stream for a failure
            problem = problem_of(InternalError())
        if problem is not None and not is_answered:
            await problem.response()(scope, receive, send_with_id)


_OURS: Final = "x-turnfold-"
_ALLOWED: Final = re.compile(rf"authorization|content-type|last-event-id|({_OURS}|x-stainless-)[a-z0-9-]+", re.ASCII)
_EXPOSED: Final = ("location", "retry-after", "x-request-id")


class Cors:
    """Middleware: answers CORS preflights and adds the CORS headers for the origins in `CHAT_API_ORIGINS`.

    Preflights carry no token, so they are answered before the token check. Credentials are never allowed.
    `CORSMiddleware` can't allow headers by prefix, and new versions of OpenAI's own client send new `X-Stainless-`
    headers.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        self._app = app
        self._settings = settings

    @cached_property
    def _origins(self) -> tuple[str, ...]:
        return self._settings().chat_api_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
    """Returns the response to a preflight."""
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
    headers.add_vary_header("Origin")
    if origin:
        headers["Access-Control-Allow-Origin"] = origin
        ours = [name for name in headers if name.startswith(_OURS)]
        headers["Access-Control-Expose-Headers"] = ", ".join((*ours, *_EXPOSED))


_AUTHORITY: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(\d{1,5}))?", re.ASCII)
_PORTS: Final = {"http": "80", "https": "443"}
_POLICY_VIOLATION: Final = 1008
# First path segments of the HTTP API.
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
    """A host's name or address, and its port; "" for the scheme's default."""

    name: str
    port: str


class HostCheck:
    """Middleware: refuses a wrong `Host` or a foreign `Origin` with 403 and advice.

    Allowed hosts are `localhost` and loopback addresses at any port, and the names in `TURNFOLD_HOSTS`. An `Origin`
    must match the host; the HTTP API also accepts `CHAT_API_ORIGINS`. Without a sign-in, connections to a non-loopback
    address of the server are refused, too, unless `OPEN_WITHOUT_SIGN_IN` is set. Headers added by a proxy are ignored.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        self._app = app
        self._read_settings = settings

    @cached_property
    def _settings(self) -> Settings:
        return self._read_settings()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        # The start on such an address is refused under Streamlit's own server; another server doesn't report its
        # address.
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
    """Returns True for a path of the HTTP API."""
    path: str = scope["path"]
    return path.removeprefix("/").partition("/")[0] in _OF_PROGRAMS


def _sent(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for sent, value in scope["headers"] if sent == name]


def _authority(text: str) -> _Authority | None:
    match = _AUTHORITY.fullmatch(text)
    return _Authority(match[1].removesuffix("."), match[2] or "") if match else None


def _is_of(origin: str, host: _Authority) -> bool:
    """Compares an origin with the host; the scheme is ignored, as a proxy may have ended TLS."""
    scheme, _, rest = origin.partition("://")
    page, default = _authority(rest), _PORTS.get(scheme)
    if page is None or default is None:
        return False
    return page.name == host.name and (page.port or default) == (host.port or default)


PATH: Final = "/metrics"
# With one of these headers the peer address is a proxy's.
_BY_PROXY: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_NOT_FOUND: Final = 404
_NO_TOKEN: Final = 401


def metrics_route(figures: Callable[[], bytes]) -> Route:
    """Returns the route of the server's metrics, in Prometheus's text format; `MetricsGuard` protects the path."""

    def show(_: Request) -> Response:
        return Response(figures(), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})

    return Route(PATH, show, methods=["GET"])


class MetricsGuard:
    """Middleware: lets metrics be read with `METRICS_TOKEN`, or from this computer only if the token isn't set.

    Guards each path ending in `/metrics`: Turnfold's, and Streamlit's `/_stcore/metrics` at any mount point.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        self._app = app
        self._settings = settings

    @cached_property
    def _digest(self) -> bytes | None:
        token = self._settings().metrics_token
        return None if token is None else digest_of(token.get_secret_value())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
