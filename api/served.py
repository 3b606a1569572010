"""Makes routes of operations: reads and checks what was sent, calls the service in a thread, writes the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, Final

import anyio
import anyio.to_thread
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api.body import read_json
from api.request import invalid_field
from api.route_table import Call, Operation, with_slash
from api.token_guard import ApiClient
from graph.service import ChatService

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
            return await read_json(request, take, most_bytes=operation.body_bytes, empty=b"{}")
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
