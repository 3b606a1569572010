"""Several servers of the product over one database, each a process of its own.

with app_servers(tmp_path, model.url) as (one, other):
    one.chat({"message": "안녕하세요"}, until=...)
    one.kill()
    other.get("/sessions")
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.fake.served_app import ask_health, served
from tests.fake.served_chat import Answer

TOKEN: Final = "token-of-a-program-0123456789"  # noqa: S105  # of these servers alone
_PATIENCE_SECONDS: Final = 60.0


@dataclass
class AppServer:
    """One server, and a program that asks it."""

    process: subprocess.Popen[bytes]
    port: int
    program: httpx2.Client

    def wait_until_ready(self) -> None:
        assert ask_health(self.port, self.process) == (200, "ok")

    def kill(self) -> None:
        """Ends it as a power failure would."""
        self.process.kill()
        self.process.wait()

    def get(self, path: str) -> Any:  # noqa: ANN401  # JSON of any shape
        return self.program.get(path).raise_for_status().json()

    def post(self, path: str) -> int:
        """Sends a request without a body; returns the status."""
        return self.program.post(path).status_code

    def chat(self, body: Mapping[str, Any], *, until: Callable[[bytes], bool] = lambda _: False) -> Answer:
        """Sends a message and reads its events to the end, or until they look like that; then the client is gone."""
        return self._read("POST", "/chat", until, json=body)

    def follow(self, session_id: str, *, until: Callable[[bytes], bool] = lambda _: False) -> Answer:
        """Reads the events of the newest turn."""
        return self._read("GET", f"/chat/{session_id}/events", until)

    def _read(self, method: str, path: str, until: Callable[[bytes], bool], **request: Any) -> Answer:  # noqa: ANN401  # what httpx takes
        with self.program.stream(method, path, **request) as answer:
            body = b""
            for piece in answer.iter_raw():
                body += piece
                if until(body):
                    break
            return Answer(answer.status_code, answer.headers, body)


@contextmanager
def app_servers(folder: Path, model_url: str, count: int = 2, **settings: str) -> Iterator[list[AppServer]]:
    """Starts the servers at once over the files of a folder, or each with a folder of its own and one Postgres."""
    settings = {"CHAT_API_TOKENS": f"editor:local:{TOKEN}", "MODEL_WINDOW_TOKENS": "100000", **settings}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with ExitStack() as stack:
        servers: list[AppServer] = []
        for number in range(count):
            log = folder / f"log-{number}"
            data = folder / (f"data-{number}" if "CHAT_DATABASE_URL" in settings else "data")
            process, port = stack.enter_context(served("app.py", data, model_url, log, **settings))
            url = f"http://127.0.0.1:{port}"
            program = httpx2.Client(base_url=url, headers=headers, timeout=_PATIENCE_SECONDS, trust_env=False)
            servers.append(AppServer(process, port, stack.enter_context(program)))
        for server in servers:
            server.wait_until_ready()
        yield servers
