"""Connections that keep to no client's manners, byte by byte."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

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
