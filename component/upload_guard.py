"""Middleware before Streamlit's upload route: takes files from those alone who are let in, and only so many."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.web.server.starlette import starlette_websocket
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from component import service_provider
from graph.attachment import MAX_BYTES, MAX_FILES
from graph.error import TurnfoldError
from graph.identity import identity_of
from graph.settings import Settings

_PART: Final = "/_stcore/upload_file/"
# What a form adds to the file that it sends.
_MAX_BODY_BYTES: Final = MAX_BYTES + 64 * 1024
_MAX_KEPT_BYTES: Final = 256 * 1024 * 1024
_WITH_BODY: Final = ("POST", "PUT", "PATCH")
_FORBIDDEN, _TOO_LARGE, _LENGTH_REQUIRED, _TOO_MANY, _UNAVAILABLE = 403, 413, 411, 429, 503


class UploadGuard:
    """Refuses a file before its body is read: a stranger's, one too large, or one more than there is room for.

    With a sign-in only a signed-in visitor may send one, and only to a tab of his own. Until a message is sent, its tab
    keeps at most as many files as it may have, and all tabs together 256 MB.

    Args:
        app: Page and routes.
        settings: Returns the settings; called at the first file.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        self._app = app
        self._read_settings = settings

    @cached_property
    def _settings(self) -> Settings:
        return self._read_settings()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one connection; all that isn't for the upload route passes unchanged."""
        if scope["type"] != "http" or _PART not in scope["path"]:
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(Request(scope))
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        tab = request.url.path.partition(_PART)[2].partition("/")[0]
        if not self._is_let_in(request, tab):
            return PlainTextResponse("Forbidden", _FORBIDDEN)
        if request.method not in _WITH_BODY:
            return None
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdecimal()):
            return PlainTextResponse("Length Required", _LENGTH_REQUIRED)
        if int(length) > _MAX_BODY_BYTES:
            return PlainTextResponse("Content Too Large", _TOO_LARGE)
        return _without_room(tab, int(length))

    def _is_let_in(self, request: Request, tab: str) -> bool:
        issuer = self._settings.oidc_issuer
        if issuer is None:
            return True
        visitor = identity_of(_claims(request), issuer=issuer, hours=self._settings.sign_in_hours)
        owner = identity_of(_claims_of_tab(tab), issuer=issuer, hours=self._settings.sign_in_hours)
        if visitor is None or owner is None or visitor.owner != owner.owner:
            return False
        try:
            service_provider.opened().for_owner(visitor.owner, until=visitor.until)
        except TurnfoldError:
            return False
        return True


def _claims(request: Request) -> dict[str, Any]:
    """Returns what the request's cookie of a sign-in says, none if nobody vouches for it."""
    said = starlette_websocket._get_signed_cookie_with_chunks(request.cookies, USER_COOKIE_NAME)  # noqa: SLF001  # has no other name
    if not said:
        return {}
    return starlette_websocket._parse_decoded_user_cookie(said, request.headers.get("origin", ""))  # noqa: SLF001  # nor has this


def _claims_of_tab(tab: str) -> dict[str, Any]:
    session = runtime.get_instance().get_app_session(tab)
    return dict(session._user_info) if session is not None else {}  # noqa: SLF001  # has no other name


def _without_room(tab: str, length: int) -> Response | None:
    kept = runtime.get_instance().uploaded_file_mgr
    if not isinstance(kept, MemoryUploadedFileManager):
        return None
    if len(kept.file_storage.get(tab, ())) >= MAX_FILES:
        return PlainTextResponse("Too Many Files", _TOO_MANY)
    held = sum(stat.byte_length for stats in kept.get_stats().values() for stat in stats)
    return PlainTextResponse("No Room", _UNAVAILABLE) if held + length > _MAX_KEPT_BYTES else None
