"""Sends chat completions and reads their streams, as servers take and send them."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from anyio import move_on_after
from httpx2 import RequestError, StreamError
from openai import APIError, APIResponseValidationError, APIStatusError, AsyncOpenAI, AsyncStream

from graph.core.thinking import THOUGHT_FIELDS
from graph.model.failure import reason_of, reasoning_wanted, refused_parameter
from graph.model.loop import Phase, signs_of_call

_LOG = logging.getLogger(__name__)
_FIRST: Final = {"model": 0, "stream": 1, "messages": 2}
_END_SECONDS: Final = 0.1
_MOST_BODY_BYTES: Final = 2**24
_MARK: Final = re.compile(r"\[[\w -]++\]")
_LINE_END: Final = re.compile(rb"\r\n|[\r\n]")
_REASONING: Final = "reasoning_content"
_LIMITS: Final = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}


class PlainStream(AsyncStream[object]):
    """A stream of chunks as plain JSON, as servers of all kinds send it.

    Read line by line: events with and without blank lines between them, lines of JSON alone, and a whole answer in
    place of a stream. Pings in any form are skipped, and calls are completed with what the client needs. Every byte is
    a sign of life.
    """

    async def __stream__(self) -> AsyncIterator[object]:
        odd: object = None  # what was neither part of an answer nor surely an error: the reason of a stream without one
        has_choices = has_ended = False
        try:
            async for value, event in self._values():
                if isinstance(value, str) and event == "error":
                    raise APIError(value, self.response.request, body=value)
                for each in value if isinstance(value, list) and value else [value]:
                    if not isinstance(each, dict):
                        odd = odd or str(each)
                        continue
                    chunk = self._chunk(each, is_error=event == "error")
                    if not chunk["choices"] and reason_of(chunk):
                        odd = chunk
                    has_choices |= bool(chunk["choices"])
                    has_ended |= any(choice.get("finish_reason") for choice in chunk["choices"])
                    yield chunk
            if isinstance(odd, dict) and not has_ended:
                raise APIError(str(odd), self.response.request, body=odd)
            if isinstance(odd, str) and not has_choices:
                raise APIResponseValidationError(self.response, odd, message=odd)
        finally:
            await self.response.aclose()

    async def _values(self) -> AsyncIterator[tuple[object, str]]:
        """Yields each piece of JSON or other words, with the name of its event."""
        held: list[str] = []  # a piece in several lines
        event, is_data = "", False
        lines = self._lines()
        async for line in lines:
            name, _, rest = line.partition(":")
            name = name.strip().lower()
            if not name and (not held or is_data):  # a blank line or a comment
                if held:
                    yield self._whole(held), event
                held, event = [], event if line else ""
            elif name == "event":
                event = rest.strip()
            elif name not in ("id", "retry"):
                is_data = name == "data"
                text = (rest if is_data else line).strip()
                if is_data and text.startswith("[DONE]"):
                    break
                if held or (value := _read(text)) is None:
                    held.append(text)
                else:
                    yield value, event
        # The connection can be used again if the body is read to its end.
        with suppress(RequestError, StreamError), move_on_after(_END_SECONDS):
            async for _ in lines:
                pass
        if held:
            yield self._whole(held), event

    async def _lines(self) -> AsyncIterator[str]:
        signs, parts, size, was_return = signs_of_call.get(), list[bytes](), 0, False
        async for data in self.response.aiter_bytes():
            if signs is not None:
                signs.hear()
            size += len(data)
            if size > _MOST_BODY_BYTES and parts:
                continue  # no line is as long
            *ended, rest = _LINE_END.split(data.removeprefix(b"\n") if was_return else data)
            was_return = data.endswith(b"\r")
            for line in ended:
                yield b"".join([*parts, line]).decode(errors="replace").strip("\ufeff")
                parts.clear()
                size = 0
            parts.append(rest)
        yield b"".join(parts).decode(errors="replace").strip("\ufeff")

    def _whole(self, lines: Sequence[str]) -> object:
        text = "\n".join(lines)
        if text.startswith("<"):
            raise APIResponseValidationError(self.response, text, message=text)
        return json.loads(text)

    def _chunk(self, value: dict[str, Any], *, is_error: bool) -> dict[str, Any]:
        """Returns a chunk in the form that the client takes.

        Raises:
            APIError: It is an error.
        """
        inner = value.get("data") or value.get("Response")
        if "choices" not in value and isinstance(inner, dict) and "choices" in inner:
            value = inner
        error = value.get("error")
        if not error and not value.get("choices") and (is_error or value.get("error_message") or value.get("detail")):
            error = value
        if error:
            raise APIError(str(error), self.response.request, body=error)
        choices = value.get("choices")
        value["choices"] = (
            [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
        )
        for choice in value["choices"]:
            _complete(choice)
        if "usage" in value:
            value["usage"] = _counts(value["usage"])
        self._tell(value)
        return value

    def _tell(self, chunk: Mapping[str, Any]) -> None:
        if (signs := signs_of_call.get()) is None:
            return
        read = chunk.get("prompt_progress")
        if isinstance(read, dict) and all(isinstance(read.get(name), int) for name in ("processed", "total")):
            signs.tell(Phase("reading", read["processed"], read["total"]))
        if any(choice["delta"].get(name) for choice in chunk["choices"] for name in THOUGHT_FIELDS):
            signs.tell(Phase("thinking"))


def _complete(choice: dict[str, Any]) -> None:
    """Makes a whole message a delta, and gives calls what some servers leave out."""
    message = choice.get("message")
    is_whole = "delta" not in choice and message is not None
    if is_whole:
        choice["delta"] = {"content": message} if isinstance(message, str) else message
        choice["finish_reason"] = choice.get("finish_reason") or "stop"
    if not isinstance(delta := choice.get("delta"), dict):
        choice["delta"] = delta = {"content": choice.get("text")}
    if not isinstance(delta.get("content"), str | list):
        delta["content"] = None
    calls = delta.get("tool_calls")
    calls = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    if "tool_calls" in delta:
        delta["tool_calls"] = calls
    for place, call in enumerate(calls):
        call.setdefault("index", place if is_whole else None)
        function = call.setdefault("function", {})
        if isinstance(function, dict) and isinstance(function.get("arguments"), dict | list):
            function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False)


def _counts(usage: object) -> dict[str, Any] | None:
    """Returns the counts of a report on tokens as whole numbers, without what isn't one."""
    if not isinstance(usage, Mapping):
        return None
    return {
        name: _counts(value) if isinstance(value, Mapping) else int(value)
        for name, value in usage.items()
        if isinstance(value, Mapping) or (isinstance(value, int | float) and math.isfinite(value))
    }


def _read(text: str) -> object:
    """Returns the JSON or the other words of a line; None if it is the beginning of JSON or of a page."""
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            return text if _MARK.fullmatch(text) else None
    return None if text[:1] == "<" else text


class PlainCompletions:
    """Streams the chat completions of one model as plain JSON.

    The SDK would build an object of each chunk, which LangChain takes apart again: nine tenths of the cost of a chunk.

    Attributes:
        is_local_server: Returns True for a server that knows `max_tokens` only and takes everything else.
        tells_progress: Returns True for a server that tells how much of the input it has read, if asked.
        on_window: Called with the model's context window if an error tells it.
        refused: By the name of a parameter that the model refused, the name that it takes instead, "" for none; by that
            of the reasoning in messages, itself if the model refused messages without it.
    """

    def __init__(self, client: AsyncOpenAI) -> None:
        self.is_local_server: Callable[[], bool] = lambda: False
        self.tells_progress: Callable[[], bool] = lambda: False
        self.on_window: Callable[[int], None] = lambda _: None
        self._client = client
        self.refused: dict[str, str] = {}

    async def create(self, *, extra_body: Mapping[str, Any] | None = None, **body: Any) -> AsyncStream[object]:  # noqa: ANN401  # JSON
        """Sends a request, and once more without each parameter that the model refuses."""
        given = dict(extra_body or {})
        asked = _in_order(body) | given
        refused = dict(self.refused)
        while True:
            sent = self._adapted(asked, refused)
            try:
                stream = await self._client.post(
                    "/chat/completions", cast_to=object, body=sent, stream=True, stream_cls=PlainStream
                )
            except APIStatusError as error:
                wanted = reasoning_wanted(error)
                if wanted is not None and refused.get(_REASONING) == self.refused.get(_REASONING):
                    refused[_REASONING] = _REASONING if wanted else ""
                    continue
                if not (name := refused_parameter(error, sent, given=given)):
                    raise
                instead = _LIMITS.get(name, "")
                # Whoever refuses both names is asked without a limit.
                refused[name] = "" if instead in refused else instead
                if instead in refused:
                    refused[instead] = ""
                continue
            for name, instead in refused.items() - self.refused.items():
                now = "with it" if instead == name else f"under the name {instead}" if instead else "without it"
                _LOG.warning("model %s refuses %s; it is asked %s from now on", body.get("model"), name, now)
            self.refused.update(refused)
            return stream

    def adapted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a body as it is sent."""
        return self._adapted(_in_order(body), self.refused)

    def _adapted(self, body: Mapping[str, Any], refused: Mapping[str, str]) -> dict[str, Any]:
        names = dict(refused)
        if self.is_local_server() and "max_tokens" not in names:
            names.setdefault("max_completion_tokens", "max_tokens")
        sent = {names.get(name, name): value for name, value in body.items() if names.get(name, name)}
        if _REASONING in refused:
            sent["messages"] = [_with_reasoning(each, is_wanted=bool(refused[_REASONING])) for each in body["messages"]]
        return sent | {"return_progress": True} if self.tells_progress() and "return_progress" not in refused else sent


def _with_reasoning(message: Mapping[str, Any], *, is_wanted: bool) -> Mapping[str, Any]:
    """Returns an answer with reasoning, a blank for what isn't known, or without any; another message as it is."""
    if message.get("role") != "assistant":
        return message
    if is_wanted:
        return {**message, _REASONING: message.get(_REASONING) or " "}  # "" is refused
    bare = {name: value for name, value in message.items() if name not in THOUGHT_FIELDS}
    for call in bare.get("tool_calls") or ():
        call.pop("extra_content", None)
    return bare


def _in_order(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a body in the SDK's key order, so that requests with the same first messages have a common prefix."""
    return {name: body[name] for name in sorted(body, key=lambda name: (_FIRST.get(name, len(_FIRST)), name))}
