"""A real OpenID provider on loopback, whose users sign in with one press.

with IdentityProvider() as provider:
    settings = provider.settings("http://127.0.0.1:8501")     # of a server at this address
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final, Self

import httpx2
from flask import Flask, Response
from oidc_provider_mock import User
from oidc_provider_mock import app as provider_app
from werkzeug.serving import make_server

COOKIE_SECRET: Final = "secret-of-the-cookies-0123456789"  # noqa: S105  # of test servers alone
NAMES: Final[Mapping[str, str]] = {"minsu": "김민수", "yeonghui": "이영희"}
# Of a user whose token no cookie of 32 KiB has room for.
MANY_GROUPS: Final = "jihun"
_GROUPS: Final = [sha256(bytes(number)).hexdigest() for number in range(280)]
# Its pages ask another host for their looks, and a whole browser asks itself for an icon that it lacks.
_STYLE_SHEET: Final = re.compile(rb"<link\b[^>]*>")
_HOUR: Final = timedelta(hours=1)


class IdentityProvider:
    """Listens on a free port of 127.0.0.1 until the end of `with`; tokens are valid for `lasts` seconds."""

    def __init__(self, *, lasts: timedelta = _HOUR, knows_clients: bool = False) -> None:
        users = [User(sub=subject, claims={"name": name}) for subject, name in NAMES.items()]
        users.append(User(sub=MANY_GROUPS, claims={"name": "박지훈", "groups": _GROUPS}))
        app = provider_app(require_client_registration=knows_clients, access_token_max_age=lasts, user_claims=users)
        app.after_request(_without_style_sheet)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        logging.getLogger("oidc_provider_mock").setLevel(logging.ERROR)
        self.app: Flask = app
        self._server = make_server("127.0.0.1", 0, app, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def settings(self, origin: str, **changes: str) -> dict[str, str]:
        """Returns what turns the sign-in of a server on."""
        return {
            "OIDC_ISSUER": self.issuer,
            "OIDC_CLIENT_ID": "turnfold",
            "OIDC_CLIENT_SECRET": "secret-of-the-client",
            "TURNFOLD_ORIGIN": origin,
            "STREAMLIT_SERVER_COOKIE_SECRET": COOKIE_SECRET,
            **changes,
        }

    def register(self, origin: str) -> dict[str, Any]:
        """Registers a client; returns its `client_id` and its `client_secret`."""
        asked = {"redirect_uris": [f"{origin}/oauth2callback"]}
        with httpx2.Client(trust_env=False) as client:
            answer = client.post(f"{self.issuer}/oauth2/clients", json=asked).raise_for_status()
            told: dict[str, Any] = answer.json()
        return told

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(20)
        self._server.server_close()
        assert not self._thread.is_alive()


def _without_style_sheet(response: Response) -> Response:
    if response.mimetype == "text/html":
        response.set_data(_STYLE_SHEET.sub(b'<link rel="icon" href="data:,">', response.get_data()))
    return response
