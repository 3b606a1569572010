"""Writes a completion in OpenAI's shape: chunk by chunk as lines of a stream, or whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from api.problem import Problem
from graph.core.text import plain_text, plain_value
from graph.value.client import ClientUsage, CompletionEnd
from graph.value.event import ClientCall

DONE: Final = b"data: [DONE]\n\n"
_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
# Clients that split text instead of bytes take these for the ends of lines.
_LINE_ENDS: Final = {mark: f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"}


class CompletionHead(NamedTuple):
    """What each chunk of one response repeats: its id, the second that it was made in, and the model as asked for."""

    id: str
    created: int
    model: str


class ChunkWriter:
    """Writes the lines of one stream.

    Usage:
        >>> writer = ChunkWriter(CompletionHead("chatcmpl-1", 1_800_000_000, "turnfold"))
        >>> lines = writer.start() + writer.text("Hi") + writer.end(completion.end(), with_usage=False)
    """

    def __init__(self, head: CompletionHead) -> None:
        self._head: dict[str, Any] = {
            "id": head.id,
            "object": "chat.completion.chunk",
            "created": head.created,
            "model": head.model,
        }
        # Many streams share one event loop: what all lines of text have in common is written once.
        before, field, self._after_text = self._delta({"content": 0}).partition(b'"content":0')
        self._before_text = before + field[:-1]

    def start(self) -> bytes:
        """Returns the first line: who speaks."""
        return self._delta({"role": "assistant", "content": ""})

    def text(self, text: str) -> bytes:
        """Returns the next piece of the answer; "" keeps the connection alive and says nothing."""
        return self._before_text + _escaped(plain_text(text)) + self._after_text

    def calls(self, calls: Sequence[ClientCall]) -> bytes:
        """Returns the calls that the program is to run: each in one fragment, with its own index."""
        return self._delta({"tool_calls": [{"index": index, **_call(call)} for index, call in enumerate(calls)]})

    def end(self, end: CompletionEnd, *, with_usage: bool) -> bytes:
        """Returns the last lines: why it ended, the figures, the usage if it was asked for and is known, `[DONE]`."""
        last = self._delta({}, end.finish_reason, **_figures(end))
        if with_usage and end.usage is not None:
            last += data_line({**self._head, "choices": [], "usage": _usage(end.usage)})
        return last + DONE

    def _delta(self, delta: Mapping[str, Any], finish_reason: str | None = None, **added: object) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return data_line({**self._head, "choices": [choice], **added})


def failure_line(problem: Problem) -> bytes:
    """Returns the last line of a stream that fails: no `[DONE]` follows, as that would be success to clients."""
    return data_line(problem.body())


def whole_completion(
    head: CompletionHead, text: str, calls: Sequence[ClientCall], end: CompletionEnd
) -> dict[str, Any]:
    """Returns the body of a response that isn't streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None, "refusal": None}
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": end.finish_reason}
    usage = {} if end.usage is None else {"usage": _usage(end.usage)}
    completion = {**head._asdict(), "object": "chat.completion", "choices": [choice], **usage, **_figures(end)}
    plain: dict[str, Any] = plain_value(completion)
    return plain


def _call(call: ClientCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _figures(end: CompletionEnd) -> dict[str, Any]:
    return {"turnfold": dict(end.figures)} if end.figures else {}


def _usage(usage: ClientUsage) -> dict[str, Any]:
    told: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if usage.cached_tokens is not None:
        told["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    return told


def data_line(value: Mapping[str, Any]) -> bytes:
    """Returns a JSON value as the data of one event."""
    return b"data: " + _escaped(plain_value(value)) + b"\n\n"


def _escaped(value: object) -> bytes:
    text = _JSON.encode(value)
    for mark, escape in _LINE_ENDS.items():
        text = text.replace(mark, escape)
    return text.encode()
