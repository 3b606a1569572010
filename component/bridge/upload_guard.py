"""Middleware that restricts uploads and large websocket messages to users with access."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

import anyio
import anyio.to_thread
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from api.budget import BUDGET, OVER_BUDGET, Budget
from api.problem import ProblemError
from api.websocket import SOCKET, Socket
from component.bridge import service_provider, sign_in
from graph.attachment import MAX_BYTES, MAX_FILES
from graph.server.identity import Identity
from graph.server.settings import Settings
from graph.value.error import SignInError, TurnfoldError

_PART: Final = "/_stcore/upload_file/"
# Room for the multipart encoding around the file.
_MAX_BODY_BYTES: Final = MAX_BYTES + 64 * 1024
_MAX_KEPT_BYTES: Final = 256 * 1024 * 1024
_WITH_BODY: Final = ("POST", "PUT", "PATCH")
_FORBIDDEN, _TOO_LARGE, _LENGTH_REQUIRED, _TOO_MANY, _UNAVAILABLE = 403, 413, 411, 429, 503
_THREADS: Final = 16
# How long a websocket waits for a thread while others' checks wait for a stalled database.
_QUEUE_SECONDS: Final = 2.0


class UploadGuard:
    """Middleware: refuses a file before the body is read: from a stranger, too large, or over a limit.

    With a sign-in only a signed-in user may upload, and only to a tab of their own. A tab may hold as many unsent files
    as one message, and all tabs together 256 MB. A file counts from the start of the body; the length also counts
    towards the server's budget until the file is complete.

    Args:
        app: Page and routes.
        settings: Returns the settings; called at the first file.
        budget: The server's budget.
        kept: Returns the number of files held by a tab, and the bytes held by all tabs.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Callable[[], Settings],
        *,
        budget: Budget = BUDGET,
        kept: Callable[[str], tuple[int, int]] | None = None,
    ) -> None:
        self._app = app
        self._read_settings = settings
        self._budget = budget
        self._kept = kept or _kept_by_streamlit
        self._threads = anyio.CapacityLimiter(_THREADS)
        # Files and bytes of the bodies being read.
        self._files: Counter[str] = Counter()
        self._bytes = 0

    @cached_property
    def _settings(self) -> Settings:
        return self._read_settings()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _PART not in scope["path"]:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        tab = request.url.path.partition(_PART)[2].partition("/")[0]
        if (owner := await self._owner(request, tab)) is None:
            await PlainTextResponse("Forbidden", _FORBIDDEN)(scope, receive, send)
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
            return PlainTextResponse("Length Required", _LENGTH_REQUIRED)
        if int(length) > _MAX_BODY_BYTES:
            return PlainTextResponse("Content Too Large", _TOO_LARGE)
        files, held = self._kept(tab)
        if files + self._files[tab] >= MAX_FILES:
            return PlainTextResponse("Too Many Files", _TOO_MANY)
        return _without_room() if held + self._bytes + int(length) > _MAX_KEPT_BYTES else None

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
        """Returns the owner of the upload, None if it isn't allowed."""
        if not self._settings.has_sign_in:
            return self._settings.turnfold_owner
        said = sign_in.claims_in(request.cookies, request.headers.get("origin", ""))
        visitor, owner = (sign_in.identity_told(claims, self._settings) for claims in (said, _claims_of_tab(tab)))
        if visitor is None or owner is None or visitor.owner != owner.owner:
            return None
        try:
            await anyio.to_thread.run_sync(_check_admitted, visitor, limiter=self._threads)
        except TurnfoldError:
            return None
        return visitor.owner


class SocketGuard:
    """Middleware: assigns each websocket of the page to an owner, which lifts the limit for strangers.

    A websocket waits up to `seconds` for a thread to check the sign-in.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings], *, seconds: float = _QUEUE_SECONDS) -> None:
        self._app = app
        self._read_settings = settings
        self._seconds = seconds
        self._threads = anyio.CapacityLimiter(_THREADS)

    @cached_property
    def _settings(self) -> Settings:
        return self._read_settings()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = scope.get("state", {}).get(SOCKET)
        if isinstance(socket, Socket) and (owner := await self._owner(HTTPConnection(scope))) is not None:
            socket.let_in(owner)
        await self._app(scope, receive, send)

    async def _owner(self, connection: HTTPConnection) -> str | None:
        if not self._settings.has_sign_in:
            return self._settings.turnfold_owner
        said = sign_in.claims_in(connection.cookies, connection.headers.get("origin", ""))
        if (visitor := sign_in.identity_told(said, self._settings)) is None:
            return None
        try:
            with anyio.move_on_after(self._seconds):  # limits the wait for a thread; a started check isn't cancelled
                await anyio.to_thread.run_sync(_check_admitted, visitor, limiter=self._threads)
        except SignInError:
            return None
        except TurnfoldError:  # a database error doesn't make a stranger, which would last as long as the tab
            pass
        return visitor.owner


def _check_admitted(visitor: Identity) -> None:
    """Checks that a user's sign-in is valid.

    Raises:
        SignInError: The sign-in has ended or was withdrawn.
        TurnfoldError: The sign-in can't be read.
    """
    service_provider.opened().for_owner(visitor.owner, sign_in=visitor.sign_in)


def _claims_of_tab(tab: str) -> dict[str, Any]:
    session = runtime.get_instance().get_app_session(tab)
    return dict(session._user_info) if session is not None else {}  # noqa: SLF001  # has no public name


def _without_room() -> Response:
    headers = {"Retry-After": str(OVER_BUDGET.retry_after_seconds)}
    return PlainTextResponse(OVER_BUDGET.message, _UNAVAILABLE, headers=headers)


def _kept_by_streamlit(tab: str) -> tuple[int, int]:
    kept = runtime.get_instance().uploaded_file_mgr
    if not isinstance(kept, MemoryUploadedFileManager):
        return 0, 0
    return len(kept.file_storage.get(tab, ())), sum(
        stat.byte_length for stats in kept.get_stats().values() for stat in stats
    )
