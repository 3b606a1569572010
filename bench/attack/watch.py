"""Watches a server from outside while it is attacked: its memory, and how long its health takes to answer."""

from __future__ import annotations

import http.client
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.attack.server import Target

MEGABYTE = 2**20
MOST_MEMORY = 900  # MiB over the start; then the server is ended, so that the machine isn't
_WINDOW_SECONDS = 1.0


class Gauge:
    """Looks all the while, from two threads of its own; memory in MiB. `is_over`: the server held too much."""

    def __init__(self, target: Target, route: str) -> None:
        self._target = target
        self._route = route
        self._more: list[Callable[[], int]] = []
        self._samples: list[tuple[float, float]] = []
        self._held: list[float] = []
        self._times: list[float] = []
        self._asked_at = 0.0
        self._end = threading.Event()
        self._answered = threading.Event()
        self._peak_before = self._peak()
        self.before = self._memory()
        self.health_errors = 0
        self.is_over = False

    @property
    def peak(self) -> float:
        """Over the start at most, also between two looks."""
        most = max((size for _, size in self._samples), default=self.before)
        peak = self._peak()
        return max(most, peak if peak > self._peak_before else 0.0) - self.before

    @property
    def held(self) -> float:
        """Over the start in the holds, the largest of them; without any, the last ones."""
        return max(self._held, default=self._least(_WINDOW_SECONDS))

    @property
    def slowest(self) -> float:
        """Seconds of the slowest health answer, one that isn't there yet included."""
        return max([*self._times, time.monotonic() - self._asked_at if self._asked_at else 0.0])

    def add(self, memory: Callable[[], int]) -> None:
        """Counts further bytes from now on."""
        self._more.append(memory)

    def hold(self, seconds: float) -> None:
        """Waits, and takes what is held at the end of it."""
        self._end.wait(seconds)
        self._held.append(self._least(min(seconds, _WINDOW_SECONDS)))

    def is_well(self, patience_seconds: float) -> bool:
        """Waits until health has answered what was asked from now on."""
        deadline = time.monotonic() + patience_seconds
        for _ in range(2):  # the first answer may be to what was asked before
            self._answered.clear()
            while not self._answered.wait(0.1):
                if time.monotonic() > deadline or not self._target.is_alive:
                    return False
        return True

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Looks while the block runs."""
        threads = [threading.Thread(target=look, daemon=True) for look in (self._look, self._ask)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._times.append(self.slowest)
            self._end.set()
            for thread in threads:
                thread.join(1)  # an answer that never comes isn't waited for

    def _least(self, seconds: float) -> float:
        since = (self._samples[-1][0] if self._samples else 0.0) - seconds  # of a server that was ended, its last ones
        return min((size for at, size in self._samples if at >= since), default=self.before) - self.before

    def _look(self) -> None:
        while not self._end.wait(0.05):
            size = self._memory()
            if size:
                self._samples.append((time.monotonic(), size))
            if size - self.before > MOST_MEMORY:
                self.is_over = True
                self._target.kill()
                return

    def _ask(self) -> None:
        while not self._end.is_set():
            self._asked_at = time.monotonic()
            is_ok = self._is_ok()
            if self._end.is_set():
                return
            self._times.append(time.monotonic() - self._asked_at)
            self._asked_at = 0.0
            if is_ok:
                self._answered.set()
            elif self._target.is_alive:
                self.health_errors += 1
            self._end.wait(0.2)

    def _is_ok(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._target.port, timeout=120)
        try:
            connection.request("GET", self._route)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _memory(self) -> float:
        pid = self._target.process.pid
        return (_status(pid, "VmRSS") + deleted_bytes(pid) + sum(more() for more in self._more)) / MEGABYTE

    def _peak(self) -> float:
        return _status(self._target.process.pid, "VmHWM") / MEGABYTE


def deleted_bytes(pid: int) -> int:
    """Returns how large the files are that a process holds open and that no folder has any more.

    That is how bodies are spooled; where the folder for temporary files is in memory, they are memory.
    """
    total = 0
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found = os.stat(entry)
                total += found.st_size if stat.S_ISREG(found.st_mode) and found.st_nlink == 0 else 0
    return total


def cpu_seconds(pid: int) -> float:
    """Returns how long a process has worked so far."""
    with suppress(OSError):
        parts = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def memory(pid: int) -> float:
    """Returns what a process holds, in MiB."""
    return _status(pid, "VmRSS") / MEGABYTE


def _status(pid: int, name: str) -> int:
    with suppress(OSError):
        found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        return int(found[1]) * 1_024 if found else 0
    return 0
