"""Makes one call of a chat model that can really be ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
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

from graph.error import CutStreamError, DeadlineError, ModelError, TurnStoppedSignal, UnreachableError
from graph.model.chunk import Answer, AnswerBuilder
from graph.model.failure import to_model_error
from graph.model.loop import CallLoop, ChatRunnable, error_of

__all__ = ["ChatRunnable", "ModelCaller"]

T = TypeVar("T")

_POLL_SECONDS: Final = 0.05
_FIRST_WAIT_SECONDS: Final = 0.5
_MAX_WAIT_SECONDS: Final = 8.0
_BACKOFF: Final = wait_exponential(multiplier=_FIRST_WAIT_SECONDS, max=_MAX_WAIT_SECONDS) + wait_random(
    0, _FIRST_WAIT_SECONDS
)


def drop(*_: object) -> None:
    """Takes whatever it's told and does nothing with it."""


@dataclass(frozen=True)
class _Request:
    """What one call is to do, over all its attempts; `ends_at` is of the monotonic clock."""

    model: ChatRunnable
    messages: Sequence[BaseMessage]
    stop: threading.Event
    ends_at: float
    on_text: Callable[[str], None]
    on_restart: Callable[[], None]

    @property
    def remaining_seconds(self) -> float:
        return self.ends_at - time.monotonic()

    def check(self) -> None:
        """Raises TurnStoppedSignal or DeadlineError if the call has to end now."""
        if self.stop.is_set():
            raise TurnStoppedSignal
        if self.remaining_seconds <= 0:
            raise DeadlineError


class ModelCaller:
    """Calls chat models from any thread; a context manager that owns the loop on which the calls run.

    Args:
        secrets: Strings that no error may show, such as the configured key.
    """

    def __init__(self, *, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(secrets)
        self._loop = CallLoop()

    def __enter__(self) -> Self:
        """Starts the loop."""
        self._loop.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the calls in progress and then the loop."""
        self._loop.__exit__(kind, error, trace)

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
    ) -> Answer:
        """Calls the model and returns its whole answer.

        Only transient failures are tried again, and only while the deadline lasts. A stream that is cut after text was
        heard isn't: the user has read it, and the caller keeps it.

        Args:
            model: A chat model, or one with tools bound.
            messages: The model input.
            stop: When set, the call ends within a tenth of a second, whatever it's doing.
            deadline_seconds: For all attempts and the waits between them.
            attempts: How often the call is made at most.
            on_text: Hears each piece of text, in the calling thread.
            on_restart: Hears that the text so far is void, before an attempt that begins anew.

        Raises:
            TurnStoppedSignal: `stop` was set, or the caller is being closed.
            DeadlineError: The deadline passed.
            ModelError: The call failed; see its subclasses.
        """
        request = _Request(model, messages, stop, time.monotonic() + deadline_seconds, on_text, on_restart)
        attempts_made = _Attempts(request, self._loop, self.to_ours)
        retrying = Retrying(
            retry=retry_if_exception(attempts_made.may_go_on),
            stop=stop_after_attempt(attempts),
            wait=_wait_seconds,
            sleep=sleep_using_event(stop),
            reraise=True,
        )
        answer: Answer = retrying(attempts_made.make_one)
        return answer

    def run(self, function: Callable[[], Awaitable[T]], *, deadline_seconds: float) -> T:
        """Runs one asynchronous function of a client on the loop.

        Raises:
            DeadlineError: It took longer.
            ModelError: The client failed; see its subclasses.
        """

        async def limited() -> T:
            with fail_after(deadline_seconds):
                return await function()

        future = self._loop.start(limited)
        error = error_of(future)
        if error is not None:
            raise self.to_ours(error) from None
        return future.result()

    def end_calls(self) -> None:
        """Ends the calls in progress, and every later one at once; the connections may be closed after that."""
        self._loop.end_calls()

    def to_ours(self, error: BaseException) -> BaseException:
        """Returns our error for a foreign one; one that is no failure of a call stays what it is."""
        return to_model_error(error, secrets=self._secrets) or error


class _Attempts:
    """The attempts of one call; remembers whether any text was heard."""

    def __init__(self, request: _Request, loop: CallLoop, to_ours: Callable[[BaseException], BaseException]) -> None:
        self._request = request
        self._loop = loop
        self._to_ours = to_ours
        self._is_heard = False

    def make_one(self) -> Answer:
        """Makes one attempt and returns its answer, or raises why there is none."""
        request = self._request
        request.check()
        if self._is_heard:
            self._is_heard = False
            request.on_restart()
        chunks: SimpleQueue[BaseMessage | None] = SimpleQueue()
        builder = AnswerBuilder()
        reading = self._loop.start_call(request.model, list(request.messages), chunks.put)
        try:
            while (chunk := self._next(chunks)) is not None:
                if text := builder.add(chunk):
                    self._is_heard = True
                    request.on_text(text)
            error = error_of(reading)
        finally:
            reading.cancel()
        if error is None:
            return builder.build()
        ours = self._to_ours(error)
        if isinstance(ours, UnreachableError) and builder.has_chunk:
            ours = CutStreamError()
        raise ours from None

    def may_go_on(self, error: BaseException) -> bool:
        """Whether another attempt makes sense after this error and may still be in time."""
        if not isinstance(error, ModelError) or not error.is_transient:
            return False
        if self._is_heard and isinstance(error, CutStreamError):
            return False
        wait_seconds = error.retry_after_seconds
        return self._request.remaining_seconds > (_FIRST_WAIT_SECONDS if wait_seconds is None else wait_seconds)

    def _next(self, chunks: SimpleQueue[BaseMessage | None]) -> BaseMessage | None:
        """Waits for the next chunk; None at the stream's end."""
        while True:
            self._request.check()
            try:
                return chunks.get(timeout=min(_POLL_SECONDS, max(0.0, self._request.remaining_seconds)))
            except Empty:
                continue


def _wait_seconds(state: RetryCallState) -> float:
    """Returns how long to wait before the next attempt: what the provider asked for, else longer each time."""
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.retry_after_seconds if isinstance(error, ModelError) else None
    return _BACKOFF(state) if asked is None else asked
