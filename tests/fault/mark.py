"""How a process under test tells its parent what it is doing: one line a fact, by a pipe."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PHASES: Final = ("accept", "stream", "tool", "word", "call", "fold", "checkpoint", "archive")


class Marker:
    """Writes lines to the parent; a line is one write, so that a kill can't leave half of one."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def say(self, *words: object) -> None:
        os.write(self._pipe, (" ".join(str(word) for word in words) + "\n").encode())

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Reports the begin and the end of the block, however it ends."""
        self.say("+", name, time.monotonic_ns())
        try:
            yield
        finally:
            self.say("-", name, time.monotonic_ns())


class Silent(Marker):
    """Writes nothing; for processes that are not killed."""

    def __init__(self) -> None:
        super().__init__(-1)

    def say(self, *words: object) -> None:
        pass
