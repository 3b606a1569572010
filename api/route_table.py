"""The operations of the HTTP API as a table, and the routes of those with a plain JSON answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, Literal

import anyio
import anyio.to_thread
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api.body import SMALL_BODY_BYTES, read_json
from api.middleware import ApiClient
from api.request import invalid_field
from graph.service import ChatService

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
EVENTS: Final = "text/event-stream"


@dataclass(frozen=True)
class Call:
    """A validated request: `sent` is the operation's `body` or `query`, None without either."""

    service: ChatService
    client: ApiClient
    path: Mapping[str, str]
    sent: Any

    @property
    def session_id(self) -> str:
        return self.path["session_id"]


@dataclass(frozen=True)
class Operation:
    """One method at one path.

    Attributes:
        path: In Starlette's syntax: `{name}` ends at a slash, `{name:path}` doesn't.
        answer: Type of the answer's JSON; None for an empty answer, `str` for lines of text.
        body_bytes: Limit of the body of an operation with a `call`.
        is_body_optional: Reads an empty body as `{}`.
        may_be_empty: The answer may be 204 instead.
        refusals: Statuses of errors, beside those implied by method, path, query and body.
        call: Serves the operation, in a thread; None for a stream, which has a handler elsewhere.
        summary: For the OpenAPI document; by default the docstring of `call`.
        is_slow: Waits for a model; such calls have their own threads.
    """

    name: str
    method: Method
    path: str
    answer: Any = None
    query: type[BaseModel] | None = None
    body: Any = None
    body_bytes: int = SMALL_BODY_BYTES
    is_body_optional: bool = False
    status: int = 200
    may_be_empty: bool = False
    media_types: tuple[str, ...] = ("application/json",)
    refusals: tuple[int, ...] = ()
    call: Callable[[Call], Any] | None = None
    summary: str = ""
    is_slow: bool = False

    @property
    def documented_path(self) -> str:
        return self.path.replace(":path", "")


def with_slash(path: str, endpoint: Callable[..., object], methods: Iterable[str]) -> list[Route]:
    return [Route(path + slash, endpoint, methods=list(methods)) for slash in ("", "/")]


_QUICK_THREADS: Final = 16
_SLOW_THREADS: Final = 16


class ServedOperations:
    """Serves the operations that have a `call`, in threads; slow calls have their own pool."""

    def __init__(self, service_of: Callable[[str], ChatService]) -> None:
        self._service_of = service_of
        self._quick = anyio.CapacityLimiter(_QUICK_THREADS)
        self._slow = anyio.CapacityLimiter(_SLOW_THREADS)

    def routes(self, operations: Iterable[Operation]) -> list[Route]:
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in operations:
            if operation.call is not None:
                by_path.setdefault(operation.path, {})[operation.method] = operation
        # One route for all methods of a path, so that the `Allow` of a 405 lists all of them.
        return [
            route
            for path, methods in by_path.items()
            for route in with_slash(path, partial(self._serve, methods), methods)
        ]

    async def _serve(self, methods: Mapping[str, Operation], request: Request) -> Response:
        operation = methods["GET" if request.method == "HEAD" else request.method]
        client: ApiClient = request.state.client
        service = await anyio.to_thread.run_sync(self._service_of, client.owner, limiter=self._quick)
        sent = await _read(operation, request)
        call = Call(service, client, request.path_params, sent)
        limiter = self._slow if operation.is_slow else self._quick
        content = await anyio.to_thread.run_sync(partial(_answer, operation, call), limiter=limiter)
        headers = {"Cache-Control": "no-store"}
        return Response(content, operation.status, headers, operation.media_types[0] if content else None)


async def _read(operation: Operation, request: Request) -> Any:  # noqa: ANN401  # of the types that the operation names
    try:
        if operation.body is not None:
            take, empty = adapter_of(operation.body).validate_python, b"{}" if operation.is_body_optional else b""
            return await read_json(request, take, most_bytes=operation.body_bytes, empty=empty)
        return operation.query and operation.query.model_validate(dict(request.query_params))
    except ValidationError as error:
        raise invalid_field(error, operation.query.model_fields if operation.query else ()) from None


def _answer(operation: Operation, call: Call) -> bytes:
    assert operation.call is not None, operation.name  # noqa: S101  # `routes` leaves others out
    answer = operation.call(call)
    if operation.answer is None:
        return b""
    return answer.encode() if operation.answer is str else adapter_of(operation.answer).dump_json(answer)


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401  # any type that is answered with
    return TypeAdapter(kind)
