"""Connections that keep to no client's manners: heads, bodies and frames, byte by byte."""

from __future__ import annotations

import base64
import secrets
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from tests.fake.upload import BOUNDARY, XSRF

BINARY = 2
CONTINUATION = 0
TEXT = 1
_PATIENCE_SECONDS = 10.0
_PIECE = 2**20
_PING = b"\x89"


def head(method: str, path: str, *fields: str, token: str = "", host: str = "localhost") -> bytes:
    """Returns a request's head, whole."""
    named = [f"Authorization: Bearer {token}"] if token else []
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *named, *fields, "", ""]).encode()


def upload_head(host: str, tab: str, length: int) -> bytes:
    """Returns the head of a file's upload to a tab, as a browser sends it."""
    token = generate_xsrf_token_string()
    return head(
        "PUT",
        f"/_stcore/upload_file/{tab}/{secrets.token_hex(8)}",
        f"Origin: http://{host}",
        f"X-Xsrftoken: {token}",
        f"Cookie: {XSRF}={token}",
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}",
        f"Content-Length: {length}",
        host=host,
    )


def stream_head(port: int, *, is_compressed: bool = False) -> bytes:
    """Returns the head that asks for a page's websocket, as nobody who signed in sends it."""
    key = base64.b64encode(secrets.token_bytes(16)).decode()
    more = ["Sec-WebSocket-Extensions: permessage-deflate"] if is_compressed else []
    fields = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}")
    return head("GET", "/_stcore/stream", *fields, "Sec-WebSocket-Protocol: streamlit", *more, host=f"127.0.0.1:{port}")


def frame(payload: bytes, kind: int, *, is_last: bool, is_compressed: bool = False) -> bytes:
    """Returns a client's frame; its mask changes nothing."""
    size = len(payload)
    if size < 126:
        length = struct.pack("!B", 0x80 | size)
    elif size < 2**16:
        length = struct.pack("!BH", 0x80 | 126, size)
    else:
        length = struct.pack("!BQ", 0x80 | 127, size)
    return bytes([0x80 * is_last | 0x40 * is_compressed | kind]) + length + bytes(4) + payload


class Wire:
    """An open connection; `has_sent` says whether the server took all that was sent."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS)
        self.has_sent = True

    def send(self, *parts: bytes) -> None:
        """Sends what it's given for as long as the server takes it."""
        try:
            for part in parts:
                view = memoryview(part)
                for start in range(0, len(view), _PIECE):
                    self.socket.sendall(view[start : start + _PIECE])
        except OSError:  # refused, closed, or not read any more
            self.has_sent = False

    def begin(self, asked: bytes) -> bool:
        """Asks for a websocket; returns whether the server agreed."""
        self.send(asked)
        self.has_sent = self.status() == 101
        return self.has_sent

    def status(self) -> int:
        """Reads the head of an answer; returns its status, 0 for none."""
        read = b""
        with suppress(OSError):
            while b"\r\n\r\n" not in read and (piece := self.socket.recv(1)):
                read += piece
        return int(read[9:12]) if read[9:12].isdigit() else 0

    @property
    def is_open(self) -> bool:
        """Whether all was taken and the server neither answered nor closed the connection; pings are no answer."""
        if not self.has_sent:
            return False
        self.socket.settimeout(0)
        try:
            return self.socket.recv(2, socket.MSG_PEEK)[:1] == _PING
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            self.socket.settimeout(_PATIENCE_SECONDS)


@contextmanager
def opened(port: int, count: int, begin: Callable[[Wire], object]) -> Iterator[Sequence[Wire]]:
    """Opens so many connections, a few at once, and begins on each; yields those that were taken, and closes them."""

    def one(_: int) -> Wire | None:
        with suppress(OSError):
            wire = Wire(port)
            begin(wire)
            return wire
        return None

    with ThreadPoolExecutor(16) as pool:
        wires = [wire for wire in pool.map(one, range(count)) if wire is not None]
    try:
        yield wires
    finally:
        for wire in wires:
            wire.socket.close()


def count_open(wires: Sequence[Wire]) -> int:
    """Returns how many connections the server still holds as they are."""
    return sum(wire.is_open for wire in wires)


def drip(wires: Sequence[Wire], seconds: float) -> None:
    """Sends a byte a second on each."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for wire in wires:
            wire.send(b"a")
        time.sleep(1)
