"""`/chat` of a real service behind a real server on loopback, and a client that reads its events.

with ServedChat(chat.service) as served:
    stream = served.send({"message": "안녕하세요"})
    assert stream.told[-1].data == "[DONE]"
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import anyio
import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware

from api.access import Guard
from api.chat import Chat
from api.edge import Edge
from graph.service import ChatService
from graph.settings import Settings

TOKEN: Final = "token-of-a-program-0123456789"  # noqa: S105  # a test's own
OTHERS_TOKEN: Final = "token-of-another-owner-012345"  # noqa: S105  # a test's own
DONE: Final = "[DONE]"


class Told(NamedTuple):
    """One event as a client reads it; a chunk has no name."""

    id: str
    name: str
    data: str

    @property
    def value(self) -> Any:  # noqa: ANN401  # JSON of any shape
        return json.loads(self.data)


def read(lines: bytes) -> list[Told]:
    """The whole events of a stream that may have been cut anywhere."""
    told = []
    for block in lines.decode(errors="ignore").split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if "data" in fields:
            told.append(Told(fields.get("id", ""), fields.get("event", ""), fields["data"]))
    return told


def text_of(told: list[Told]) -> str:
    """What a client shows that keeps all of these: a snapshot or a restart replaces what it had."""
    text = ""
    for each in told:
        if each.name in ("snapshot", "answer_restarted"):
            text = each.value["text"]
        elif not each.name and each.data != DONE:
            text += "".join(choice["delta"].get("content", "") for choice in each.value.get("choices", ()))
    return text


class Answer(NamedTuple):
    """An answer as far as it was read."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def told(self) -> list[Told]:
        return read(self.body)

    @property
    def json(self) -> Any:  # noqa: ANN401  # JSON of any shape
        return json.loads(self.body)


class ServedChat:
    """A context manager; listens on a free port of 127.0.0.1 and ends by itself.

    Args:
        service: What it serves, to two owners: that of the settings, and one named "other".
        tools: The server's tools that its programs may use, None for all.
    """

    def __init__(self, service: ChatService, *, tools: str = "") -> None:
        owner = service.settings.turnfold_owner
        tokens = f"editor:{owner}:{TOKEN}{tools},others:other:{OTHERS_TOKEN}"
        settings = Settings(_env_file=None, chat_api_tokens=tokens)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic reads the text
        self.chat = Chat(service.for_owner, anyio.CapacityLimiter(8))
        checks = Middleware(Edge), Middleware(Guard, lambda: settings)
        app = Starlette(routes=[*self.chat.routes()], middleware=checks)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._client = httpx2.Client(base_url=f"http://127.0.0.1:{self._socket.getsockname()[1]}", timeout=60)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Ends the server: what is being streamed ends first."""
        self.chat.close()
        self._client.close()
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()

    def send(self, body: Mapping[str, Any], **how: Any) -> Answer:  # noqa: ANN401  # see `ask`
        return self.ask("POST", "/chat", json=body, **how)

    def follow(self, session_id: str, after: str = "", **how: Any) -> Answer:  # noqa: ANN401  # see `ask`
        headers = {"Last-Event-ID": after} if after else {}
        return self.ask("GET", f"/chat/{session_id}/events", headers=headers, **how)

    def ask(
        self,
        method: str,
        path: str,
        *,
        token: str = TOKEN,
        headers: Mapping[str, str] | None = None,
        until: Callable[[bytes], bool] = lambda _: False,
        **request: Any,  # noqa: ANN401  # what httpx takes
    ) -> Answer:
        """Sends a request and reads its answer to the end, or until it looks like that; then the client is gone."""
        with self.opened(method, path, token=token, headers=headers, **request) as answer:
            body = b""
            for piece in answer.iter_raw():
                body += piece
                if until(body):
                    break
            return Answer(answer.status_code, answer.headers, body)

    @contextmanager
    def opened(
        self,
        method: str,
        path: str,
        *,
        token: str = TOKEN,
        headers: Mapping[str, str] | None = None,
        **request: Any,  # noqa: ANN401  # what httpx takes
    ) -> Iterator[httpx2.Response]:
        """Sends a request, and leaves it to the caller to read the answer."""
        sent = {"Authorization": f"Bearer {token}", **(headers or {})}
        with self._client.stream(method, path, headers=sent, **request) as answer:
            yield answer
