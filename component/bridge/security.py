"""What the ASGI guards need to know of Streamlit: its page, sign-in cookies, tabs and uploads; and its sign-out."""

from __future__ import annotations

import base64
import hashlib
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio.to_thread
import streamlit
import streamlit as st
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config, runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from uvicorn.protocols.websockets import websockets_sansio_impl
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory

from component.bridge import service_provider
from graph.server.identity import Identity
from graph.server.settings import Settings
from graph.value.error import SettingsError, TurnfoldError

_INLINE_SCRIPT = re.compile(r"<script>([^<]*+(?:<(?!/?script>)[^<]*+)*+)</script>")
_UPLOAD: Final = "/_stcore/upload_file/"
_SIGN_OUT: Final = "/auth/logout"
_SIGNED_IN: Final = "/oauth2callback"
# Of the cookies of a sign-in; the rest is for others, such as a proxy's.
_SIGN_IN_BYTES: Final = service_provider.COOKIE_BYTES - 1_024
_LOG = logging.getLogger(__name__)


def content_security_policy() -> str:
    """Returns a policy that allows only this host, and the needs of Streamlit's page.

    Those are an inline script (allowed by hash), inline styles, and blobs for component scripts.
    """
    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    digests = [hashlib.sha256(script.encode()).digest() for script in _INLINE_SCRIPT.findall(page)]
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' blob: {hashes}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def listening_at() -> tuple[str, int, bool]:
    """Returns the address and port of this server, and whether somebody chose the port."""
    address: str | None = st.get_option("server.address")
    return address or "", int(st.get_option("server.port")), config.is_manually_set("server.port")


def check_path() -> None:
    """Raises `SettingsError` if the page would stand below a path: addresses, cookies and programs count on none."""
    if st.get_option("server.baseUrlPath").strip("/"):
        msg = (
            "STREAMLIT_SERVER_BASE_URL_PATH (server.baseUrlPath) can't be used: Turnfold needs a host name or a port "
            "of its own, such as chat.example.com instead of example.com/chat"
        )
        raise SettingsError(msg)


class _WideWindow(ServerPerMessageDeflateFactory):
    """Compresses with a window of 32 KB instead of 4 KB."""

    def __init__(self, **_: object) -> None:
        super().__init__(server_max_window_bits=15, client_max_window_bits=12, compress_settings={"memLevel": 5})


def widen() -> None:
    # Neither Streamlit nor uvicorn has a setting for this.
    vars(websockets_sansio_impl)["ServerPerMessageDeflateFactory"] = _WideWindow


def tab_of_upload(path: str) -> str | None:
    return path.partition(_UPLOAD)[2].partition("/")[0] if _UPLOAD in path else None


def held_files(tab: str) -> tuple[int, int]:
    held = runtime.get_instance().uploaded_file_mgr
    if not isinstance(held, MemoryUploadedFileManager):
        return 0, 0
    return len(held.file_storage.get(tab, ())), sum(
        stat.byte_length for stats in held.get_stats().values() for stat in stats
    )


def visitor(connection: HTTPConnection, settings: Settings) -> Identity | None:
    claims = service_provider.claims_in(connection.cookies, connection.headers.get("origin", ""))
    return service_provider.identity_from(claims, settings)


def visitor_of_tab(tab: str, settings: Settings) -> Identity | None:
    session = runtime.get_instance().get_app_session(tab)
    claims = dict(session._user_info) if session is not None else {}  # noqa: SLF001  # has no public name
    return service_provider.identity_from(claims, settings)


def check_admitted(visitor: Identity) -> None:
    """Checks that a sign-in is valid. Raises `SignInError` if it has ended, `TurnfoldError` if it can't be read."""
    service_provider.opened().for_owner(visitor.owner, sign_in=visitor.sign_in)


class SignOut:
    """Middleware: ends the sign-in for every copy of its cookie; Streamlit alone only deletes the browser's cookie.

    A sign-in whose cookies the server wouldn't take back, as one with hundreds of groups, isn't begun, and says so.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings], too_large: Callable[[str | None], str]) -> None:
        self._app = app
        self._settings = settings
        self._too_large = too_large  # the sentence, by the browser's languages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith(_SIGN_OUT):
            await anyio.to_thread.run_sync(self._end, Request(scope))
        if scope["type"] == "http" and scope["path"].endswith(_SIGNED_IN):
            await self._begin(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        answered: list[Message] = []

        async def hold(message: Message) -> None:
            answered.append(message)

        await self._app(scope, receive, hold)
        headers = [header for message in answered for header in message.get("headers", ())]
        cookies = [value.partition(b";")[0] + b"; " for name, value in headers if name.lower() == b"set-cookie"]
        size = sum(map(len, cookies))
        if size > _SIGN_IN_BYTES:
            _LOG.warning(
                "a sign-in of %d bytes is too large for cookies: its token has too many groups or claims", size
            )
            sentence = self._too_large(Headers(scope=scope).get("accept-language"))
            figures = {"size": size // 1_024 + 1, "most": _SIGN_IN_BYTES // 1_024}
            await PlainTextResponse(sentence.format(**figures), 403)(scope, receive, send)
            return
        for message in answered:
            await send(message)

    def _end(self, request: Request) -> None:
        settings = self._settings()
        # A browser sends no Origin on navigation.
        claims = service_provider.claims_in(request.cookies, settings.turnfold_origin or "")
        visitor = service_provider.identity_from(claims, settings)
        if visitor is None:
            return
        try:
            service_provider.opened().sign_out(visitor)
        except TurnfoldError as error:  # the browser deletes its cookie in any case
            _LOG.warning("a sign-out was not kept: %s", error.code)
