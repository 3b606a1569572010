"""Serialises the events of a turn as chunks of a streamed completion, or as a whole completion."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol

import anyio

from api.event_stream import EventQueue
from api.problem import Problem, ProblemError, problem_of, problem_of_failure
from graph.core.text import plain_text, plain_value
from graph.value.client import ClientUsage, CompletionEnd
from graph.value.error import TurnfoldError
from graph.value.event import (
    ActionRequired,
    AnswerRestarted,
    CallRetried,
    ClientCall,
    Event,
    Folded,
    FoldWaiting,
    InputRead,
    LeftOut,
    ThoughtDelta,
    TokenDelta,
    ToolAsked,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    TurnStopped,
)

DONE: Final = b"data: [DONE]\n\n"
_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
# Clients that split decoded text treat these as line ends.
_LINE_ENDS: Final = {mark: f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"}


class CompletionHead(NamedTuple):
    id: str
    created: int
    model: str


class AnswerWriter(Protocol):
    """Serialises one response, as lines of a stream or whole."""

    def start(self) -> bytes: ...

    def keep_alive(self) -> bytes: ...

    def delta(self, event: TokenDelta | ThoughtDelta) -> bytes: ...

    def calls(self, calls: Sequence[ClientCall]) -> bytes: ...

    def end(self, end: CompletionEnd, *, with_usage: bool) -> bytes: ...

    def failure(self, problem: Problem) -> bytes: ...

    def whole(self, text: str, calls: Sequence[ClientCall], end: CompletionEnd, *, thoughts: str) -> dict[str, Any]: ...


class ChunkWriter:
    def __init__(self, head: CompletionHead) -> None:
        self.failure = failure_line
        self.whole = partial(whole_completion, head)
        self._head: dict[str, Any] = {
            "id": head.id,
            "object": "chat.completion.chunk",
            "created": head.created,
            "model": head.model,
        }
        # Many streams share one event loop: the constant part of text lines is serialised once.
        before, field, self._after_text = self._delta({"content": 0}).partition(b'"content":0')
        self._before_text = before + field[:-1]

    def start(self) -> bytes:
        return self._delta({"role": "assistant", "content": ""})

    def keep_alive(self) -> bytes:
        return self.text("")

    def text(self, text: str) -> bytes:
        return self._before_text + _escaped(plain_text(text)) + self._after_text

    def delta(self, event: TokenDelta | ThoughtDelta) -> bytes:
        """Returns a delta of the text, or of the model's thoughts in the field that front ends know."""
        if isinstance(event, TokenDelta):
            return self.text(event.text)
        return self._delta({"reasoning_content": event.text})

    def calls(self, calls: Sequence[ClientCall]) -> bytes:
        """Returns the tool calls for the program, each whole in a chunk of its own: some read only its first."""
        return b"".join(
            self._delta({"tool_calls": [{"index": index, **_call(call)}]}) for index, call in enumerate(calls)
        )

    def end(self, end: CompletionEnd, *, with_usage: bool) -> bytes:
        """Returns the last lines: finish reason, figures, usage if requested and known, `[DONE]`."""
        last = self._delta({}, end.finish_reason, **figures_of(end))
        if with_usage and end.usage is not None:
            last += data_line({**self._head, "choices": [], "usage": _usage(end.usage)})
        return last + DONE

    def _delta(self, delta: Mapping[str, Any], finish_reason: str | None = None, **added: object) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return data_line({**self._head, "choices": [choice], **added})


def failure_line(problem: Problem) -> bytes:
    """Returns the last line of a failed stream; without `[DONE]`, which clients take for success."""
    return data_line(problem.body())


def whole_completion(
    head: CompletionHead, text: str, calls: Sequence[ClientCall], end: CompletionEnd, *, thoughts: str = ""
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None, "refusal": None}
    if thoughts:
        message["reasoning_content"] = thoughts
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": end.finish_reason}
    usage = {} if end.usage is None else {"usage": _usage(end.usage)}
    completion = {**head._asdict(), "object": "chat.completion", "choices": [choice], **usage, **figures_of(end)}
    plain: dict[str, Any] = plain_value(completion)
    return plain


def _call(call: ClientCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def figures_of(end: CompletionEnd) -> dict[str, Any]:
    return {"turnfold": dict(end.figures)} if end.figures else {}


def _usage(usage: ClientUsage) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if usage.cached_tokens is not None:
        payload["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    return payload


def data_line(value: Mapping[str, Any]) -> bytes:
    return b"data: " + _escaped(plain_value(value)) + b"\n\n"


def _escaped(value: object) -> bytes:
    text = _JSON.encode(value)
    for mark, escape in _LINE_ENDS.items():
        text = text.replace(mark, escape)
    return text.encode()


async def first_event(queue: EventQueue, *, seconds: float) -> None:
    """Waits until the model answers or the time is up; all events stay in the queue.

    Raises `ProblemError` if the turn failed before any answer, or the queue was closed.
    """
    with anyio.move_on_after(seconds):
        before = (TurnStarted, FoldWaiting, Folded, InputRead, CallRetried, LeftOut, AnswerRestarted)
        _raise_if_failed(await queue.first(*before))


async def whole_body(
    queue: EventQueue, writer: AnswerWriter, end: Callable[[], Awaitable[CompletionEnd]]
) -> dict[str, Any]:
    """Waits for the end of the turn and returns the body of a response that isn't streamed.

    Raises:
        ProblemError: The turn failed, or the queue was closed.
        TurnfoldError: The usage and figures couldn't be read.
    """
    texts: list[str] = []
    thoughts: list[str] = []
    fixed_count = thought_count = 0  # deltas before the last tool call, retained if the answer is restarted
    while True:
        for event in await queue.get():
            match event:
                case TokenDelta(text):
                    texts.append(text)
                case ThoughtDelta(text):
                    thoughts.append(text)
                case ToolStarted():
                    fixed_count, thought_count = len(texts), len(thoughts)
                case AnswerRestarted():
                    del texts[fixed_count:], thoughts[thought_count:]
                case ActionRequired() | TurnFinished() | TurnStopped() | ToolAsked():
                    calls = event.calls if isinstance(event, ActionRequired) else ()
                    payload = "".join(thoughts).strip()
                    return writer.whole("".join(texts), calls, await end(), thoughts=payload)
                case _:
                    _raise_if_failed(event)


def _raise_if_failed(event: Event) -> None:
    if isinstance(event, TurnFailed):
        raise ProblemError(problem_of_failure(event.code, event.detail))


async def stream_lines(
    queue: EventQueue,
    writer: AnswerWriter,
    end: Callable[[], Awaitable[CompletionEnd]],
    *,
    with_usage: bool,
    keep_alive_seconds: float,
) -> AsyncGenerator[bytes, None]:
    """Yields the lines of a response, with keep-alives after `keep_alive_seconds` of silence.

    A failed stream ends with an error and without `[DONE]`. Sent text can't be revoked: an answer restarted after text
    was sent fails the stream, too; text that turns out to be thoughts stays, and comes again as such.
    """
    now = asyncio.get_running_loop().time
    yield writer.start()
    silent_since, has_text = now(), False
    try:
        while True:
            events = await queue.get(seconds=silent_since + keep_alive_seconds - now())
            if not events:
                yield writer.keep_alive()
                silent_since = now()
            for event in _with_deltas_joined(events):
                match event:
                    case TokenDelta(text) | ThoughtDelta(text) if text:
                        yield writer.delta(event)
                        silent_since, has_text = now(), has_text or isinstance(event, TokenDelta)
                    case ToolStarted():
                        has_text = False
                    case AnswerRestarted(is_sorted=False) if has_text:
                        yield writer.failure(problem_of_failure("cut_stream"))
                        return
                    case ActionRequired() | TurnFinished() | TurnStopped() | ToolAsked():
                        if isinstance(event, ActionRequired):
                            yield writer.calls(event.calls)
                        yield writer.end(await end(), with_usage=with_usage)
                        return
                    case _:
                        _raise_if_failed(event)
    except (ProblemError, TurnfoldError) as error:
        yield writer.failure(problem_of(error))


def _with_deltas_joined(events: Sequence[Event]) -> Iterator[Event]:
    for kind, run in groupby(events, key=type):
        if kind is TokenDelta or kind is ThoughtDelta:
            yield kind("".join(event.text for event in run if isinstance(event, TokenDelta | ThoughtDelta)))
        else:
            yield from run
