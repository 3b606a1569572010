"""The routes of `/v1`: models and chat completions, streamed or whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, NotRequired

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from api.body import BODY_BYTES, read_json
from api.completion_stream import AnswerWriter, ChunkWriter, CompletionHead, first_event, stream_lines, whole_body
from api.event_stream import STALLED_SECONDS, EventQueue, EventStream
from api.middleware import ApiClient
from api.problem import BY_CODE, Problem, ProblemError, message_too_long
from api.request import (
    DEFAULT_ID,
    LEFT_OUT,
    MATCHED,
    PLAIN,
    PREFIX,
    SESSION,
    TURN,
    CompletionBody,
    ParsedRequest,
    check_known,
    parse_model_id,
    parse_request,
)
from api.route_table import EVENTS, Call, Operation
from graph.value.client import Completion, CompletionEnd, CompletionSource
from graph.value.error import ClosingError, InputError
from graph.value.event import LeftOut

PATIENCE_SECONDS: Final = 10.0
# Separate from the threads of the page and the other routes, so that neither blocks the other.
_THREADS: Final = 16
# The date of the first version: models don't report their own.
_CREATED: Final = 1_767_225_600
_LEFT: Final = Problem(499, "client_left", "The client closed the connection.")


@dataclass(frozen=True)
class OpenedCompletion:
    """A response in progress for one request; `detach` ends its subscription to events."""

    asked: ParsedRequest
    completion: Completion
    detach: Callable[[], None]

    @property
    def head(self) -> CompletionHead:
        return CompletionHead(self.completion.id, self.completion.created, self.asked.model)

    def headers(self, left_out: Sequence[str] = ()) -> dict[str, str]:
        fields: dict[str, str] = {MATCHED: self.completion.matched}
        if self.completion.session_id:
            fields |= {SESSION: self.completion.session_id, TURN: str(self.completion.turn)}
        if left_out:
            fields[LEFT_OUT] = ", ".join(left_out)
        return fields


class CreateCompletion:
    """The route's handler, an ASGI application; service calls block, so they run in threads.

    A client that closes a stream stops the turn, unless the request said otherwise; one waiting for the whole answer
    doesn't. One that reads nothing for `stalled_seconds` is taken for gone.

    Args:
        patience_seconds: How long to wait for the first event before the status is sent, and how long a stream may be
            silent.
    """

    def __init__(
        self,
        completions_of: Callable[[str], CompletionSource],
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        stalled_seconds: float = STALLED_SECONDS,
    ) -> None:
        self._completions_of = completions_of
        self._in_thread = partial(anyio.to_thread.run_sync, limiter=anyio.CapacityLimiter(_THREADS))
        self._patience_seconds = patience_seconds
        self._stalled_seconds = stalled_seconds
        # Queue to the id of its response, "" until known.
        self._queues: dict[EventQueue, str] = {}
        self._is_closed = False

    def close(self) -> None:
        """Ends all responses with an error at shutdown; from any thread."""
        self._is_closed = True
        for queue in list(self._queues):
            queue.close(BY_CODE["closing"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        client: ApiClient = request.state.client
        take = partial(self._parse, headers=request.headers, client=client)
        asked = await read_json(request, take, most_bytes=BODY_BYTES)
        with self._queue() as queue:
            opened = await self._in_thread(partial(self._open, asked, client, queue))
            self._queues[queue] = opened.completion.id
            leaving = asyncio.create_task(_watch_leaving(receive, queue))
            try:
                has_left = await self._answer(opened, queue, scope, receive, send)
                if has_left and self._is_alone(opened):
                    await self._in_thread(opened.completion.stop)
            finally:
                leaving.cancel()
                opened.detach()

    def _parse(self, fields: dict[str, Any], headers: Headers, client: ApiClient) -> ParsedRequest:
        return parse_request(fields, headers, client)

    def _writer(self, opened: OpenedCompletion) -> AnswerWriter:
        return ChunkWriter(opened.head)

    def _is_alone(self, opened: OpenedCompletion) -> bool:
        """Returns True if closing this stream stops the turn; a repeated request may wait for the same response."""
        is_stop = opened.asked.is_streamed and not opened.asked.goes_on
        return is_stop and list(self._queues.values()).count(opened.completion.id) == 1

    def _open(self, asked: ParsedRequest, client: ApiClient, queue: EventQueue) -> OpenedCompletion:
        completions = self._completions_of(client.owner)
        check_known(asked.model, completions.models())
        try:
            completion = completions.begin(asked.request)
        except InputError as error:
            if error.reason != "message_too_long":
                raise
            raise ProblemError(message_too_long(error.detail, asked.lengths)) from None
        return OpenedCompletion(asked, completion, completion.watch(queue.put))

    async def _answer(
        self, opened: OpenedCompletion, queue: EventQueue, scope: Scope, receive: Receive, send: Send
    ) -> bool:
        """Sends the answer; returns True if the client left early."""
        end = partial(self._in_thread, opened.completion.end)
        try:
            if opened.asked.is_streamed:
                await first_event(queue, seconds=self._patience_seconds)
                await self._stream(opened, queue, end, send)
            else:
                body = await whole_body(queue, self._writer(opened), end)
                headers = opened.headers(body.get("turnfold", {}).get("left_out", ()))
                await JSONResponse(body, headers=headers)(scope, receive, send)
        except ClientDisconnect:
            return True
        except ProblemError as error:
            if error.problem is _LEFT:
                return True
            raise ProblemError(replace(error.problem, headers={**error.problem.headers, **opened.headers()})) from error
        return queue.problem is _LEFT

    async def _stream(
        self, opened: OpenedCompletion, queue: EventQueue, end: Callable[[], Awaitable[CompletionEnd]], send: Send
    ) -> None:
        lines = stream_lines(
            queue,
            self._writer(opened),
            end,
            with_usage=opened.asked.with_usage,
            keep_alive_seconds=self._patience_seconds,
        )
        told = queue.waiting(LeftOut)
        headers = opened.headers(told[-1].parts if told else ())
        await EventStream(lines, headers, stalled_seconds=self._stalled_seconds).stream_response(send)

    @contextmanager
    def _queue(self) -> Iterator[EventQueue]:
        if self._is_closed:
            raise ClosingError
        queue = EventQueue()
        self._queues[queue] = ""
        try:
            yield queue
        finally:
            del self._queues[queue]


async def _watch_leaving(receive: Receive, queue: EventQueue) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    queue.close(_LEFT)


def _list_models(call: Call) -> dict[str, Any]:
    """Lists the models, the default first, each with and without memory."""
    windows = call.service.completions.models()
    ids = [DEFAULT_ID, *(f"{PREFIX}{name}" for name in windows)]
    entries = [_entry(model_id + suffix, windows) for model_id in ids for suffix in ("", PLAIN)]
    return {"object": "list", "data": entries}


def _get_model(call: Call) -> dict[str, Any]:
    """Returns one model."""
    model_id, windows = call.path["model_id"].rstrip("/"), call.service.completions.models()
    check_known(model_id, windows)
    return _entry(model_id, windows)


def _entry(model_id: str, windows: Mapping[str, int]) -> dict[str, Any]:
    name, _ = parse_model_id(model_id)
    window = windows.get(name) if name else next(iter(windows.values()), None)
    known = {} if window is None else {"context_length": window}
    return {"id": model_id, "object": "model", "created": _CREATED, "owned_by": "turnfold", **known}


class ModelEntry(TypedDict):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    context_length: NotRequired[int]


class ModelList(TypedDict):
    object: Literal["list"]
    data: list[ModelEntry]


class CalledFunction(TypedDict):
    name: str
    arguments: str


class CalledTool(TypedDict):
    id: str
    type: Literal["function"]
    function: CalledFunction


class AnswerMessage(TypedDict):
    role: Literal["assistant"]
    content: str | None
    refusal: None
    reasoning_content: NotRequired[str]
    tool_calls: NotRequired[list[CalledTool]]


class AnswerChoice(TypedDict):
    index: int
    message: AnswerMessage
    logprobs: None
    finish_reason: str


class AnswerUsage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: NotRequired[dict[str, int]]


class ChatCompletion(TypedDict):
    id: str
    created: int
    model: str
    object: Literal["chat.completion"]
    choices: list[AnswerChoice]
    usage: NotRequired[AnswerUsage]
    turnfold: NotRequired[dict[str, Any]]


CREATE: Final = Operation(
    "createChatCompletion",
    "POST",
    "/v1/chat/completions",
    ChatCompletion,
    summary="Answers a chat as OpenAI does, with the folded memory behind it; see the guide.",
    body=CompletionBody,
    media_types=("application/json", EVENTS),
    refusals=(404, 409, 502),
)
OPERATIONS: Final = (
    Operation("listModels", "GET", "/v1/models", ModelList, call=_list_models),
    Operation("getModel", "GET", "/v1/models/{model_id:path}", ModelEntry, call=_get_model),
    CREATE,
)
