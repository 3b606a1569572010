from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from component import delivery


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A server's loop that is late: it comes to nothing for the first 50 ms."""
    late = asyncio.new_event_loop()
    late.call_soon(time.sleep, 0.05)
    thread = threading.Thread(target=late.run_forever)
    thread.start()
    delivery.use_loop(late)
    yield late
    delivery.use_loop(None)
    late.call_soon_threadsafe(late.stop)
    thread.join()
    late.close()


def test_fragment_ends_when_what_it_drew_is_taken(loop: asyncio.AbstractEventLoop) -> None:
    taken: list[str] = []

    @delivery.delivered
    def draw(word: str) -> None:
        loop.call_soon_threadsafe(taken.append, word)

    draw("drawn")
    assert taken == ["drawn"]


def test_whole_page_waits_once_at_its_end(loop: asyncio.AbstractEventLoop) -> None:
    taken: list[str] = []
    seen: list[list[str]] = []

    @delivery.delivered
    def draw(word: str) -> None:
        loop.call_soon_threadsafe(taken.append, word)
        seen.append(list(taken))

    with delivery.whole_run():
        draw("first")
        seen.append(list(taken))
        draw("second")
    assert taken == ["first", "second"]
    assert seen == [[], [], []]


def test_run_that_is_overtaken_waits_for_nothing_and_the_next_fragment_does(loop: asyncio.AbstractEventLoop) -> None:
    taken: list[str] = []

    @delivery.delivered
    def draw() -> None:
        loop.call_soon_threadsafe(taken.append, "drawn")

    with pytest.raises(KeyboardInterrupt), delivery.whole_run():
        raise KeyboardInterrupt
    draw()
    assert taken == ["drawn"]


def test_server_that_has_ended_keeps_no_run_waiting() -> None:
    closed = asyncio.new_event_loop()
    closed.close()
    delivery.use_loop(closed)
    try:
        with delivery.whole_run():
            pass
    finally:
        delivery.use_loop(None)
