"""Server-sent events: the response class, and the queue between a turn's thread and its coroutine."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Final, TypeVar

import anyio
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Send

from api.problem import Problem, ProblemError
from graph.value.event import Event, ThoughtDelta, TokenDelta

_E = TypeVar("_E", bound=Event)
# Nothing else detects a client that vanished without closing the connection.
STALLED_SECONDS: Final = 60.0
_HEADERS: Final = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """Sends lines as they arrive; raises `ClientDisconnect` if the client reads nothing for `stalled_seconds`."""

    def __init__(
        self, lines: AsyncGenerator[bytes], headers: Mapping[str, str], *, stalled_seconds: float = STALLED_SECONDS
    ) -> None:
        super().__init__(lines, headers={**_HEADERS, **headers})
        self._lines = lines
        self._stalled_seconds = stalled_seconds

    async def stream_response(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._lines) as lines:
            async for line in lines:
                with anyio.move_on_after(self._stalled_seconds) as stalled:
                    await send({"type": "http.response.body", "body": line, "more_body": True})
                if stalled.cancelled_caught:
                    raise ClientDisconnect
        await send({"type": "http.response.body", "body": b"", "more_body": False})


# How far a reader may fall behind; longer than any model's answer.
_QUEUE_CHARS: Final = 4 * 2**20
_TOO_SLOW: Final = Problem(503, "client_too_slow", "The answer was made faster than it was read.")


class EventQueue:
    """A queue of events from any thread to one coroutine of the running loop.

    A reader that falls too far behind gets a `Problem` instead of the events; the turn goes on.
    """

    def __init__(self, *, most_chars: int = _QUEUE_CHARS) -> None:
        self.problem: Problem | None = None
        self._most_chars = most_chars
        self._lock = threading.Lock()
        self._waiting: list[Event] = []
        self._waiting_chars = 0
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._is_woken = False

    def put(self, event: Event) -> None:
        with self._lock:
            if self.problem is None:
                self._waiting.append(event)
                self._waiting_chars += len(event.text) if isinstance(event, TokenDelta | ThoughtDelta) else 0
            is_too_slow = self._waiting_chars > self._most_chars
        if is_too_slow:
            self.close(_TOO_SLOW)
        self._wake()

    def close(self, problem: Problem) -> None:
        """Drops the queued events and makes every read raise this problem; the first close counts. From any thread."""
        with self._lock:
            self.problem = self.problem or problem
            self._waiting, self._waiting_chars = [], 0
        self._wake()

    async def get(self, *, seconds: float = math.inf) -> Sequence[Event]:
        """Takes all queued events; none after `seconds` without any. Raises `ProblemError` if the queue was closed."""
        with anyio.move_on_after(max(seconds, 0)):
            while not self._waiting and self.problem is None:
                await self._wait()
        with self._lock:
            if self.problem is not None:
                raise ProblemError(self.problem)
            events, self._waiting, self._waiting_chars = self._waiting, [], 0
        return events

    async def first(self, *passed_over: type[Event]) -> Event:
        """Waits for an event of any type but these and returns it; leaves all events in the queue.

        Raises `ProblemError` if the queue was closed.
        """
        while self.problem is None:
            for event in self._waiting:
                if not isinstance(event, passed_over):
                    return event
            await self._wait()
        raise ProblemError(self.problem)

    def waiting(self, kind: type[_E]) -> list[_E]:
        """Returns the queued events of a type, and leaves them in the queue."""
        return [event for event in self._waiting if isinstance(event, kind)]

    async def _wait(self) -> None:
        await self._news.wait()
        self._news.clear()
        self._is_woken = False

    def _wake(self) -> None:
        # Wake the loop only once before the next read.
        if not self._is_woken:
            self._is_woken = True
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._news.set)
