from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable

from api.event_queue import EventQueue
from api.problem import Problem
from graph.event import Event, Folded, TokenDelta, TurnStopped

END = TurnStopped(1, "")
FOLDED = Folded("r1", (1, 2, 3), 9, 3)
GONE = Problem(499, "gone", "Gone.")


def run(read: Callable[[EventQueue], Awaitable[None]], *, most_chars: int = 1000) -> None:
    async def main() -> None:
        await read(EventQueue(most_chars=most_chars))

    asyncio.run(main())


def put_in_thread(queue: EventQueue, *events: Event) -> None:
    thread = threading.Thread(target=lambda: deque(map(queue.put, events)))
    thread.start()
    thread.join()


def test_texts_that_wait_are_joined_and_their_order_stays() -> None:
    async def read(queue: EventQueue) -> None:
        put_in_thread(queue, TokenDelta("a"), TokenDelta("b"), FOLDED, TokenDelta("c"), END)
        await asyncio.sleep(0)
        assert [await queue.get() for _ in range(4)] == [TokenDelta("ab"), FOLDED, TokenDelta("c"), END]

    run(read)


def test_what_is_looked_at_stays() -> None:
    async def read(queue: EventQueue) -> None:
        put_in_thread(queue, FOLDED)
        assert await queue.peek() == FOLDED
        assert await queue.get() == FOLDED

    run(read)


def test_silence_is_none_and_loses_nothing() -> None:
    async def read(queue: EventQueue) -> None:
        assert await queue.get(seconds=0.01) is None
        assert await queue.get(seconds=-1) is None
        put_in_thread(queue, END)
        assert await queue.get() == END

    run(read)


def test_many_threads_wake_a_reader_that_waits() -> None:
    async def read(queue: EventQueue) -> None:
        threads = [threading.Thread(target=queue.put, args=(TokenDelta("x"),)) for _ in range(50)]
        for thread in threads:
            thread.start()
        length = 0
        while length < 50:
            event = await queue.get(seconds=20)
            assert isinstance(event, TokenDelta)
            length += len(event.text)

    run(read)


def test_a_closed_queue_says_why_and_takes_nothing_more() -> None:
    async def read(queue: EventQueue) -> None:
        put_in_thread(queue, TokenDelta("a"))
        queue.close(GONE)
        queue.close(Problem(503, "later", "Later."))
        put_in_thread(queue, END)
        await asyncio.sleep(0)
        assert [await queue.get(), await queue.peek(), await queue.get()] == [GONE] * 3

    run(read)


def test_a_reader_that_is_too_far_behind_is_given_up() -> None:
    async def read(queue: EventQueue) -> None:
        put_in_thread(queue, *[TokenDelta("12345")] * 4)
        await asyncio.sleep(0)
        event = await queue.get()
        assert isinstance(event, Problem)
        assert event.code == "client_too_slow"

    run(read, most_chars=15)


def test_a_reader_that_keeps_up_may_read_more_than_ever_waits() -> None:
    async def read(queue: EventQueue) -> None:
        for _ in range(20):
            put_in_thread(queue, TokenDelta("12345"), FOLDED)
            assert [await queue.get(), await queue.get()] == [TokenDelta("12345"), FOLDED]

    run(read, most_chars=15)


def test_an_event_after_the_loop_has_ended_is_dropped() -> None:
    queues: list[EventQueue] = []

    async def read(queue: EventQueue) -> None:
        queues.append(queue)

    run(read)
    queues[0].put(END)
