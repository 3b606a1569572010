"""Makes of the events of a turn the lines of a stream, or the body of a whole response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import anyio

from api.chunk_writer import ChunkWriter, CompletionHead, failure_line, whole_completion
from api.event_queue import EventQueue
from api.problem import Problem, ProblemError
from api.refusal import problem_of, problem_of_failure
from graph.value.client import CompletionEnd
from graph.value.error import TurnfoldError
from graph.value.event import (
    ActionRequired,
    AnswerRestarted,
    ClientCall,
    Event,
    Folded,
    FoldWaiting,
    TokenDelta,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    TurnStopped,
)


async def first_event(queue: EventQueue, *, seconds: float) -> None:
    """Waits until the model answers or that time is over; what comes stays in the queue.

    Raises:
        ProblemError: The turn failed before it said anything, or the queue was closed.
    """
    with anyio.move_on_after(seconds):
        while isinstance(event := await queue.peek(), (TurnStarted, FoldWaiting, Folded, AnswerRestarted)):
            await queue.get()
        _raise_if_failed(event)


async def whole_body(
    queue: EventQueue, head: CompletionHead, end: Callable[[], Awaitable[CompletionEnd]]
) -> dict[str, Any]:
    """Returns the body of a response that isn't streamed, once it is whole.

    Raises:
        ProblemError: The turn failed, or the queue was closed.
        TurnfoldError: What is told of the response couldn't be read.
    """
    texts: list[str] = []
    fixed_count = 0  # pieces before the last tool call: these stay if the answer is begun anew
    calls: tuple[ClientCall, ...] = ()
    while not isinstance(event := await queue.get(), (TurnFinished, TurnStopped, ActionRequired)):
        match event:
            case TokenDelta(text):
                texts.append(text)
            case ToolStarted():
                fixed_count = len(texts)
            case AnswerRestarted():
                del texts[fixed_count:]
            case _:
                _raise_if_failed(event)
    if isinstance(event, ActionRequired):
        calls = event.calls
    return whole_completion(head, "".join(texts), calls, await end())


def _raise_if_failed(event: Event | Problem | None) -> None:
    if problem := _problem_in(event):
        raise ProblemError(problem)


def _problem_in(event: Event | Problem | None) -> Problem | None:
    if isinstance(event, TurnFailed):
        return problem_of_failure(event.code, event.detail)
    return event if isinstance(event, Problem) else None


async def stream_lines(
    queue: EventQueue,
    writer: ChunkWriter,
    end: Callable[[], Awaitable[CompletionEnd]],
    *,
    with_usage: bool,
    keep_alive_seconds: float,
) -> AsyncGenerator[bytes, None]:
    """Yields the lines of one response, and one that says nothing whenever it was silent for that long.

    A stream that fails ends with an error and without `[DONE]`. What was sent can't be taken back: an answer that is
    begun anew ends it, too.
    """
    now = asyncio.get_running_loop().time
    yield writer.start()
    silent_since, has_said = now(), False
    while True:
        event = await queue.get(seconds=silent_since + keep_alive_seconds - now())
        line = b""
        match event:
            case None:
                line = writer.text("")
            case TokenDelta(text) if text:
                line, has_said = writer.text(text), True
            case ToolStarted():
                has_said = False
            case AnswerRestarted() if has_said:
                event = problem_of_failure("cut_stream")
            case ActionRequired() | TurnFinished() | TurnStopped():
                if isinstance(event, ActionRequired):
                    yield writer.calls(event.calls)
                yield await _last_lines(writer, end, with_usage=with_usage)
                return
        if problem := _problem_in(event):
            yield failure_line(problem)
            return
        if line:
            yield line
            silent_since = now()


async def _last_lines(writer: ChunkWriter, end: Callable[[], Awaitable[CompletionEnd]], *, with_usage: bool) -> bytes:
    try:
        return writer.end(await end(), with_usage=with_usage)
    except TurnfoldError as error:
        return failure_line(problem_of(error))
