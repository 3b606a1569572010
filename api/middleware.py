"""The ASGI guards: errors, CORS, Host and Origin, tokens of programs, /metrics, uploads and websockets."""

from __future__ import annotations

import hmac
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Protocol
from urllib.parse import quote

import anyio
import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from api.body import BUDGET, OVER_BUDGET, Budget
from api.connection import SOCKET, Socket, is_by_proxy
from api.problem import BY_CODE, REQUEST_ID, Problem, ProblemError, new_request_id, problem_of
from graph.attachment import MAX_BYTES, MAX_FILES
from graph.server.identity import ApiToken, Identity, digest_of, is_loopback, is_reachable
from graph.server.metrics import CONTENT_TYPE
from graph.server.settings import Settings
from graph.value.client import ClientOptions
from graph.value.error import InternalError, SignInError, TurnfoldError

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


class _Middleware:
    """A middleware over the settings, which are read at the first request."""

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        self._app = app
        self._read_settings = settings

    @cached_property
    def _settings(self) -> Settings:
        return self._read_settings()


@dataclass(frozen=True)
class ApiClient:
    """The program that sent a request; stored in `request.state.client`. `tools` is None for all of the server's.

    `is_personal` is true if one person uses the token, false if several share it.
    """

    name: str
    owner: str
    tools: frozenset[str] | None
    is_personal: bool = False

    def options(self) -> ClientOptions:
        return ClientOptions(self.name, system=None, allowed_tools=self.tools, supports_restart=True)


def bearer_token(authorization: Iterable[bytes]) -> str:
    """Returns the token of the only `Authorization` header, "" for anything but a Bearer token."""
    scheme, _, sent = b"".join(headers := list(authorization)).partition(b" ")
    return sent.strip().decode("ascii", "replace") if len(headers) == 1 and scheme.lower() == b"bearer" else ""


class ProgramSource(Protocol):
    def find(self, secret: str) -> ApiToken | None: ...

    def are_let_in(self) -> bool: ...


class ApiClients:
    """The known programs, by the hashes of their tokens: from the settings, and created by owners."""

    def __init__(self, tokens: Iterable[ApiToken], programs: Callable[[], ProgramSource]) -> None:
        self._by_digest = [(digest_of(token.token.get_secret_value()), token) for token in tokens]
        self._programs = programs

    def are_let_in(self) -> bool:
        return bool(self._by_digest) or self._programs().are_let_in()

    def find(self, authorization: Iterable[bytes]) -> ApiClient | None:
        """Returns the program of the only `Authorization` header, None for anything but a known Bearer token.

        Takes constant time for the tokens from the settings. Raises `StoreError` if the tokens can't be read.
        """
        if not (secret := bearer_token(authorization)):
            return None
        token = self._listed(secret) or self._programs().find(secret)
        return None if token is None else ApiClient(token.name, token.owner, token.tools, token.is_personal)

    def _listed(self, secret: str) -> ApiToken | None:
        digest, found = digest_of(secret), None
        for known, token in self._by_digest:
            if hmac.compare_digest(known, digest):
                found = token
        return found


class Guard(_Middleware):
    """Middleware: requires a token and stores the program in the request's state; 404 while no token exists."""

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings], programs: Callable[[], ProgramSource]) -> None:
        super().__init__(app, settings)
        self._programs = programs
        self._open: Counter[tuple[str, str]] = Counter()

    @cached_property
    def _clients(self) -> ApiClients:
        return ApiClients(self._settings.api_tokens, self._programs)

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
            problem = problem_of(error, scope["path"])
        except Exception:  # last handler of a request: every failure is logged and answered in the same shape
            _log.exception("request %s failed", request_id)
            if is_answered:
                raise  # a client takes a broken-off stream for a failure
            problem = problem_of(InternalError())
        if problem is not None and not is_answered:
            await problem.response()(scope, receive, send_with_id)


_OURS: Final = "x-turnfold-"
# Ours, chat ids of front ends, and what clients' libraries send by themselves.
_ALLOWED: Final = re.compile(
    rf"authorization|content-type|last-event-id|idempotency-key|user-agent|http-referer|x-title"
    rf"|({_OURS}|x-stainless-|mcp-|x-openwebui-|x-opencode-|openai-)[a-z0-9-]+|x-(?:conversation-id|session-(?:id|affinity))",
    re.ASCII,
)
_EXPOSED: Final = ("location", "retry-after", "x-request-id")


class Cors(_Middleware):
    """Middleware: answers CORS preflights and adds the CORS headers for the origins in `CHAT_API_ORIGINS`.

    `CORSMiddleware` can't allow headers by prefix, and new versions of OpenAI's own client send new `X-Stainless-`
    headers.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not (origins := self._settings.chat_api_origins):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = next((named for named in origins if named == headers.get("origin")), None)
        if origin and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await _permission(origin, headers)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _allow(MutableHeaders(scope=message), origin)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _permission(origin: str, asked: Headers) -> Response:
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
_OF_PROGRAMS: Final = ("v1", "chat", "sessions", "mcp", "models")  # the last one for who forgot the /v1
_SLASHES: Final = re.compile(r"\A/+(?:(v1)/+)?")
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
    name: str
    port: str


class HostCheck(_Middleware):
    """Middleware: refuses a wrong `Host` or a foreign `Origin` with 403 and advice; puts paths of programs right.

    Allowed hosts are loopback names at any port and those in `TURNFOLD_HOSTS`; an `Origin` must match the host or, for
    the HTTP API, be in `CHAT_API_ORIGINS`. Without a sign-in, connections to a non-loopback address of the server are
    refused, too, unless `OPEN_WITHOUT_SIGN_IN` is set. Headers added by a proxy are ignored.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = _with_single_slashes(scope)
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


def _with_single_slashes(scope: Scope) -> Scope:
    """Returns the scope of a program's request without a base URL's slash too many: `//v1/models`, `/v1//models`.

    So all that comes after decides by one path. Streamlit refuses all others that begin with two slashes.
    """
    if scope["type"] != "http" or not is_for_programs(scope):
        return scope
    path = _SLASHES.sub(lambda found: f"/{found[1]}/" if found[1] else "/", scope["path"])
    return scope if path == scope["path"] else {**scope, "path": path, "raw_path": quote(path).encode()}


def is_for_programs(scope: Scope) -> bool:
    path: str = scope["path"]
    return path.lstrip("/").partition("/")[0] in _OF_PROGRAMS


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
_NOT_FOUND: Final = 404
_NO_TOKEN: Final = 401


def metrics_route(figures: Callable[[], bytes]) -> Route:
    """Returns the route of the metrics in Prometheus's text format; `MetricsGuard` protects the path."""

    def show(_: Request) -> Response:
        return Response(figures(), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})

    return Route(PATH, show, methods=["GET"])


class MetricsGuard(_Middleware):
    """Middleware: lets metrics be read with `METRICS_TOKEN`, or from this computer only if the token isn't set.

    Guards each path ending in `/metrics`: Turnfold's, and Streamlit's `/_stcore/metrics` at any mount point.
    """

    @cached_property
    def _digest(self) -> bytes | None:
        token = self._settings.metrics_token
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
    if request.client is None or is_by_proxy(request.headers):
        return False
    return is_loopback(request.client.host) and is_loopback(request.url.hostname or "")


def _has_token(request: Request, digest: bytes) -> bool:
    sent = [value for name, value in request.headers.raw if name == b"authorization"]
    return hmac.compare_digest(digest_of(bearer_token(sent)), digest)


# A year, without subdomains, which may have no certificate.
_HTTPS_ALONE = {"Strict-Transport-Security": "max-age=31536000"}


class SecurityHeaders(_Middleware):
    """Middleware: adds headers against contact with other hosts and embedding; marks cookies on https as secure."""

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings], content_security_policy: str) -> None:
        super().__init__(app, settings)
        self._headers = {
            "Content-Security-Policy": content_security_policy,
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                is_https = self._settings.is_https
                if scope["scheme"] == "https" or is_https:
                    message["headers"] = [_secured(*header) for header in message["headers"]]
                MutableHeaders(scope=message).update(self._headers | _HTTPS_ALONE if is_https else self._headers)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _secured(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Adds `Secure` to a cookie: Streamlit omits it on sign-in cookies."""
    attributes = [part.strip().lower() for part in value.split(b";")[1:]]
    is_open_cookie = name.lower() == b"set-cookie" and b"secure" not in attributes
    return name, value + b"; Secure" if is_open_cookie else value


_MAX_BODY_BYTES: Final = MAX_BYTES + 64 * 1024  # with the multipart encoding around the file
_MAX_HELD_BYTES: Final = 256 * 1024 * 1024
_WITH_BODY: Final = ("POST", "PUT", "PATCH")
# How long a websocket waits for a thread while others' checks wait for a stalled database.
_QUEUE_SECONDS: Final = 2.0


class Page(Protocol):
    """What the guards ask about the page's server; implemented by the module `component.bridge.security`."""

    def tab_of_upload(self, path: str, /) -> str | None:
        """Returns the tab that a path uploads a file to, None for any other path."""

    def visitor(self, connection: HTTPConnection, settings: Settings, /) -> Identity | None:
        """Returns who is signed in by the connection's cookie, unchecked; None for a stranger."""

    def visitor_of_tab(self, tab: str, settings: Settings, /) -> Identity | None: ...

    def check_admitted(self, visitor: Identity, /) -> None:
        """Checks that a sign-in is valid; blocks.

        Raises:
            SignInError: The sign-in has ended or was withdrawn.
            TurnfoldError: The sign-in can't be read.
        """


class UploadGuard(_Middleware):
    """Middleware: refuses a file before the body is read: from a stranger, too large, or over a limit.

    With a sign-in only a signed-in user may upload, and only to a tab of their own. A tab may hold as many unsent files
    as one message, and all tabs together 256 MB; `held` returns both. A file counts from the start of the body, also
    towards the server's budget until it is complete.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Callable[[], Settings],
        page: Page,
        held: Callable[[str], tuple[int, int]],
        *,
        budget: Budget = BUDGET,
    ) -> None:
        super().__init__(app, settings)
        self._page = page
        self._held = held
        self._budget = budget
        self._threads = anyio.CapacityLimiter(_THREADS)
        # Files and bytes of the bodies being read.
        self._files: Counter[str] = Counter()
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tab = self._page.tab_of_upload(scope["path"]) if scope["type"] == "http" else None
        if tab is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if (owner := await self._owner(request, tab)) is None:
            await PlainTextResponse("Forbidden", 403)(scope, receive, send)
        elif request.method not in _WITH_BODY:
            await self._app(scope, receive, send)
        elif (refusal := self._refusal(request, tab)) is not None:
            await refusal(scope, receive, send)
        else:
            with self._under_way(tab, owner, int(request.headers["content-length"])) as has_room:
                await (self._app if has_room else _without_room())(scope, receive, send)

    def _refusal(self, request: Request, tab: str) -> Response | None:
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdecimal()):
            return PlainTextResponse("Length Required", 411)
        if int(length) > _MAX_BODY_BYTES:
            return PlainTextResponse("Content Too Large", 413)
        files, held = self._held(tab)
        if files + self._files[tab] >= MAX_FILES:
            return PlainTextResponse("Too Many Files", 429)
        return _without_room() if held + self._bytes + int(length) > _MAX_HELD_BYTES else None

    @contextmanager
    def _under_way(self, tab: str, owner: str, length: int) -> Iterator[bool]:
        """Counts a file while its body is read; yields False if the server's budget has no room."""
        with self._budget.share(owner) as share:
            try:
                share.hold(length)
            except ProblemError:
                yield False
                return
            self._files[tab] += 1
            self._bytes += length
            try:
                yield True
            finally:
                self._bytes -= length
                self._files -= Counter({tab: 1})

    async def _owner(self, request: Request, tab: str) -> str | None:
        if not self._settings.has_sign_in:
            return self._settings.turnfold_owner
        visitor = self._page.visitor(request, self._settings)
        owner = self._page.visitor_of_tab(tab, self._settings)
        if visitor is None or owner is None or visitor.owner != owner.owner:
            return None
        try:
            await anyio.to_thread.run_sync(self._page.check_admitted, visitor, limiter=self._threads)
        except TurnfoldError:
            return None
        return visitor.owner


def _without_room() -> Response:
    headers = {"Retry-After": str(OVER_BUDGET.retry_after_seconds)}
    return PlainTextResponse(OVER_BUDGET.message, OVER_BUDGET.status, headers=headers)


class SocketGuard(_Middleware):
    """Middleware: assigns each websocket of the page to an owner, which lifts the limit for strangers.

    A websocket waits up to `seconds` for a thread to check the sign-in.
    """

    def __init__(
        self, app: ASGIApp, settings: Callable[[], Settings], page: Page, *, seconds: float = _QUEUE_SECONDS
    ) -> None:
        super().__init__(app, settings)
        self._page = page
        self._seconds = seconds
        self._threads = anyio.CapacityLimiter(_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = scope.get("state", {}).get(SOCKET)
        if isinstance(socket, Socket) and (owner := await self._owner(HTTPConnection(scope))) is not None:
            socket.let_in(owner)
        await self._app(scope, receive, send)

    async def _owner(self, connection: HTTPConnection) -> str | None:
        if not self._settings.has_sign_in:
            return self._settings.turnfold_owner
        if (visitor := self._page.visitor(connection, self._settings)) is None:
            return None
        try:
            with anyio.move_on_after(self._seconds):  # limits the wait for a thread; a started check isn't cancelled
                await anyio.to_thread.run_sync(self._page.check_admitted, visitor, limiter=self._threads)
        except SignInError:
            return None
        except TurnfoldError:  # a database error doesn't make a stranger, which would last as long as the tab
            pass
        return visitor.owner
