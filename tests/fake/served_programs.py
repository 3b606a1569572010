"""The routes for programs over a real service, behind a real server on loopback; three programs, two owners.

with ServedPrograms(service) as served:
    served.client().get("/sessions")             # the owner's own program
    served.client(NARROW).get("/sessions")       # another one of his, which may use one tool
    served.client(STRANGER).get("/sessions")     # another owner's
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from typing import Final, Self

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware

from api.middleware import HostCheck
from api.program_routes import ProgramRoutes
from graph.server.settings import Settings
from graph.service import ChatService

TOKEN: Final = "token-of-a-program-0123456789"  # noqa: S105  # of this test server alone
STRANGER: Final = "token-of-a-stranger-012345678"
NARROW: Final = "token-of-one-tool-0123456789a"
TOKENS: Final = f"editor:local:{TOKEN},stranger:stranger:{STRANGER},narrow:local:{NARROW}:recall"
_PATIENCE_SECONDS: Final = 60.0
# To read the system's certificates takes longer than most requests, and nothing on loopback has one.
_NO_CERTIFICATES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Loopback:
    """A context manager that serves an app on a free port of 127.0.0.1 and ends by itself."""

    def __init__(self, app: Starlette, close: Callable[[], None]) -> None:
        self.app = app
        self._close = close
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end_streams()
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()

    def end_streams(self) -> None:
        """Ends what is being answered, as a server does that was told to end."""
        self._close()


class ServedPrograms(Loopback):
    """Serves all routes for programs."""

    def __init__(self, service: ChatService, *, tokens: str = TOKENS) -> None:
        roots = service.settings.project_roots
        settings = Settings(_env_file=None, chat_api_tokens=tokens, project_roots=roots)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic reads the text
        programs = ProgramRoutes(service.for_owner, lambda: settings, lambda: service.programs)
        app = Starlette(routes=programs.routes(), middleware=[Middleware(HostCheck, lambda: settings)])
        super().__init__(app, programs.close)

    def client(self, token: str = TOKEN) -> httpx2.Client:
        """Returns a client that sends this token, or none for ""."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.Client(
            base_url=self.url, headers=headers, timeout=_PATIENCE_SECONDS, trust_env=False, verify=_NO_CERTIFICATES
        )
