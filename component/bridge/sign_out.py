"""Middleware for Streamlit's sign-out route: ends the sign-in on the server, for every copy of the cookie."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import anyio.to_thread
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from component.bridge import service_provider, sign_in
from graph.server.settings import Settings
from graph.value.error import TurnfoldError

_PATH: Final = "/auth/logout"
_LOG = logging.getLogger(__name__)


class SignOut:
    """Ends the user's sign-in at sign-out; Streamlit alone only deletes the browser's cookie."""

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith(_PATH):
            await anyio.to_thread.run_sync(self._end, Request(scope))
        await self._app(scope, receive, send)

    def _end(self, request: Request) -> None:
        settings = self._settings()
        # A browser sends no Origin on navigation.
        claims = sign_in.claims_in(request.cookies, settings.turnfold_origin or "")
        visitor = sign_in.identity_told(claims, settings)
        if visitor is None:
            return
        try:
            service_provider.opened().sign_out(visitor)
        except TurnfoldError as error:  # the browser deletes its cookie in any case
            _LOG.warning("a sign-out was not kept: %s", error.code)
