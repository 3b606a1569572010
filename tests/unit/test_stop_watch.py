from __future__ import annotations

import threading
from queue import SimpleQueue

from graph.model.stop_watch import StopWatch


def test_a_stop_wakes_its_own_call_and_no_other() -> None:
    watch, woken = StopWatch(), SimpleQueue[str]()
    first, second = threading.Event(), threading.Event()
    with watch.watching(first, lambda: woken.put("first")), watch.watching(second, lambda: woken.put("second")):
        second.set()
        assert woken.get(timeout=10) == "second"
        first.set()
        while woken.get(timeout=10) != "first":
            pass


def test_the_next_call_is_watched_after_the_last_one_has_ended() -> None:
    others, watch, stop = {*threading.enumerate()}, StopWatch(), threading.Event()
    stop.set()
    for _ in range(3):
        woken = SimpleQueue[None]()
        with watch.watching(stop, lambda: woken.put(None)):  # noqa: B023 - called within the block
            woken.get(timeout=10)
        for thread in {*threading.enumerate()} - others:
            thread.join(timeout=10)
            assert not thread.is_alive()
