"""The server: the page, `/health`, the security headers; opens and closes the service."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from uvicorn.protocols.websockets import websockets_sansio_impl
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory

from component import delivery, service_provider
from component.security import SecurityHeaders
from graph.error import TurnfoldError
from graph.log import set_up_logging
from graph.service import open_service
from graph.settings import load_settings


class _WideWindow(ServerPerMessageDeflateFactory):
    """Compresses by what was sent up to 32 KB before, not 4 KB: each run's start repeats the theme."""

    def __init__(self, **_: object) -> None:
        super().__init__(server_max_window_bits=15, client_max_window_bits=12, compress_settings={"memLevel": 5})


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[dict[str, Any]]:
    """Keeps the service open while the server runs."""
    with ExitStack() as stack:
        try:
            settings = load_settings()
            set_up_logging(settings.turnfold_log_level)
            service = stack.enter_context(open_service(settings))
        except TurnfoldError as error:
            # The server prints a traceback of a failed start; for a wrong setting the message alone is enough.
            sys.tracebacklimit = 0
            message = f"Turnfold can't start: {error} {error.advice}".rstrip()
            raise SystemExit(message) from None
        gc.freeze()  # imported modules stay: garbage collection needn't scan them while a user waits
        service_provider.provide(service)
        stack.callback(service_provider.close)
        # Neither Streamlit nor uvicorn has a setting for it.
        vars(websockets_sansio_impl)["ServerPerMessageDeflateFactory"] = _WideWindow
        delivery.use_loop(asyncio.get_running_loop())
        stack.callback(delivery.use_loop, None)
        yield {}


def health(_request: Request) -> JSONResponse:
    """Returns 200 if the database answers, else 503 with the error's code."""
    try:
        service_provider.current().health()
    except TurnfoldError as error:
        return JSONResponse({"status": error.code}, status_code=503)
    return JSONResponse({"status": "ok"})


app = st.App(
    Path(__file__).parent / "component" / "page.py",
    lifespan=lifespan,
    routes=[Route("/health", health)],
    middleware=[Middleware(SecurityHeaders)],
)
