"""Counts the bytes that a server sends to its browser, as they go over the wire, by connection."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Final

_CHUNK_BYTES: Final = 65_536


class Wire:
    """A TCP relay on loopback in front of a server.

    Attributes:
        url: Where the browser finds the server through this relay.
        received_bytes: What the server has sent so far over each connection, in the order of their opening.
    """

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.received_bytes: list[int] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Takes no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                browser, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                for end in (browser, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.received_bytes.append(0)
                number = len(self.received_bytes) - 1
                threading.Thread(target=self._relay, args=(browser, server, None), daemon=True).start()
                threading.Thread(target=self._relay, args=(server, browser, number), daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket, counted: int | None) -> None:
        with suppress(OSError), source, target:
            while data := source.recv(_CHUNK_BYTES):
                if counted is not None:
                    self.received_bytes[counted] += len(data)
                target.sendall(data)
