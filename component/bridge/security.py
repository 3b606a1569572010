"""Security headers of every HTTP response, secure cookies on https, and the websocket's compression window."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import streamlit
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.websockets import websockets_sansio_impl
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory

from graph.server.settings import Settings

# A year, without subdomains, which may have no certificate.
_HTTPS_ALONE = {"Strict-Transport-Security": "max-age=31536000"}
_INLINE_SCRIPT = re.compile(r"<script>([^<]*+(?:<(?!/?script>)[^<]*+)*+)</script>")


class SecurityHeaders:
    """Middleware: adds headers against contact with other hosts and embedding; marks cookies on https as secure.

    With an https origin, browsers are told to use only https from then on.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        self._app = app
        self._settings = settings
        self._headers = {
            "Content-Security-Policy": content_security_policy(),
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
                is_https = self._settings().is_https
                if scope["scheme"] == "https" or is_https:
                    message["headers"] = [_secured(*header) for header in message["headers"]]
                MutableHeaders(scope=message).update(self._headers | _HTTPS_ALONE if is_https else self._headers)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _secured(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Adds `Secure` to a cookie; Streamlit omits it on sign-in cookies."""
    attributes = [part.strip().lower() for part in value.split(b";")[1:]]
    is_open_cookie = name.lower() == b"set-cookie" and b"secure" not in attributes
    return name, value + b"; Secure" if is_open_cookie else value


def content_security_policy() -> str:
    """Returns a policy that allows only this host, and the needs of Streamlit's page.

    Streamlit needs an inline script (allowed by hash), inline styles created at run time, and blobs for component
    scripts.
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


class _WideWindow(ServerPerMessageDeflateFactory):
    """Compresses with a window of 32 KB instead of 4 KB."""

    def __init__(self, **_: object) -> None:
        super().__init__(server_max_window_bits=15, client_max_window_bits=12, compress_settings={"memLevel": 5})


def widen() -> None:
    """Applies the wide window to all websockets from now on."""
    # Neither Streamlit nor uvicorn has a setting for this.
    vars(websockets_sansio_impl)["ServerPerMessageDeflateFactory"] = _WideWindow
