"""An event loop in its own thread that makes model calls cancellable."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack
from contextvars import Context, ContextVar
from dataclasses import dataclass
from functools import partial
from traceback import clear_frames
from typing import Any, Final, Literal, Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from graph.value.error import TurnStoppedSignal

ChatRunnable = Runnable[Any, Any]
PhaseName = Literal["waiting", "reading", "thinking", "answering"]


@dataclass(frozen=True)
class Phase:
    """What the endpoint does; while it reads, the tokens read and those of the whole input, both 0 if unknown."""

    name: PhaseName
    read_tokens: int = 0
    input_tokens: int = 0


Sign = BaseMessage | Phase | None
T = TypeVar("T")


class Signs:
    """What a stream brings, and its signs of life below that, such as pings; regenerated for each attempt of a call.

    Args:
        put: Called on the loop's thread with each chunk and phase, and finally with None, however the stream ends.

    Attributes:
        heard_at: When the last sign came, on the monotonic clock; written by the loop's thread.
    """

    def __init__(self, put: Callable[[Sign], None]) -> None:
        self.heard_at = time.monotonic()
        self._put = put
        self._phase = Phase("waiting")

    def hear(self) -> None:
        self.heard_at = time.monotonic()

    def bring(self, chunk: BaseMessage | None) -> None:
        self.hear()
        self._put(chunk)

    def tell(self, phase: Phase) -> None:
        """Passes on what the endpoint does, if that is news."""
        self.hear()
        if phase != self._phase:
            self._phase = phase
            self._put(phase)


signs_of_call: ContextVar[Signs | None] = ContextVar("signs_of_call", default=None)

_CLOSED: Final = "the service is closing"


class CallLoop:
    """The event loop, as a context manager.

    Cancelling a task is the only way to end a blocked read of a connection at once. Beside it only the
    connections of `graph/mcp/` are asynchronous.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._lock = threading.Lock()
        self._calls: set[Future[Any]] = set()
        self._is_closing = False

    def __enter__(self) -> Self:
        self._portal = self._stack.enter_context(start_blocking_portal())
        return self

    def __exit__(self, *_: object) -> None:
        self.end_calls()
        if self._portal is not None:
            # By default the portal waits for its tasks, and one of them may hang until its deadline.
            self._portal.call(partial(self._portal.stop, cancel_remaining=True))
        self._portal = None
        self._stack.close()

    def end_calls(self) -> None:
        with self._lock:
            self._is_closing = True
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    def start_call(self, model: ChatRunnable, messages: list[BaseMessage], signs: Signs) -> Future[None]:
        """Starts reading an answer of a model; cancelling the future closes its connection.

        The client of the endpoint finds `signs` in `signs_of_call`.

        Raises `TurnStoppedSignal` if the loop is being closed.
        """
        # Don't hold the lock here: starting waits for the loop, and the loop may wait for the lock in _forget.
        reading = self.start(_read, model, messages, signs)
        with self._lock:
            is_closing = self._is_closing
            self._calls.add(reading)
        reading.add_done_callback(self._forget)
        if is_closing:
            reading.cancel()
            raise TurnStoppedSignal(_CLOSED)
        return reading

    def start(self, function: Callable[..., Awaitable[T]], *arguments: object) -> Future[T]:
        """Starts an asynchronous function on the loop. Raises `TurnStoppedSignal` if the loop isn't open."""
        if self._portal is None:
            raise TurnStoppedSignal(_CLOSED)
        try:
            # In an empty context, or LangChain would pass the tokens to the callbacks of the graph run that calls us.
            return Context().run(self._portal.start_task_soon, function, *arguments)
        except RuntimeError:
            raise TurnStoppedSignal(_CLOSED) from None

    def _forget(self, reading: Future[Any]) -> None:
        with self._lock:
            self._calls.discard(reading)


def error_of(future: Future[Any]) -> BaseException | None:
    """Waits for the task and returns its error, if any; a cancelled task counts as stopped by the closing loop."""
    try:
        return future.exception()
    except CancelledError:
        return TurnStoppedSignal(_CLOSED)


async def _read(model: ChatRunnable, messages: list[BaseMessage], signs: Signs) -> None:
    signs_of_call.set(signs)
    try:
        async for chunk in model.astream(messages, config={"callbacks": []}):
            signs.bring(chunk)
    except (SystemExit, KeyboardInterrupt) as error:
        # Unconverted, it would end the loop and thereby every other call.
        msg = f"a model raised {type(error).__name__}"
        raise RuntimeError(msg) from error
    finally:
        _release(sys.exception())
        signs.bring(None)


def _release(error: BaseException | None) -> None:
    """Clears traceback frames, so that half-read streams are finalised now, on the loop's thread.

    The garbage collector may finalise them in another thread while the loop closes the rest.
    """
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
