"""Stands between the product and the model's server, and notes what each call had the server read.

It also keeps a weak model from talking on for ever, as no comparison of caches is possible then: an answer has so many
tokens, a summary what was asked for, and both end as if the model had ended them.
"""

from __future__ import annotations

import http.client
import json
import re
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from tests.fake.openai_responder import Kind, asked_in, kind_of

_ANSWER_TOKENS: Final = 120
_TITLE_TOKENS: Final = 24
_CHARS_A_TOKEN: Final = 4
_SIZE: Final = re.compile(r"(\d+)(?:자| characters)")


@dataclass
class Call:
    """One call of the product.

    Attributes:
        evaluated: Prompt tokens that the server has read, as far as it has said; None if it hasn't.
        cached: Prompt tokens that were in its slot already.
        written: Tokens of the answer.
        first_at: When the first word came; None if none did.
        is_whole: Whether it was answered to the end; the product stopped it otherwise.
    """

    kind: Kind
    began_at: float
    evaluated: int | None = None
    cached: int | None = None
    written: int | None = None
    first_at: float | None = None
    ended_at: float | None = None
    is_whole: bool = False


@dataclass
class Proxy:
    """The calls so far, in the order in which they came."""

    upstream: str
    url: str = ""
    calls: list[Call] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def running(self, *kinds: Kind) -> bool:
        """Whether a call of these kinds is being answered."""
        with self.lock:
            return any(call.kind in kinds and call.ended_at is None for call in self.calls)


@contextmanager
def counting_proxy(upstream: str) -> Iterator[Proxy]:
    """Runs a proxy in front of a server while the block runs."""
    proxy = Proxy(upstream)
    server = _Server(("127.0.0.1", 0), _Handler)
    server.proxy = proxy
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    proxy: Proxy


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        answer = self._upstream("GET", None)
        body = answer.read()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = kind_of(body)
        call = Call(kind, time.monotonic())
        with self.server.proxy.lock:
            self.server.proxy.calls.append(call)
        connection = self._connection()
        connection.connect()
        threading.Thread(target=self._watch, args=(connection, call), daemon=True).start()
        try:
            self._forward(connection, _tamed(body, kind), call)
        except (OSError, http.client.HTTPException):
            pass
        finally:
            call.ended_at = time.monotonic()
            connection.close()
            self.close_connection = True

    def _watch(self, connection: http.client.HTTPConnection, call: Call) -> None:
        """Ends the call at the server as soon as the product has gone, as it would end without a proxy."""
        while call.ended_at is None:
            readable, _, _ = select.select([self.connection], [], [], 0.05)
            try:
                if readable and not self.connection.recv(1):
                    connection.sock.shutdown(socket.SHUT_RDWR)
                    return
            except (OSError, AttributeError):
                return

    def _forward(self, connection: http.client.HTTPConnection, body: Mapping[str, Any], call: Call) -> None:
        connection.request("POST", self.path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
        self.send_header("Connection", "close")
        self.end_headers()
        if answer.status != 200:
            self.wfile.write(answer.read())
            return
        while line := answer.readline():
            if line.startswith(b"data: {"):
                line = b"data: " + json.dumps(self._noted(json.loads(line[6:]), call)).encode() + b"\n"
            call.is_whole = call.is_whole or line.startswith(b"data: [DONE]")
            self.wfile.write(line)
            self.wfile.flush()

    def _noted(self, chunk: dict[str, Any], call: Call) -> dict[str, Any]:
        for choice in chunk.get("choices") or []:
            if (choice.get("delta") or {}).get("content") and call.first_at is None:
                call.first_at = time.monotonic()
            if choice.get("finish_reason") == "length":
                choice["finish_reason"] = "stop"
        if progress := chunk.pop("prompt_progress", None):
            call.evaluated, call.cached = progress["processed"] - progress["cache"], progress["cache"]
        if timings := chunk.get("timings"):
            call.evaluated, call.cached = timings.get("prompt_n"), timings.get("cache_n")
            call.written = timings.get("predicted_n")
        return chunk

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.server.proxy.upstream)
        return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=600)

    def _upstream(self, method: str, body: str | None) -> http.client.HTTPResponse:
        connection = self._connection()
        connection.request(method, self.path, body)
        return connection.getresponse()


def _tamed(body: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    kept = {name: value for name, value in body.items() if name not in ("max_tokens", "max_completion_tokens")}
    sizes = _SIZE.findall(asked_in(body)) if kind == "summary" else []
    asked = int(sizes[0]) // _CHARS_A_TOKEN if sizes else 1
    own = body.get("max_tokens", body.get("max_completion_tokens", 10**6))
    most = min(own, {"chat": _ANSWER_TOKENS, "title": _TITLE_TOKENS, "summary": asked}[kind])
    return {**kept, "max_tokens": most, "return_progress": True}
