"""Ports of loopback for servers that a test starts as processes of their own."""

from __future__ import annotations

import secrets
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_START_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.02


# Below the ports that the system gives out by itself: none of those takes this one before its server has it.
_PORTS: Final = range(10_000, 32_000)


def free_port() -> int:
    while True:
        port = secrets.choice(_PORTS)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def wait_for_port(port: int, process: subprocess.Popen[Any], log: Path) -> None:
    """Returns when the process takes connections there; fails with its log if it ends, or doesn't in time."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(_POLL_SECONDS)
        else:
            return
