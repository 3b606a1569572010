"""A server with the routes for programs as a process: prints its port, and `ended` at the end of its lifespan."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette

from api.connection import notified_of_end
from api.program_routes import ProgramRoutes
from graph.server.settings import Settings
from graph.value.event import TokenDelta
from tests.fake.programs import NoPrograms
from tests.fake.scripted_completions import ScriptedCompletions
from tests.fake.served_api import TOKEN, service_with


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background would ignore it
    completions = ScriptedCompletions()
    completions.script([TokenDelta("Hel"), threading.Event()])
    settings = Settings(_env_file=None, chat_api_token=TOKEN)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic reads the text
    programs = ProgramRoutes(lambda _: service_with(completions), lambda: settings, NoPrograms)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        with notified_of_end(programs.close):
            yield
        print("ended", flush=True)  # noqa: T201 - what the test waits for

    app = Starlette(routes=programs.routes(), lifespan=lifespan)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)  # noqa: T201 - what the test waits for
        uvicorn.Server(uvicorn.Config(app, log_level="critical")).run([listening])


if __name__ == "__main__":
    main()
