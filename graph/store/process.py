"""Identifies this process across hosts and containers, and tells whether another process has ended."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
_STATE_FIELD = 0
_START_FIELD = 19
_DEAD_STATES = ("Z", "X", "x")


@dataclass(frozen=True)
class Process:
    """A process, told apart from a later one with the same id by its start.

    Attributes:
        host: Host name, boot id and pid namespace: where the process id is valid.
        process_id: The id in that namespace.
        started: In the kernel's ticks since boot, "" where there is no /proc. Not a time of day, such as psutil's
            `create_time`: that would change whenever the clock is set.
    """

    host: str
    process_id: int
    started: str


def process_name(process: Process) -> str:
    """Returns a process as one text."""
    return f"{process.process_id} {process.started} {process.host}"


def named_process(name: str) -> Process | None:
    """Returns the process of a name that `process_name` made; None for any other text."""
    process_id, *rest = name.split(" ", 2)
    if not process_id.isdecimal() or len(rest) != 2:  # noqa: PLR2004  # its start and its host
        return None
    return Process(rest[1], int(process_id), rest[0])


def this_process() -> Process:
    """Returns the calling process; not cached, because a fork is another one."""
    process_id = os.getpid()
    stat = _read_stat(process_id)
    return Process(_host(), process_id, stat[_START_FIELD] if stat else "")


def is_gone(process: Process) -> bool:
    """Whether the process has certainly ended; False if that can't be known, as for another host."""
    if process.host != _host():
        return False
    if process.started:
        stat = _read_stat(process.process_id)
        return stat is None or stat[_STATE_FIELD] in _DEAD_STATES or stat[_START_FIELD] != process.started
    try:
        os.kill(process.process_id, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it runs, as another user
    return False


@cache
def _host() -> str:
    """Returns a name for host and pid namespace; the host's name alone may be shared by several containers."""
    return f"{socket.gethostname()}/{_boot_id()}/{_pid_namespace()}"


def _boot_id() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _read_stat(process_id: int) -> list[str] | None:
    """Returns the fields after the command name, which is in brackets and may contain spaces and brackets itself."""
    try:
        text = (_PROC / str(process_id) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
