"""Starts Turnfold: the page, `/health`, the security headers and the service's life."""

from __future__ import annotations

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

from component import service_provider
from component.security import SecurityHeaders
from graph.error import TurnfoldError
from graph.log import set_up_logging
from graph.service import open_service
from graph.settings import load_settings


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[dict[str, Any]]:
    """Keeps the service open for as long as the server runs."""
    with ExitStack() as stack:
        try:
            settings = load_settings()
            set_up_logging(settings.turnfold_log_level)
            service = stack.enter_context(open_service(settings))
        except TurnfoldError as error:
            # The server prints what ends its start with a traceback; a wrong setting needs its sentence alone.
            sys.tracebacklimit = 0
            message = f"Turnfold can't start: {error} {error.advice}".rstrip()
            raise SystemExit(message) from None
        gc.freeze()  # what is imported by now stays: no collection has to walk through it while somebody waits
        service_provider.provide(service)
        stack.callback(service_provider.close)
        yield {}


def health(_request: Request) -> JSONResponse:
    """Answers whether the service can work."""
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
