"""A server that an attack meets, and that stands it as badly as it is told to.

python -m tests.fake.attacked_server <port>

`POST /do/<what>` of `keep` (60 MB), `stop` (answers nothing any more), `die`, `wait` (with health), `forget` (turns).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from bench.attack.target import Target, answer_to
from tests.fake.openai_server import FakeOpenAI
from tests.fake.port import free_port, wait_for_port
from tests.fake.served_app import ROOT

_SIZE: Final = 60 * 2**20
_WAIT_SECONDS: Final = 2.2


@contextmanager
def serving(folder: Path, endpoint: FakeOpenAI) -> Iterator[Target]:
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.fake.attacked_server", str(port)], cwd=ROOT, stdout=log, stderr=log
        )
    try:
        wait_for_port(port, process, folder / "log")
        target = Target(process, port, folder, {}, endpoint)
        target.is_warm = True
        yield target
    finally:
        process.kill()
        process.wait()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.kept: list[bytes] = []
        self.turns: list[dict[str, str]] = []
        self.told = ""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/health" and self.server.told == "wait":
            time.sleep(_WAIT_SECONDS)
        self._answer(200, {"turns": [] if self.server.told == "forget" else self.server.turns})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/do/"):
            self._do(self.path.removeprefix("/do/"))
            self._answer(200, {})
        else:
            self._stream(json.loads(body)["messages"][-1]["content"])

    def _do(self, what: str) -> None:
        self.server.told = what
        match what:
            case "keep":
                self.server.kept.append(b"a" * _SIZE)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "die":
                os._exit(1)

    def _stream(self, question: str) -> None:
        self.send_response(200)
        self.send_header("X-Turnfold-Session", "only")
        self.end_headers()
        answer = answer_to(question)
        for piece in (answer[:20], answer[20:]):
            chunk = {"choices": [{"delta": {"content": piece}}]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()
            time.sleep(0.2)
        self.server.turns.append({"user_text": question, "answer_text": answer})

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    _Server(int(sys.argv[1])).serve_forever()
