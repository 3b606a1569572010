"""Makes a cancellable chat model call with a deadline and bounded retries."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Final, Self, TypeVar

from anyio import fail_after
from langchain_core.messages import BaseMessage
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from graph.model.chunk import Answer, AnswerBuilder
from graph.model.failure import to_model_error
from graph.model.loop import CallLoop, ChatRunnable, error_of
from graph.value.error import CutStreamError, DeadlineError, ModelError, TurnStoppedSignal, UnreachableError

_POLL_SECONDS: Final = 0.05


class StopWatch:
    """Polls the stop events of all calls in one thread, which ends when no calls are left.

    One polling thread per call would cause thousands of wake-ups a second with hundreds of calls.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wakes: dict[object, tuple[threading.Event, Callable[[], None]]] = {}
        self._is_looking = False

    @contextmanager
    def watching(self, stop: threading.Event, wake: Callable[[], None]) -> Iterator[None]:
        """Calls `wake` in another thread when `stop` is set, repeatedly until the block ends."""
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


__all__ = ["ChatRunnable", "ModelCaller"]

T = TypeVar("T")

_FIRST_WAIT_SECONDS: Final = 0.5
_MAX_WAIT_SECONDS: Final = 8.0
_BACKOFF: Final = wait_exponential(multiplier=_FIRST_WAIT_SECONDS, max=_MAX_WAIT_SECONDS) + wait_random(
    0, _FIRST_WAIT_SECONDS
)


def drop(*_: object) -> None:
    """Does nothing; a default for callbacks."""


class ModelCaller:
    """Calls chat models from any thread; a context manager that owns the event loop of the calls.

    Args:
        secrets: Strings that no error may show, such as the configured key.

    Attributes:
        loop: The event loop of the calls.
    """

    def __init__(self, *, secrets: Iterable[str] = ()) -> None:
        self.loop = CallLoop()
        self._secrets = tuple(secrets)
        self._stops = StopWatch()

    def __enter__(self) -> Self:
        self.loop.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.loop.__exit__(kind, error, trace)

    def call(
        self,
        model: ChatRunnable,
        messages: Sequence[BaseMessage],
        *,
        stop: threading.Event,
        deadline_seconds: float,
        attempts: int,
        on_text: Callable[[str], None] = drop,
        on_restart: Callable[[], None] = drop,
        may_restart: bool = True,
    ) -> Answer:
        """Calls the model and returns its whole answer.

        Only transient failures are retried, and only before the deadline. A stream that breaks off after some text
        isn't retried: the user has read the text, and the caller retains it.

        Args:
            model: A chat model, or one with tools bound.
            messages: The model input.
            stop: When set, the call ends within a tenth of a second, even while waiting for data.
            deadline_seconds: Limit for all attempts and the waits between them.
            attempts: Maximum number of attempts.
            on_text: Receives each piece of text, in the calling thread.
            on_restart: Called before a retry if text of the failed attempt was passed on, which is then void.
            may_restart: False to prevent a retry after text was passed on: text sent to a client can't be revoked.

        Raises:
            TurnStoppedSignal: `stop` was set, or the caller is being closed.
            DeadlineError: The deadline passed.
            ModelError: The call failed; see its subclasses.
        """
        ends_at = time.monotonic() + deadline_seconds
        call = _Call(
            self.loop, self._stops, self._secrets, model, messages, stop, ends_at, on_text, on_restart, may_restart
        )
        retrying = Retrying(
            retry=retry_if_exception(call.should_retry),
            stop=stop_after_attempt(attempts),
            wait=_wait_seconds,
            sleep=sleep_using_event(stop),
            reraise=True,
        )
        answer: Answer = retrying(call.attempt)
        return answer

    def run(self, function: Callable[[], Awaitable[T]], *, deadline_seconds: float) -> T:
        """Runs an asynchronous function of a client on the loop and returns its result.

        Raises:
            DeadlineError: The deadline passed.
            ModelError: The client failed; see its subclasses.
        """

        async def limited() -> T:
            with fail_after(deadline_seconds):
                return await function()

        future = self.loop.start(limited)
        error = error_of(future)
        if error is not None:
            raise to_model_error(error, secrets=self._secrets) from None
        return future.result()


@dataclass
class _Call:
    """A call with all its attempts.

    Attributes:
        ends_at: The deadline on the monotonic clock.
        is_heard: True if text of the newest attempt was passed on.
    """

    loop: CallLoop
    stops: StopWatch
    secrets: tuple[str, ...]
    model: ChatRunnable
    messages: Sequence[BaseMessage]
    stop: threading.Event
    ends_at: float
    on_text: Callable[[str], None]
    on_restart: Callable[[], None]
    may_restart: bool
    is_heard: bool = False

    def attempt(self) -> Answer:
        self._check()
        if self.is_heard:
            self.is_heard = False
            self.on_restart()
        chunks: SimpleQueue[BaseMessage | None] = SimpleQueue()
        builder = AnswerBuilder()
        reading = self.loop.start_call(self.model, list(self.messages), chunks.put)
        try:
            with self.stops.watching(self.stop, lambda: chunks.put(None)):
                while (chunk := self._next(chunks)) is not None:
                    if text := builder.add(chunk):
                        self.is_heard = True
                        self.on_text(text)
            error = error_of(reading)
        finally:
            reading.cancel()
        if error is None:
            return builder.build()
        ours = to_model_error(error, secrets=self.secrets)
        if isinstance(ours, UnreachableError) and builder.has_chunk:
            ours = CutStreamError()
        raise ours from None

    def should_retry(self, error: BaseException) -> bool:
        if not isinstance(error, ModelError) or not error.is_transient:
            return False
        if self.is_heard and (isinstance(error, CutStreamError) or not self.may_restart):
            return False
        wait_seconds = error.retry_after_seconds
        return self._remaining_seconds() > (_FIRST_WAIT_SECONDS if wait_seconds is None else wait_seconds)

    def _next(self, chunks: SimpleQueue[BaseMessage | None]) -> BaseMessage | None:
        while True:
            self._check()
            try:
                chunk = chunks.get(timeout=max(0.0, self._remaining_seconds()))
            except Empty:
                continue
            if chunk is None:
                self._check()  # None also wakes a stopped call
            return chunk

    def _check(self) -> None:
        if self.stop.is_set():
            raise TurnStoppedSignal
        if self._remaining_seconds() <= 0:
            raise DeadlineError

    def _remaining_seconds(self) -> float:
        return self.ends_at - time.monotonic()


def _wait_seconds(state: RetryCallState) -> float:
    """Returns the wait before the next attempt: the provider's Retry-After, else an exponential backoff."""
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.retry_after_seconds if isinstance(error, ModelError) else None
    return _BACKOFF(state) if asked is None else asked
