"""Which process of which host this is, and whether another one is gone."""

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
    """A process for good: its id may be used again, but not with the same start.

    Attributes:
        host: Name, boot and process-id space: where the id means something.
        process_id: The id in that space.
        started: When it started, in the kernel's ticks, or "" where there is no /proc.
    """

    host: str
    process_id: int
    started: str


def this_process() -> Process:
    """Returns the process that asks (not cached: a fork is another one)."""
    process_id = os.getpid()
    stat = _read_stat(process_id)
    return Process(_host(), process_id, stat[_START_FIELD] if stat else "")


def is_gone(process: Process) -> bool:
    """Whether the process surely runs no more; False when it can't be known, as for another host."""
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
        return False
    return False


@cache
def _host() -> str:
    """Containers may share a host name: the boot and the id space tell them apart."""
    return f"{socket.gethostname()}/{_boot_id()}/{_process_id_space()}"


def _boot_id() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _process_id_space() -> str:
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _read_stat(process_id: int) -> list[str] | None:
    """The fields after the command's name, which is in brackets and may hold spaces and brackets itself."""
    try:
        text = (_PROC / str(process_id) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
