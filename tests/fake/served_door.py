"""The routes for programs behind a real server on loopback.

with ServedDoor(completions) as door:
    client = openai.OpenAI(base_url=door.url, api_key=TOKEN)

with serve(chat.service) as door: ...  # the real service, for both owners
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware

from api.door import Door
from api.edge import Edge
from api.token_guard import Guard
from graph.client import CompletionSource
from graph.service import ChatService
from graph.settings import Settings
from tests.fake.programs import NoPrograms

TOKEN: Final = "token-of-a-program-0123456789"  # noqa: S105 - opens nothing but this server
OWNER: Final = "kim"
# Of another owner's program, which may use all of the server's tools.
OTHER_TOKEN: Final = "token-of-a-script-0123456789"  # noqa: S105 - opens nothing but this server
OTHER_OWNER: Final = "lee"


class ServedDoor:
    """A context manager; listens on a free port of 127.0.0.1 and ends by itself.

    Args:
        completions: What answers all programs, or returns what answers those of an owner.
        patience_seconds: The door's.

    Attributes:
        door: The routes' own object.
        owners: Whose completions were asked for, in order.
    """

    def __init__(
        self, completions: CompletionSource | Callable[[str], CompletionSource], *, patience_seconds: float = 10.0
    ) -> None:
        tokens = f"editor:{OWNER}:{TOKEN}:recall,script:{OTHER_OWNER}:{OTHER_TOKEN}"
        settings = Settings(_env_file=None, chat_api_tokens=tokens)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic reads the text
        self.owners: list[str] = []

        def completions_of(owner: str) -> CompletionSource:
            self.owners.append(owner)
            return completions(owner) if callable(completions) else completions

        self.door = Door(completions_of, patience_seconds=patience_seconds)
        app = Starlette(routes=[self.door.routes(Middleware(Edge), Middleware(Guard, lambda: settings, NoPrograms))])
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def url(self) -> str:
        """What a client has as its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Ends the server: what is being answered ends first."""
        self.door.close()
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()


def serve(service: ChatService, *, patience_seconds: float = 10.0) -> ServedDoor:
    """Returns the routes over a real service."""
    return ServedDoor(lambda owner: service.for_owner(owner).completions, patience_seconds=patience_seconds)
