"""The routes under /v1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import anyio
from anyio import to_thread
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route, Router

from api.completion import CreateCompletion
from api.model_id import list_models, model_entry
from api.request import CompletionBody
from api.route_table import EVENTS, Operation, with_slash
from graph.value.client import CompletionSource

PATIENCE_SECONDS: Final = 10.0
OPERATIONS: Final = (
    Operation("listModels", "GET", "/v1/models", dict[str, Any]),
    Operation("getModel", "GET", "/v1/models/{model_id}", dict[str, Any]),
    Operation(
        "createChatCompletion",
        "POST",
        "/v1/chat/completions",
        dict[str, Any],
        body=CompletionBody,
        media_types=("application/json", EVENTS),
        refusals=(404, 409, 502),
    ),
)
# Of the door's own: the page's routes have theirs, and neither waits for the other.
_THREADS: Final = 16


class Door:
    """What stands under `/v1`: the models and the completions.

    Usage:
        >>> door = Door(lambda owner: service.for_owner(owner).completions)
        >>> app = Starlette(routes=[door.routes(Middleware(Edge), Middleware(Guard, settings, tokens))])

    Args:
        completions_of: Returns what answers the programs of an owner; called for each request.
        patience_seconds: How long the status of an answer may wait for its beginning, and a stream be silent.
    """

    def __init__(
        self, completions_of: Callable[[str], CompletionSource], *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._completions_of = completions_of
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._create = CreateCompletion(completions_of, threads=self._threads, patience_seconds=patience_seconds)

    def routes(self, *middleware: Middleware, beside: Iterable[Route] = ()) -> Mount:
        """Returns all of /v1, other addresses there included.

        Args:
            beside: Further routes below /v1.
            middleware: What stands before the routes, outermost first; it sets `request.state.client`, and turns errors
                into answers.
        """
        routes = [
            *with_slash("/models", self._list_models, ["GET"]),
            Route("/models/{model_id:path}", self._get_model, methods=["GET"]),
            *with_slash("/chat/completions", self._create, ["POST"]),
            *beside,
        ]
        # A redirect would follow the Host header, and makes a GET of a POST.
        return Mount("/v1", app=Router(routes, redirect_slashes=False), middleware=middleware)

    def close(self) -> None:
        """Ends what is being answered, as the server ends; from any thread."""
        self._create.close()

    async def _list_models(self, request: Request) -> JSONResponse:
        return JSONResponse(list_models(await self._names(request)))

    async def _get_model(self, request: Request) -> JSONResponse:
        return JSONResponse(model_entry(request.path_params["model_id"].rstrip("/"), await self._names(request)))

    async def _names(self, request: Request) -> Sequence[str]:
        owner: str = request.state.client.owner
        return await to_thread.run_sync(lambda: self._completions_of(owner).models(), limiter=self._threads)
