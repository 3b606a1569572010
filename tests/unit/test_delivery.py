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


def test_run_waits_until_the_loop_has_come_to_what_it_drew(loop: asyncio.AbstractEventLoop) -> None:
    taken: list[str] = []
    loop.call_soon_threadsafe(taken.append, "first")
    loop.call_soon_threadsafe(loop.call_later, 0.05, taken.append, "second")
    delivery.wait_until(lambda: len(taken) == 2)
    assert taken == ["first", "second"]


def test_page_without_a_server_waits_for_nothing() -> None:
    delivery.wait_until(lambda: False)


def test_server_that_has_ended_keeps_no_run_waiting() -> None:
    closed = asyncio.new_event_loop()
    closed.close()
    delivery.use_loop(closed)
    try:
        delivery.wait_until(lambda: False)
    finally:
        delivery.use_loop(None)
