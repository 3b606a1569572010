"""An OpenAI-compatible endpoint on loopback that begins after 300 ms and speaks at a steady pace."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

FIRST_SECONDS: Final = 0.3
PIECE_SECONDS: Final = 0.03
AT_ONCE: Final = "[at once]"  # a message that begins so is answered without any wait
TIMED: Final = "ask-"  # and one that begins so at the pace of a model; anything else asks for a summary
SUMMARY: Final = " ".join(f"{day}일에는 회의를 10월 14일로, 예산을 1,200만 원으로 정했습니다." for day in range(1, 9))
ENDLESS: Final = "[endless]"  # a message that begins so is answered for half a minute
SLOW: Final = "[slow]"  # and one that begins so by a word every two seconds, until the endpoint ends all of these
SLOW_SECONDS: Final = 2.0
_SENTENCE: Final = "회의는 10월 14일이며 예산은 1,200만 원입니다. The plan stays as it is, and the tests come first. "
_PIECES: Final = 100
ANSWER: Final = "\n\n".join([_SENTENCE * 4] * 4)


def answer_to(text: str) -> str:
    """Returns what the endpoint answers; its first and last word are made of the message's first word."""
    if not text.startswith((AT_ONCE, TIMED, ENDLESS)):
        return SUMMARY
    begin, end = ends_of(text)
    return f"{begin} {ANSWER} {end}"


def ends_of(text: str) -> tuple[str, str]:
    """Returns the first and the last word of the answer to a message."""
    name = text.split(maxsplit=1)[0]
    return f"begin-{name}", f"end-{name}"


@dataclass(frozen=True)
class Endpoint:
    """The endpoint as it serves.

    Attributes:
        url: The base URL.
        may_end: Set to end the slow answers.
    """

    url: str
    may_end: threading.Event


@contextmanager
def serving() -> Iterator[Endpoint]:
    """Serves while the block runs."""
    server = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield Endpoint(f"http://127.0.0.1:{server.server_address[1]}/v1", server.may_end)
    finally:
        server.may_end.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1_024  # hundreds may come within one moment

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401  # the base class's own
        super().__init__(*arguments)
        self.may_end = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the second event of an answer may wait for 40 ms
    server: _Server

    def log_message(self, *_: object) -> None:
        """Stays silent."""

    def do_GET(self) -> None:
        """Lists the one model."""
        self._send_json({"object": "list", "data": [{"id": "bench-model", "object": "model"}]})

    def do_POST(self) -> None:
        """Streams the answer; a request that asks for no stream (a summary) is answered whole."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = str(body["messages"][-1]["content"])
        if body.get("stream"):
            with suppress(ConnectionError):  # the tab that asked was closed
                self._stream(text)
            return
        message = {"role": "assistant", "content": SUMMARY}
        self._send_json({**_HEAD, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    def _stream(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        if text.startswith(SLOW):
            self._send_slowly(*ends_of(text))
        else:
            self._send_pieces(text)
        self._send_event({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _send_slowly(self, begin: str, end: str) -> None:
        self._send_event({"content": begin}, None)
        while not self.server.may_end.wait(SLOW_SECONDS):
            self._send_event({"content": " word"}, None)
        self._send_event({"content": f" {end}"}, None)

    def _send_pieces(self, text: str) -> None:
        is_timed = text.startswith((TIMED, ENDLESS))
        answer = answer_to(text) * (10 if text.startswith(ENDLESS) else 1)
        size = -(-len(answer_to(text)) // _PIECES)
        time.sleep(FIRST_SECONDS * is_timed)
        for start in range(0, len(answer), size):
            self._send_event({"content": answer[start : start + size]}, None)
            time.sleep(PIECE_SECONDS * is_timed)

    def _send_event(self, delta: dict[str, str], finish_reason: str | None) -> None:
        event = {**_HEAD, "object": "chat.completion.chunk"}
        event["choices"] = [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")

    def _send_json(self, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


_HEAD: Final[dict[str, Any]] = {
    "id": "chatcmpl-bench",
    "object": "chat.completion",
    "created": 0,
    "model": "bench-model",
    "usage": {"prompt_tokens": 100, "completion_tokens": 500, "total_tokens": 600},
}
