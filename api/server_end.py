"""Tells of the server's end when it begins: uvicorn itself tells an application only after all answers have ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def told_of_end(on_end: Callable[[], None]) -> Iterator[None]:
    """Calls `on_end` whenever a signal ends the server, before the server's own handler; for its lifespan.

    Outside the main thread, which has all signals, nothing is called.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        on_end()
        if callable(handler := before[signal.Signals(number)]):
            handler(number, frame)

    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
