"""Makes a cancellable chat model call that silence ends, with bounded retries."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final, Self, TypeVar

from anyio import fail_after
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableBinding
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from graph.core.thinking import Split
from graph.model.chunk import Answer, AnswerBuilder
from graph.model.failure import to_model_error
from graph.model.loop import CallLoop, ChatRunnable, Phase, Signs, error_of
from graph.value.error import (
    CutStreamError,
    DeadlineError,
    ModelError,
    SilenceError,
    TurnStoppedSignal,
    UnreachableError,
)
from graph.value.event import CallRetried

_POLL_SECONDS: Final = 0.05


class StopWatch:
    """Polls the stop events of all calls in one thread, which ends when no calls are left.

    One polling thread per call would cause thousands of wake-ups a second with hundreds of calls.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wakes: dict[object, tuple[threading.Event, Callable[[], object]]] = {}
        self._is_looking = False

    @contextmanager
    def watching(self, stop: threading.Event, wake: Callable[[], object]) -> Iterator[None]:
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


__all__ = ["ChatRunnable", "ModelCaller", "Phase"]

T = TypeVar("T")

SILENCE_SECONDS: Final = 120.0
_FIRST_WAIT_SECONDS: Final = 0.5
_MAX_WAIT_SECONDS: Final = 8.0
_BACKOFF: Final = wait_exponential(multiplier=_FIRST_WAIT_SECONDS, max=_MAX_WAIT_SECONDS) + wait_random(
    0, _FIRST_WAIT_SECONDS
)


AskProgress = Callable[[], Future[str | None]]


def drop(*_: object) -> None:
    """Does nothing; a default for callbacks."""


class ModelCaller:
    """Calls chat models from any thread; a context manager that owns the event loop of the calls.

    Args:
        secrets: Strings that no error may show, such as the configured key.
        silence_seconds: How long an endpoint may show no sign of life, before its first byte and between two of them.

    Attributes:
        loop: The event loop of the calls.
        secrets: As given; `silence_seconds` likewise.
        stops: Wakes the calls that are stopped.
        ending_alone: The models that send end tags of thoughts without the start.
        ask_progress: Starts to ask a silent endpoint what it has done so far; the answer is None if it can't tell. As
            long as the answers change, the endpoint isn't silent.
    """

    def __init__(self, *, secrets: Iterable[str] = (), silence_seconds: float = SILENCE_SECONDS) -> None:
        self.loop = CallLoop()
        self.ask_progress: AskProgress | None = None
        self.silence_seconds = silence_seconds
        self.secrets = tuple(secrets)
        self.stops = StopWatch()
        self.ending_alone: set[str] = set()

    def __enter__(self) -> Self:
        self.loop.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.__exit__()

    def call(  # noqa: PLR0913  # each listener is told of something else
        self,
        model: ChatRunnable,
        messages: Sequence[BaseMessage],
        *,
        stop: threading.Event,
        deadline_seconds: float | None,
        attempts: int,
        on_text: Callable[[str], None] = drop,
        on_restart: Callable[[], None] = drop,
        on_phase: Callable[[Phase], None] = drop,
        on_thought: Callable[[str], None] = drop,
        on_revoke: Callable[[], None] = drop,
        on_retry: Callable[[CallRetried], None] = drop,
        may_restart: bool = True,
    ) -> Answer:
        """Calls the model and returns its whole answer.

        Bytes of any kind are signs of life: text, thoughts, parts of tool calls, pings. Only transient failures are
        retried, and only before the deadline and after no longer wait than the longest silence. A stream that breaks
        off after some text isn't retried: the user has read the text, and the caller retains it.

        Args:
            model: A chat model, or one with tools bound.
            messages: The model input.
            stop: When set, the call ends within a tenth of a second, even while waiting for data.
            deadline_seconds: Limit for all attempts and the waits between them; None for no limit but silence.
            attempts: Maximum number of attempts.
            on_text: Receives each piece of text, in the calling thread.
            on_restart: Called before a retry if text or thoughts of the failed attempt were passed on, which are then
                void.
            on_phase: Called when what the endpoint does changes, in the calling thread.
            on_thought: Receives each piece of the model's thoughts.
            on_revoke: Called if the text passed on so far turns out to be thoughts, or the reverse; all of it follows
                again.
            on_retry: Called when an attempt failed and another is to come, and when that begins.
            may_restart: False to prevent a retry after text was passed on: text sent to a client can't be revoked.

        Raises:
            TurnStoppedSignal: `stop` was set, or the caller is being closed.
            SilenceError: The endpoint showed no sign of life for too long.
            DeadlineError: The deadline passed.
            ModelError: The call failed; see its subclasses.
        """
        call = _Call(
            self,
            model,
            messages,
            stop,
            deadline_seconds,
            on_text,
            on_restart,
            on_phase,
            on_thought,
            on_revoke,
            on_retry,
            may_restart,
        )
        retrying = Retrying(
            retry=retry_if_exception(call.should_retry),
            stop=stop_after_attempt(attempts),
            wait=_wait_seconds,
            sleep=sleep_using_event(stop),
            before_sleep=partial(call.note_retry, attempts),
            reraise=True,
        )
        answer: Answer = retrying(call.attempt)
        return answer

    def run(
        self,
        function: Callable[[], Awaitable[T]],
        *,
        deadline_seconds: float,
        stop: threading.Event | None = None,
    ) -> T:
        """Runs an asynchronous function of a client on the loop and returns its result.

        Raises:
            TurnStoppedSignal: `stop` was set, or the caller is being closed.
            DeadlineError: The deadline passed.
            ModelError: The client failed; see its subclasses.
        """

        async def limited() -> T:
            with fail_after(deadline_seconds):
                return await function()

        future = self.loop.start(limited)
        with self.stops.watching(stop, future.cancel) if stop is not None else nullcontext():
            error = error_of(future)
        if error is not None:
            raise to_model_error(error, secrets=self.secrets) from None
        return future.result()


@dataclass
class _Call:
    """A call with all its attempts.

    Attributes:
        is_heard: True if text of the newest attempt was passed on.
        is_shown: True if text or thoughts of it were passed on.
    """

    caller: ModelCaller
    model: ChatRunnable
    messages: Sequence[BaseMessage]
    stop: threading.Event
    deadline_seconds: float | None
    on_text: Callable[[str], None]
    on_restart: Callable[[], None]
    on_phase: Callable[[Phase], None]
    on_thought: Callable[[str], None]
    on_revoke: Callable[[], None]
    on_retry: Callable[[CallRetried], None]
    may_restart: bool
    is_heard: bool = False
    is_shown: bool = False

    def __post_init__(self) -> None:
        self._retry: CallRetried | None = None
        self._asked: Future[str | None] | None = None  # how far a silent endpoint is
        self._ends_at = math.inf if self.deadline_seconds is None else time.monotonic() + self.deadline_seconds

    def attempt(self) -> Answer:
        self._check()
        if self.is_shown:
            self.is_heard = self.is_shown = False
            self.on_restart()
        if self._retry is not None:
            self.on_retry(replace(self._retry, wait_seconds=0.0))
        chunks: SimpleQueue[BaseMessage | Phase | None] = SimpleQueue()
        name = _name_of(self.model)
        ending_alone = self.caller.ending_alone
        builder = AnswerBuilder(ends_alone=name in ending_alone)
        signs = Signs(chunks.put)
        reading = self.caller.loop.start_call(self.model, list(self.messages), signs)
        self.on_phase(Phase("waiting"))
        try:
            with self.caller.stops.watching(self.stop, lambda: chunks.put(None)):
                while (chunk := self._next(chunks, signs)) is not None:
                    if isinstance(chunk, Phase):
                        self.on_phase(chunk)
                    else:
                        self._tell(builder.add(chunk))
            error = error_of(reading)
        finally:
            reading.cancel()
            self._forget_asked()
        if error is None:
            self._tell(builder.end())
            (ending_alone.add if builder.ends_alone else ending_alone.discard)(name)
            return builder.build()
        ours = to_model_error(error, secrets=self.caller.secrets)
        if isinstance(ours, UnreachableError) and builder.has_chunk:
            ours = CutStreamError()
        raise ours from None

    def note_retry(self, attempts: int, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        code = error.code if isinstance(error, ModelError) else ""
        self._retry = CallRetried(code, state.attempt_number + 1, attempts, state.upcoming_sleep)
        self.on_retry(self._retry)

    def should_retry(self, error: BaseException) -> bool:
        if not isinstance(error, ModelError) or not error.is_transient:
            return False
        if self.is_heard and (isinstance(error, CutStreamError) or not self.may_restart):
            return False
        wait_seconds = error.retry_after_seconds
        longest_seconds = min(self._remaining_seconds(), self.caller.silence_seconds)
        return longest_seconds > (_FIRST_WAIT_SECONDS if wait_seconds is None else wait_seconds)

    def _tell(self, said: Split) -> None:
        if said.is_revoked:
            self.on_revoke()
            self.is_heard = False
        if said.thought:
            self.is_shown = True
            self.on_thought(said.thought)
        if said.text:
            if not self.is_heard:
                self.on_phase(Phase("answering"))
            self.is_heard = self.is_shown = True
            self.on_text(said.text)

    def _next(self, chunks: SimpleQueue[BaseMessage | Phase | None], signs: Signs) -> BaseMessage | Phase | None:
        progress: str | None = None
        while True:
            self._check()
            seconds = self.caller.silence_seconds - (time.monotonic() - signs.heard_at)
            if seconds > 0:
                self._forget_asked()
            elif chunks.empty():
                progress = self._listen(signs, progress, late_seconds=-seconds)
                seconds = _POLL_SECONDS
            try:
                chunk = chunks.get(timeout=max(0.0, min(self._remaining_seconds(), seconds)))
            except Empty:
                continue
            if chunk is None:
                self._check()  # None also wakes a stopped call
            return chunk

    def _listen(self, signs: Signs, progress: str | None, *, late_seconds: float) -> str | None:
        """Asks a silent endpoint how far it is, and returns what it told last; it may take its time to answer.

        Raises:
            SilenceError: It can't tell, or tells the same as last time.
        """
        if self._asked is None and self.caller.ask_progress is not None:
            self._asked = self.caller.ask_progress()
        silence = f"{self.caller.silence_seconds:g}"
        if self._asked is None or late_seconds > self.caller.silence_seconds:
            raise SilenceError(silence)
        if not self._asked.done():
            return progress
        newer = None if error_of(self._asked) else self._asked.result()
        if newer is None or newer == progress:
            raise SilenceError(silence)
        self._forget_asked()
        signs.hear()
        return newer

    def _forget_asked(self) -> None:
        if self._asked is not None:
            self._asked.cancel()
            self._asked = None

    def _check(self) -> None:
        if self.stop.is_set():
            raise TurnStoppedSignal
        if self.deadline_seconds is not None and self._remaining_seconds() <= 0:
            seconds = f"{self.deadline_seconds:g}"
            raise DeadlineError(seconds)

    def _remaining_seconds(self) -> float:
        return self._ends_at - time.monotonic()


def _name_of(model: ChatRunnable) -> str:
    while isinstance(model, RunnableBinding):
        model = model.bound
    return str(getattr(model, "model_name", ""))


def _wait_seconds(state: RetryCallState) -> float:
    """Returns the wait before the next attempt: the provider's Retry-After, else an exponential backoff."""
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.retry_after_seconds if isinstance(error, ModelError) else None
    return _BACKOFF(state) if asked is None else asked
