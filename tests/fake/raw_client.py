"""Connections that keep to no client's manners, byte by byte."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from websockets.frames import Opcode

from tests.fake.served_programs import TOKEN

_PATIENCE_SECONDS: Final = 30.0


def head(method: str, path: str, *fields: str, token: str = TOKEN) -> bytes:
    """A request's head, whole."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """A connection on which nothing was sent yet."""
    with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS) as connection:
        yield connection


def answer_of(connection: socket.socket) -> tuple[int, bytes]:
    """The first answer: its status, and all else until the server closes the connection."""
    answer = b""
    with suppress(ConnectionResetError):  # what was sent meanwhile came to a closed connection
        while piece := connection.recv(65_536):
            answer += piece
    return int(answer[9:12] or b"0"), answer


def drip(connection: socket.socket, *, pause_seconds: float = 0.02) -> bool:
    """Sends a byte at a time until the server closes the connection; whether it did so before a minute is over."""
    with suppress(OSError):
        for _ in range(int(60 / pause_seconds)):
            connection.sendall(b"a")
            time.sleep(pause_seconds)
        return False
    return True


def handshake(port: int, path: str, *fields: str, is_compressed: bool = False) -> bytes:
    """What asks for a websocket."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        *(["Sec-WebSocket-Extensions: permessage-deflate"] if is_compressed else []),
        *fields,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@contextmanager
def websocket(port: int, path: str, *fields: str, is_compressed: bool = False) -> Iterator[socket.socket]:
    """A websocket after its handshake, on which each frame is sent by hand."""
    with connected(port) as connection:
        connection.sendall(handshake(port, path, *fields, is_compressed=is_compressed))
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += connection.recv(1)
        assert answer.startswith(b"HTTP/1.1 101 "), answer
        yield connection


def frame(
    payload: bytes, opcode: Opcode = Opcode.BINARY, *, is_last: bool = True, is_compressed: bool = False
) -> bytes:
    """A frame as a client sends it, masked by zeros, which change nothing."""
    first, length = opcode | is_last << 7 | is_compressed << 6, len(payload)
    if length < 126:
        head_bytes = struct.pack("!BB", first, 128 | length)
    elif length < 2**16:
        head_bytes = struct.pack("!BBH", first, 128 | 126, length)
    else:
        head_bytes = struct.pack("!BBQ", first, 128 | 127, length)
    return head_bytes + bytes(4) + payload


def close_code(connection: socket.socket) -> int:
    """The code that the server closes a websocket with, which says nothing else; 0 for a connection that broke off."""
    received = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            received += piece
    return int.from_bytes(received[2:4]) if received[:1] == bytes([128 | Opcode.CLOSE]) else 0
