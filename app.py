"""The server: page, HTTP API, `/health`, `/metrics` and access checks; opens and closes the service."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from api.connection import bounded_connections, bounded_websockets, notified_of_end, room_for_connections
from api.middleware import HostCheck, MetricsGuard, SecurityHeaders, SocketGuard, UploadGuard, metrics_route
from api.program_routes import ProgramRoutes
from component.bridge import delivery, security, service_provider
from component.words.wording import language_of_locale, words_of
from graph.server.log import set_up_logging
from graph.server.settings import Settings, load_settings
from graph.server.start import address_of, noted_address, running_at, say, welcome
from graph.service import open_service
from graph.value.error import TurnfoldError


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[dict[str, Any]]:
    with ExitStack() as stack:
        try:
            settings = load_settings()
            set_up_logging(settings.turnfold_log_level)
            delivery.quieten()
            delivery.shorten_hashes()
            security.check_path()
            host, port, is_chosen = security.listening_at()
            if not is_chosen and (running := running_at(settings)):
                message = f"Turnfold already runs at {running} over {settings.turnfold_data_dir.resolve()}."
                _end(f"{message} For a second server, choose another port: make run PORT=8601")
            service_provider.prepare(settings)
            service = stack.enter_context(open_service(settings))
        except TurnfoldError as error:
            _end(f"Turnfold can't start: {error} {error.advice}".rstrip())
        gc.freeze()  # imported modules stay; garbage collection needn't scan them
        service_provider.provide(service)
        stack.callback(service_provider.provide, None)
        security.widen()
        delivery.use_loop(asyncio.get_running_loop())
        stack.callback(delivery.use_loop, None)
        take_no_more = stack.enter_context(bounded_connections(room_for_connections()))
        stack.enter_context(notified_of_end(take_no_more, programs.close))
        stack.enter_context(bounded_websockets())
        address = address_of(settings, host, port)
        stack.enter_context(noted_address(settings, address, port))
        say(welcome(settings, address, service.sessions.default_model(), service.programs.counts()), sys.stdout)
        yield {"settings": settings}


def _end(message: str) -> NoReturn:
    """Ends the start with a sentence alone; uvicorn would log a crash."""
    logging.getLogger("uvicorn.error").disabled = True
    sys.stderr.write(f"{message}\n")
    raise SystemExit(message)


def health(_request: Request) -> JSONResponse:
    """Returns 200 if the database answers, else 503 with the error's code."""
    try:
        service_provider.opened().health()
    except TurnfoldError as error:
        return JSONResponse({"status": error.code}, status_code=503)
    return JSONResponse({"status": "ok"})


def opened_with() -> Settings:
    settings: Settings = app.state["settings"]
    return settings


programs = ProgramRoutes(
    lambda owner: service_provider.opened().for_owner(owner), opened_with, lambda: service_provider.opened().programs
)
app = st.App(
    Path(__file__).parent / "component" / "page.py",
    lifespan=lifespan,
    routes=[
        Route("/health", health),
        metrics_route(lambda: service_provider.opened().metrics()),
        *programs.routes(),
    ],
    middleware=[
        Middleware(SecurityHeaders, opened_with, security.content_security_policy()),
        Middleware(HostCheck, opened_with),
        Middleware(MetricsGuard, opened_with),
        Middleware(UploadGuard, opened_with, security, security.held_files),
        Middleware(SocketGuard, opened_with, security),
        Middleware(
            security.SignOut, opened_with, lambda locale: words_of(language_of_locale(locale)).sign_in.too_large
        ),
    ],
)
