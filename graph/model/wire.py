"""Sends chat completions and reads their streams, as servers take and send them."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from anyio import move_on_after
from httpx2 import RequestError, StreamError
from openai import APIError, APIResponseValidationError, APIStatusError, AsyncOpenAI, AsyncStream

from graph.model.failure import refused_parameter
from graph.model.loop import Phase, signs_of_call

_LOG = logging.getLogger(__name__)
_FIRST: Final = {"model": 0, "stream": 1, "messages": 2}
_END_SECONDS: Final = 0.1
_MOST_BODY_BYTES: Final = 2**24
_BLANK: Final = b" \r\n\t\xef\xbb\xbf"  # a byte order mark, too
_THOUGHTS: Final = ("reasoning_content", "reasoning", "reasoning_details")
_LIMITS: Final = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}


class PlainStream(AsyncStream[object]):
    """A stream of chunks as plain JSON.

    Events without data and comments sent as data are skipped, a whole answer in place of a stream is one chunk, and
    calls are completed with what the client needs. Every byte is a sign of life.
    """

    async def __stream__(self) -> AsyncIterator[object]:
        try:
            self._whole = bytearray()
            events = self._decoder.aiter_bytes(self._event_bytes())
            async for event in events:
                data = event.data.strip()
                if data.startswith("[DONE]"):
                    # The connection can be used again if the body is read to its end.
                    with suppress(RequestError, StreamError), move_on_after(_END_SECONDS):
                        async for _ in events:
                            pass
                    break
                if data and not data.startswith(":"):
                    yield self._chunk(json.loads(data))
            if self._whole:
                yield self._chunk(self._document(bytes(self._whole)))
        finally:
            await self.response.aclose()

    async def _event_bytes(self) -> AsyncIterator[bytes]:
        """Yields the bytes of a stream of events; those of any other body are put aside."""
        signs = signs_of_call.get()
        is_stream = None
        begin = b""
        async for data in self.response.aiter_bytes():
            if signs is not None:
                signs.hear()
            if is_stream:
                yield data
                continue
            begin += data if is_stream is None else b""
            if is_stream is None and (head := begin.lstrip(_BLANK)):
                is_stream = head[:1] not in b'{[<"'
                if is_stream:
                    yield head
                else:
                    self._whole += head
            elif is_stream is False and len(self._whole) < _MOST_BODY_BYTES:
                self._whole += data

    def _document(self, body: bytes) -> object:
        text = body.decode(errors="replace")
        if text.startswith("<"):
            raise APIResponseValidationError(self.response, text, message=text)
        return json.loads(text)

    def _chunk(self, value: object) -> object:
        """Returns a chunk in the form that the client takes.

        Raises:
            APIError: It is an error.
        """
        if isinstance(value, list) and value and isinstance(value[0], dict) and value[0].get("error"):
            value = value[0]  # Gemini's form
        if not isinstance(value, dict):
            return value
        error = value.get("error")
        if not error and not value.get("choices") and (value.get("error_message") or value.get("detail")):
            error = value
        if error:
            raise APIError(str(error), self.response.request, body=error)
        choices = value.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                _complete(choice)
        self._tell(value)
        return value

    def _tell(self, chunk: Mapping[str, Any]) -> None:
        if (signs := signs_of_call.get()) is None:
            return
        read = chunk.get("prompt_progress")
        if isinstance(read, dict) and all(isinstance(read.get(name), int) for name in ("processed", "total")):
            signs.tell(Phase("reading", read["processed"], read["total"]))
        choices = chunk.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        delta = first.get("delta") if isinstance(first, dict) else None
        if isinstance(delta, dict) and any(delta.get(name) for name in _THOUGHTS):
            signs.tell(Phase("thinking"))


def _complete(choice: dict[str, Any]) -> None:
    """Makes a whole message a delta, and gives calls what some servers leave out."""
    message = choice.get("message")
    is_whole = "delta" not in choice and isinstance(message, dict)
    if is_whole:
        choice["delta"] = message
        choice["finish_reason"] = choice.get("finish_reason") or "stop"
    delta = choice.get("delta")
    calls = delta.get("tool_calls") if isinstance(delta, dict) else None
    for place, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict):
            call.setdefault("index", place if is_whole else None)
            function = call.setdefault("function", {})
            if isinstance(function, dict) and isinstance(function.get("arguments"), dict | list):
                function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False)


class PlainCompletions:
    """Streams the chat completions of one model as plain JSON.

    The SDK would build an object of each chunk, which LangChain takes apart again: nine tenths of the cost of a chunk.

    Attributes:
        is_local_server: Returns True for a server that knows `max_tokens` only and takes everything else.
        tells_progress: Returns True for a server that tells how much of the input it has read, if asked.
        on_window: Called with the model's context window if an error tells it.
    """

    def __init__(self, client: AsyncOpenAI) -> None:
        self.is_local_server: Callable[[], bool] = lambda: False
        self.tells_progress: Callable[[], bool] = lambda: False
        self.on_window: Callable[[int], None] = lambda _: None
        self._client = client
        # By the name of a parameter that the model refused, the name that it takes instead, "" for none.
        self._refused: dict[str, str] = {}

    async def create(self, *, extra_body: Mapping[str, Any] | None = None, **body: Any) -> AsyncStream[object]:  # noqa: ANN401  # JSON
        """Sends a request, and once more without each parameter that the model refuses."""
        asked = _in_order(body) | dict(extra_body or {})
        refused = dict(self._refused)
        while True:
            sent = self._adapted(asked, refused)
            try:
                stream = await self._client.post(
                    "/chat/completions", cast_to=object, body=sent, stream=True, stream_cls=PlainStream
                )
            except APIStatusError as error:
                if not (name := refused_parameter(error, sent)):
                    raise
                instead = _LIMITS.get(name, "")
                # Whoever refuses both names is asked without a limit.
                refused[name] = "" if instead in refused else instead
                if instead in refused:
                    refused[instead] = ""
                continue
            for name in refused.keys() - self._refused.keys():
                now = f"under the name {refused[name]}" if refused[name] else "without it"
                _LOG.warning("model %s refuses %s; it is asked %s from now on", body.get("model"), name, now)
            self._refused = refused
            return stream

    def adapted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a body as it is sent."""
        return self._adapted(_in_order(body), self._refused)

    def _adapted(self, body: Mapping[str, Any], refused: Mapping[str, str]) -> dict[str, Any]:
        names = dict(refused)
        if self.is_local_server() and "max_tokens" not in names:
            names.setdefault("max_completion_tokens", "max_tokens")
        sent = {names.get(name, name): value for name, value in body.items() if names.get(name, name)}
        return sent | {"return_progress": True} if self.tells_progress() and "return_progress" not in refused else sent


def _in_order(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a body in the SDK's key order, so that requests with the same first messages have a common prefix."""
    return {name: body[name] for name in sorted(body, key=lambda name: (_FIRST.get(name, len(_FIRST)), name))}
