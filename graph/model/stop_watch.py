"""Wakes the calls that were told to stop while they wait for a model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_POLL_SECONDS: Final = 0.05


class StopWatch:
    """Looks at the stop events of all calls in one thread, which ends when there are none.

    If each call looked at its own, hundreds of them would wake up thousands of times a second, and hold up all else.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wakes: dict[object, tuple[threading.Event, Callable[[], None]]] = {}
        self._is_looking = False

    @contextmanager
    def watching(self, stop: threading.Event, wake: Callable[[], None]) -> Iterator[None]:
        """Calls `wake` when `stop` is set, and again until the block ends; in a thread of its own."""
        key = object()
        with self._lock:
            self._wakes[key] = stop, wake
            if not self._is_looking:
                self._is_looking = True
                threading.Thread(target=self._look, name="stop-watch", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                del self._wakes[key]

    def _look(self) -> None:
        while True:
            time.sleep(_POLL_SECONDS)
            with self._lock:
                if not self._wakes:
                    self._is_looking = False
                    return
                wakes = [wake for stop, wake in self._wakes.values() if stop.is_set()]
            for wake in wakes:
                wake()
