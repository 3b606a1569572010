"""The table of operations, one a method and address, and the handler that serves them."""

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
from api.request import invalid_field
from api.token_guard import ApiClient
from graph.service import ChatService

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
EVENTS: Final = "text/event-stream"


@dataclass(frozen=True)
class Call:
    """One request for an operation, read and checked.

    Attributes:
        service: That of the owner whose sessions the program works with.
        client: The program.
        path: The parts of the path that the operation's braces name.
        sent: The body as the operation's `body`, or the query as its `query`; None if it takes neither.
    """

    service: ChatService
    client: ApiClient
    path: Mapping[str, str]
    sent: Any

    @property
    def session_id(self) -> str:
        """The session that the path names."""
        return self.path["session_id"]


@dataclass(frozen=True)
class Operation:
    """What one method does at one address.

    Attributes:
        name: Its name in the document.
        path: From the root of the server; what stands in braces is text without a slash.
        answer: The type of its answer's JSON; None for an answer without a body, `str` for lines of text.
        query: What its query may have, None for nothing.
        body: The type of its body's JSON, None for none.
        body_bytes: How many its body may have, if it has no handler of its own.
        is_body_optional: Whether a request without a body is read as one with an empty object.
        status: Of its answer.
        may_be_empty: Whether it may answer 204 instead.
        media_types: In which forms it answers.
        refusals: The statuses of its errors, beside those that any operation of its kind has.
        call: Serves it, in a thread; None if it has a handler of its own.
        summary: What it does, for the document; by default the docstring of its `call`.
        is_slow: Whether it waits for a model, so that quick ones wait elsewhere.
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


def with_slash(path: str, endpoint: Callable[..., object], methods: Iterable[str]) -> list[Route]:
    """Returns the routes to a handler, with and without a slash at the path's end."""
    return [Route(path + slash, endpoint, methods=list(methods)) for slash in ("", "/")]


_QUICK_THREADS: Final = 16
_SLOW_THREADS: Final = 16


class ServedOperations:
    """Serves operations whose whole answer the service returns.

    Usage:
        >>> served = ServedOperations(service.for_owner)
        >>> app = Starlette(routes=served.routes(session_route.OPERATIONS))

    What the service does blocks, so it is done in threads of its own: those that wait for a model keep none that
    reads a session waiting.

    Args:
        service_of: Returns the service of an owner.
    """

    def __init__(self, service_of: Callable[[str], ChatService]) -> None:
        self._service_of = service_of
        self._quick = anyio.CapacityLimiter(_QUICK_THREADS)
        self._slow = anyio.CapacityLimiter(_SLOW_THREADS)

    def routes(self, operations: Iterable[Operation], *, below: str = "") -> list[Route]:
        """Returns the routes of these operations, each with and without a slash at its end.

        Args:
            operations: Those with a `call`.
            below: The path that they are mounted at, which the routes leave out.
        """
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in operations:
            by_path.setdefault(operation.path.removeprefix(below), {})[operation.method] = operation
        # One route for all methods of a path, so that a wrong method is told of all right ones.
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
    """Returns the body or the query, checked.

    Raises:
        ProblemError: It isn't what the operation takes; see `read_json` for what else is wrong with a body.
    """
    try:
        if operation.body is not None:
            take = adapter_of(operation.body).validate_python
            return await read_json(
                request, take, most_bytes=operation.body_bytes, empty=b"{}" if operation.is_body_optional else b""
            )
        return operation.query and operation.query.model_validate(dict(request.query_params))
    except ValidationError as error:
        raise invalid_field(error) from None


def _answer(operation: Operation, call: Call) -> bytes:
    """Calls the service and returns the answer's bytes."""
    assert operation.call is not None, f"{operation.name} has a handler of its own"  # noqa: S101  # the table's own mistake
    answer = operation.call(call)
    if operation.answer is None:
        return b""
    return answer.encode() if operation.answer is str else adapter_of(operation.answer).dump_json(answer)


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401  # any type that is answered with
    """Returns what writes values of this type as JSON, and describes it; made once, as that takes a while."""
    return TypeAdapter(kind)
