"""Server-sent events: the response class, and the queue between a turn's thread and its coroutine."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Final

import anyio
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Send

from api.problem import Problem
from graph.value.event import Event, TokenDelta

# A client that has vanished without a word is seen by nothing else.
STALLED_SECONDS: Final = 60.0
_HEADERS: Final = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """Sends lines as they come; ends when the client leaves, or takes nothing for too long.

    Args:
        lines: The lines; closed at the end, whatever ends it.
        headers: Further headers.
        stalled_seconds: A client that takes nothing for that long has left.
    """

    def __init__(
        self, lines: AsyncGenerator[bytes], headers: Mapping[str, str], *, stalled_seconds: float = STALLED_SECONDS
    ) -> None:
        super().__init__(lines, headers={**_HEADERS, **headers})
        self._lines = lines
        self._stalled_seconds = stalled_seconds

    async def stream_response(self, send: Send) -> None:
        """Sends all of it.

        Raises:
            ClientDisconnect: The client took nothing for too long.
        """
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._lines) as lines:
            async for line in lines:
                with anyio.move_on_after(self._stalled_seconds) as stalled:
                    await send({"type": "http.response.body", "body": line, "more_body": True})
                if stalled.cancelled_caught:
                    raise ClientDisconnect
        await send({"type": "http.response.body", "body": b"", "more_body": False})


# How far a client may be behind: no answer of a model is longer.
_QUEUE_CHARS: Final = 4 * 2**20
_TOO_SLOW: Final = Problem(503, "client_too_slow", "The answer was made faster than it was read.")


class EventQueue:
    """Events for one coroutine of the loop that runs now; any thread may put them in.

    Pieces of text that wait are joined. A reader that is too far behind gets a `Problem` instead of what waits: the
    reader is given up, the turn goes on.

    Attributes:
        problem: Why it ended, None while it is open.
    """

    def __init__(self, *, most_chars: int = _QUEUE_CHARS) -> None:
        self._loop = asyncio.get_running_loop()
        self._most_chars = most_chars
        self._waiting: deque[Event] = deque()
        self._waiting_chars = 0
        self.problem: Problem | None = None
        self._filled = asyncio.Event()

    def put(self, event: Event) -> None:
        """Adds an event, from any thread."""
        self._in_loop(lambda: self._add(event))

    def close(self, problem: Problem) -> None:
        """Ends the queue, from any thread: the reader gets the first such problem next, and from then on."""
        self._in_loop(lambda: self._close(problem))

    async def peek(self) -> Event | Problem:
        """Waits until something is there, and returns it without taking it."""
        while not self._waiting and self.problem is None:
            self._filled.clear()
            await self._filled.wait()
        return self.problem or self._waiting[0]

    async def get(self, *, seconds: float = math.inf) -> Event | Problem | None:
        """Takes what comes next; None if nothing came for that long."""
        with anyio.move_on_after(max(seconds, 0)):
            event = await self.peek()
            if not isinstance(event, TokenDelta):
                return event if isinstance(event, Problem) else self._waiting.popleft()
            text = "".join(self._take_texts())
            self._waiting_chars -= len(text)
            return TokenDelta(text)
        return None

    def _take_texts(self) -> Iterator[str]:
        while self._waiting and isinstance(event := self._waiting[0], TokenDelta):
            self._waiting.popleft()
            yield event.text

    def _in_loop(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody reads any more
            self._loop.call_soon_threadsafe(callback)

    def _add(self, event: Event) -> None:
        if self.problem is not None:
            return
        if isinstance(event, TokenDelta):
            self._waiting_chars += len(event.text)
        self._waiting.append(event)
        self._filled.set()
        if self._waiting_chars > self._most_chars:
            self._close(_TOO_SLOW)

    def _close(self, problem: Problem) -> None:
        self.problem = self.problem or problem
        self._waiting.clear()
        self._filled.set()
