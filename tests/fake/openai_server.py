"""A scripted OpenAI-compatible server on loopback with real sockets.

    with FakeOpenAI() as server:
        server.script(text("Hello"), failure(500))     # the next chat requests, in order
        server.script(hang(), to="Bye")                # the next chat request whose last user message holds "Bye"
        server.script(hang(), kind="summary")          # the next summary request
        ...                                            # OPENAI_BASE_URL = server.url
        assert server.bodies("chat")[0]["messages"][-1]["content"] == "Hi"

Requests beyond the script are answered by the default responder, which answers chats and summaries sensibly.
The end of `with` waits for requests that are still on their way: one that a scripted reply is for may be behind by
then. A reply that none came for in time fails the test. A server that several tests share is lent to one after the
other, and takes only replies that say whom they are for:

    with server.lent(): ...

It makes embeddings, too: by `meaning_of`, unless `embedding_reply` says otherwise.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Self

from tests.fake.embedding import meaning_of
from tests.fake.one_slot import OneSlot
from tests.fake.openai_reply import Body, Reply, as_whole
from tests.fake.openai_responder import Kind, answer_body, asked_in, kind_of
from tests.fake.openai_script import Exchange, Responder, Script, Scripted, Scripts

_POLL_SECONDS: Final = 0.01
_PATIENCE_SECONDS: Final = 15.0


class FakeOpenAI:
    """The server; a context manager that listens on a free port of 127.0.0.1 and ends by itself.

    Attributes:
        pages: What it sends besides, by path from the host on.

    Args:
        models: What GET /v1/models lists: names, or whole entries such as `{"id": "m", "max_model_len": 4096}`.
        pause_seconds: Wait before each event of the default responder's answers.
        port: A fixed port, to start again where another one has been; 0 takes a free one.
        patience_seconds: How long the end of a test waits for the requests that its replies are for.

    Attributes:
        slot: What its requests wait for; None to answer all of them at once.
        embedding_reply: What requests of embeddings get in place of vectors: an error, a hang, or what a function of
            the body returns; vectors for None.
        embeddings: The requests of embeddings, each body with the key that it was sent with.
    """

    def __init__(
        self,
        *,
        models: Sequence[str | Body] = ("scripted-model",),
        pause_seconds: float = 0.0,
        port: int = 0,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self._default_models = tuple(models)
        self.models: list[str | Body] = list(models)
        self.model_list_reply: Reply | None = None
        self.pages: dict[str, object] = {}
        self.model_list_count = 0
        self.embedding_reply: Reply | Callable[[Body], object] | None = None
        self.embeddings: list[tuple[Body, str]] = []
        self.exchanges: list[Exchange] = []
        self.slot: OneSlot | None = None
        self._default_responder: Responder = lambda body: answer_body(body, pause_seconds=pause_seconds)
        self._responder: Responder = self._default_responder
        self._scripts = Scripts()
        self._patience_seconds = patience_seconds
        self._lock = threading.Condition()  # notified of each request that takes a reply
        self._over = threading.Event()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.fake = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.wait_until_asked()
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        if error is None:
            self._scripts.end()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The value for OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def open_count(self) -> int:
        """How many requests are being answered now."""
        with self._lock:
            return sum(1 for exchange in self.exchanges if exchange.finished_at is None)

    @property
    def hanging_count(self) -> int:
        """How many requests are at their `hang()` now: all that was scripted before it is sent."""
        with self._lock:
            return sum(1 for exchange in self.exchanges if exchange.is_hanging and exchange.finished_at is None)

    @contextmanager
    def lent(self, to: str = "", *, is_alone: bool = False) -> Iterator[Self]:
        """Lends a shared server to one test, and restores it at the end; raises `UnusedReplyError`.

        Each request of the test must contain `to`: others are answered, but not recorded. Without `to` each script must
        name its own, unless the test `is_alone`.
        """
        with self._lock:
            self._scripts, self.exchanges = Scripts(to=to, is_shared=not is_alone), []
        try:
            yield self
            self.wait_until_asked()
        finally:
            with self._lock:
                ended, self._scripts = self._scripts, Scripts(is_shared=True)
                self._responder = self._default_responder
                self.slot = None
                self.models, self.model_list_reply, self.model_list_count = list(self._default_models), None, 0
                self.pages = {}
                self.embedding_reply, self.embeddings = None, []
            self.end_hanging()
        ended.end()

    def end_hanging(self, *, for_good: bool = False) -> None:
        """Ends the requests that hang or wait between two events: they must not hold up the next test's.

        `for_good` also drops the test's own responder, by which a repeated request would hang again.
        """
        with self._lock:
            if for_good:
                self._responder = self._default_responder
            self._over.set()
            self._over = threading.Event()

    def script(self, *replies: Scripted, kind: Kind = "chat", to: str = "", may_stay: bool = False) -> Script:
        """Adds replies (or functions of the request's body) for the next requests of this kind, in order.

        `to` is text in the last user message; `may_stay` allows an unused reply, e.g. for a Stop before the request.
        """
        with self._lock:
            return self._scripts.add(replies, kind=kind, to=to, may_stay=may_stay)

    def wait_until_asked(self) -> None:
        """Waits until each scripted reply was asked for, as long as its patience lasts."""
        with self._lock:
            self._lock.wait_for(lambda: not self._scripts.left_over, self._patience_seconds)

    def forget_script(self) -> None:
        """Drops the replies that were scripted and not used."""
        with self._lock:
            self._scripts.forget()

    def respond_with(self, responder: Responder) -> None:
        """Replaces the default responder, which answers whatever isn't scripted."""
        self._responder = responder

    def bodies(self, kind: Kind | None = None, *, to: str = "") -> list[Body]:
        """Returns the request bodies received so far, in order; `to` as in `script`."""
        with self._lock:
            bodies = [exchange.body for exchange in self.exchanges if kind in (None, exchange.kind)]
        return [body for body in bodies if to in asked_in(body)]

    def wait_until(self, is_true: Callable[[FakeOpenAI], bool], seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while not is_true(self):
            if time.monotonic() > deadline:
                msg = f"not true after {seconds} s; {len(self.exchanges)} requests so far"
                raise TimeoutError(msg)
            time.sleep(_POLL_SECONDS)

    def _begin(self, sent: bytes, headers: dict[str, str]) -> tuple[Exchange, Reply]:
        body = json.loads(sent)
        exchange = Exchange(kind_of(body), body, headers, sent)
        with self._lock:
            if self._scripts.is_of_this_test(body):
                self.exchanges.append(exchange)
            scripted = self._scripts.take(exchange) or self._responder
            self._lock.notify_all()
        return exchange, scripted if isinstance(scripted, Reply) else scripted(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    fake: FakeOpenAI

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away between two requests is what tests are about; anything else is a defect."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # passed on as they came


class _ClientGoneError(Exception):
    """The client closed its connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server
    _over: threading.Event

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the base class's
        """Says nothing: a test's output is the test's."""

    def do_GET(self) -> None:
        self._over = self.server.fake._over  # noqa: SLF001  # one unit in two classes
        try:
            self._send_models()
        except (_ClientGoneError, OSError):
            self.close_connection = True

    def _send_models(self) -> None:
        fake = self.server.fake
        if self.path in fake.pages:
            self._send_page(b"")
            return
        if self.path.removeprefix("/v1") != "/models":
            self._send_json(404, {"error": {"message": "no such path"}})
            return
        fake.model_list_count += 1
        if (reply := fake.model_list_reply) is None:
            entries = [{"id": m, "object": "model"} if isinstance(m, str) else dict(m) for m in fake.models]
            self._send_json(200, {"object": "list", "data": entries})
        elif reply.ending == "hang":
            self._wait(None)
        else:
            self._send_json(reply.status, reply.error, reply.headers)

    def do_POST(self) -> None:
        sent, length = b"", int(self.headers["Content-Length"])
        with suppress(ConnectionError):
            sent = self.rfile.read(length)
        if len(sent) < length:  # the client went away in the middle of its request
            self.close_connection = True
            return
        if self.path in self.server.fake.pages:
            self._send_page(sent)
            return
        self._over = self.server.fake._over  # noqa: SLF001  # one unit in two classes
        if self.path.removeprefix("/v1") == "/embeddings":
            with suppress(_ClientGoneError, OSError):
                self._send_embeddings(json.loads(sent))
            return
        if self.path.removeprefix("/v1") != "/chat/completions":
            self._send_json(404, {"error": {"message": "no such path"}})
            return
        exchange, reply = self.server.fake._begin(sent, {k.lower(): v for k, v in self.headers.items()})  # noqa: SLF001  # one unit in two classes
        slot = self.server.fake.slot
        try:
            with slot.taken(exchange.body, reply, partial(self._wait, _POLL_SECONDS)) if slot else nullcontext():
                self._send(exchange, reply)
            exchange.is_finished = True
        except (_ClientGoneError, OSError):
            exchange.is_closed_early = True
            self.close_connection = True
        finally:
            exchange.finished_at = time.monotonic()

    def _send_embeddings(self, body: Body) -> None:
        fake = self.server.fake
        fake.embeddings.append((body, self.headers.get("Authorization", "")))
        given = fake.embedding_reply
        reply = given(body) if callable(given) else given
        if isinstance(reply, Reply):
            if reply.ending == "hang":
                self._wait(None)
            else:
                self._send_json(reply.status, reply.error, reply.headers)
            return
        if reply is not None:
            self._send_json(200, reply)
            return
        data = [
            {"object": "embedding", "index": index, "embedding": meaning_of(text)}
            for index, text in enumerate(body["input"])
        ]
        # In any order: the index says which text a vector is of.
        self._send_json(200, {"object": "list", "data": data[::-1], "usage": {"prompt_tokens": 7 * len(data)}})

    def _send_page(self, sent: bytes) -> None:
        page = self.server.fake.pages[self.path]
        self._send_json(200, page(json.loads(sent or b"null")) if callable(page) else page)

    def _send(self, exchange: Exchange, reply: Reply) -> None:
        if reply.is_silent:
            self._end(exchange, reply)
        elif reply.status != 200 or not exchange.body.get("stream"):
            self._send_json(reply.status, reply.error if reply.status != 200 else as_whole(reply), reply.headers)
        else:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in reply.events:
                self._wait(reply.pause_seconds)
                self._write(reply.frame.replace("{}", event))
            self._end(exchange, reply)

    def _end(self, exchange: Exchange, reply: Reply) -> None:
        if reply.ending == "hang":
            exchange.is_hanging = True
            self._wait(None)
        elif reply.ending == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
        else:
            if reply.ending == "done":
                self._write("data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")

    def _write(self, words: str) -> None:
        data = words.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _wait(self, seconds: float | None) -> None:
        """Waits that long (None: until the test is over); raises as soon as the client has gone."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self._over.is_set():
            rest = 0.05 if deadline is None else min(0.05, deadline - time.monotonic())
            readable, _, _ = select.select([self.connection], [], [], max(0.0, rest))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise _ClientGoneError
            if deadline is not None and time.monotonic() >= deadline:
                return
        self.close_connection = True

    def _send_json(self, status: int, value: object, headers: Body | None = None) -> None:
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if isinstance(value, str) else "application/json")
        for name, words in (headers or {}).items():
            self.send_header(name, words)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
