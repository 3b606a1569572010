"""All routes of the HTTP API behind one token check, and their OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final, Literal

import anyio
import anyio.to_thread
from pydantic import BaseModel, Field, TypeAdapter
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from api import chat, completions, responses, sessions, stored_responses
from api.chat import Chat
from api.completions import PATIENCE_SECONDS, CreateCompletion
from api.mcp import McpEndpoint
from api.middleware import ApiClients, Cors, Edge, Guard, ProgramSource, is_for_programs
from api.responses import CreateResponse
from api.route_table import EVENTS, Operation, ServedOperations, adapter_of, with_slash
from graph.server.settings import Settings
from graph.service import ChatService
from graph.value.client import CompletionSource

_DESCRIPTION: Final = (
    "Chats with a memory that stays affordable: an OpenAI-compatible address, a chat with events, and sessions."
)
STATUSES: Final[Mapping[int, str]] = {
    400: "The request is wrong; error.param names the field.",
    401: "There is no token, or an unknown one.",
    403: "The server doesn't answer under this name, or to this page.",
    404: "There is no such session, turn, response, record or address.",
    408: "The body wasn't sent in time.",
    409: "The session is busy: x-should-retry is false, Retry-After says when to try again.",
    413: "The body is too large, or has too many values.",
    415: "The body is compressed.",
    429: "Too much at once, or too many turns in a minute; see Retry-After.",
    502: "The model's server answered with what can't be used.",
    503: "The model or the storage can't be reached, or the server is full, at the moment; see Retry-After.",
}
_PARAMETER: Final = re.compile(r"\{(\w+)\}")


class ErrorDetail(BaseModel):
    """Why a request has no answer: a sentence for people, and a code for programs."""

    message: str
    type: str
    param: str | None = Field(description="The field that is wrong, if it is one.")
    code: str


class ErrorAnswer(BaseModel):
    """The body of every error."""

    error: ErrorDetail


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    operations = tuple(operations)
    wanted: list[tuple[tuple[str, str], Literal["validation", "serialization"], TypeAdapter[Any]]] = [
        (("", "error"), "serialization", adapter_of(ErrorAnswer))
    ]
    for operation in operations:
        if operation.body is not None:
            wanted.append(((operation.name, "body"), "validation", adapter_of(operation.body)))
        if operation.answer is not None:
            wanted.append(((operation.name, "answer"), "serialization", adapter_of(operation.answer)))
    found, shared = TypeAdapter.json_schemas(wanted, ref_template="#/components/schemas/{model}")
    schemas = {key: schema for (key, _), schema in found.items()}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.documented_path, {})[operation.method.lower()] = _described(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Turnfold", "version": "1", "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": shared["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _described(operation: Operation, schemas: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": HTTPStatus(operation.status).phrase}
    if operation.answer is not None:
        schema = schemas[operation.name, "answer"]
        # JSON Schema can't describe a stream of events.
        answer["content"] = {kind: {} if kind == EVENTS else {"schema": schema} for kind in operation.media_types}
    error = {"application/json": {"schema": schemas["", "error"]}}
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary or operation.call.__doc__,
        "parameters": _parameters(operation),
        "responses": {
            str(operation.status): answer,
            **({"204": {"description": HTTPStatus.NO_CONTENT.phrase}} if operation.may_be_empty else {}),
            **{str(status): {"description": STATUSES[status], "content": error} for status in _errors_of(operation)},
        },
    }
    if operation.body is not None:
        described["requestBody"] = {
            "content": {"application/json": {"schema": schemas[operation.name, "body"]}},
            "required": not operation.is_body_optional,
        }
    return described


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    """Returns the parameters of the path and the query; every field of a query model has a default."""
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(operation.documented_path)
    ]
    fields = operation.query.model_json_schema()["properties"] if operation.query is not None else {}
    in_query = [
        {
            "name": name,
            "in": "query",
            "required": False,
            "schema": {key: value for key, value in field.items() if key not in ("title", "description")},
            "description": field.get("description", ""),
        }
        for name, field in fields.items()
    ]
    return in_path + in_query


def _errors_of(operation: Operation) -> list[int]:
    statuses = {*operation.refusals, 401, 403, 503}
    if operation.body is not None:
        statuses |= {400, 408, 413, 415}
    if operation.query is not None:
        statuses |= {400}
    if operation.method == "POST":
        statuses |= {429}
    if "{" in operation.path:
        statuses |= {404}
    return sorted(statuses)


_DOCUMENT: Final = "/openapi.json"
OPERATIONS: Final = (
    *completions.OPERATIONS,
    responses.CREATE,
    *stored_responses.OPERATIONS,
    sessions.SUMMARIZE,
    chat.SEND,
    chat.FOLLOW,
    *sessions.OPERATIONS,
)


class ProgramRoutes:
    """The HTTP API over a service.

    Args:
        service_of: Returns the service of an owner; called for each request.
        settings: Called at the first request.
        tokens: Returns the tokens created by owners; called for each request.
        patience_seconds: See `CreateCompletion`.
    """

    def __init__(
        self,
        service_of: Callable[[str], ChatService],
        settings: Callable[[], Settings],
        tokens: Callable[[], ProgramSource],
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._settings = settings
        self._tokens = tokens

        def completions_of(owner: str) -> CompletionSource:
            return service_of(owner).completions

        self._create = CreateCompletion(completions_of, patience_seconds=patience_seconds)
        self._respond = CreateResponse(completions_of, patience_seconds=patience_seconds)
        self._chat = Chat(service_of)
        self._mcp = McpEndpoint(service_of, settings)
        self._served = ServedOperations(service_of)

    def routes(self) -> list[BaseRoute]:
        """Returns the routes; they take every path below `/v1`, `/chat`, `/sessions` and `/mcp`."""
        checks = Middleware(Cors, self._settings), Middleware(Edge), Middleware(Guard, self._settings, self._tokens)
        routes = [
            *self._served.routes(OPERATIONS),
            *with_slash(completions.CREATE.path, self._create, ["POST"]),
            *with_slash(responses.CREATE.path, self._respond, ["POST"]),
            *with_slash(chat.SEND.path, self._chat.send, ["POST"]),
            *with_slash(chat.FOLLOW.path, self._chat.follow, ["GET"]),
            *with_slash("/mcp", self._mcp, ["POST"]),
        ]
        described = [Route(_DOCUMENT, self._show_document, methods=["GET"])]
        # A redirect would use the Host header, and turn a POST into a GET.
        return [
            _OfPrograms(Router(routes, redirect_slashes=False, middleware=checks)),
            Route(_DOCUMENT, Router(described, redirect_slashes=False, middleware=[Middleware(Edge)])),
            # Clients of MCP look for a sign-in by OAuth there, and the page would answer 200.
            Route("/.well-known/{path:path}", Router(middleware=[Middleware(Edge)])),
        ]

    def close(self) -> None:
        """Ends open responses at shutdown; from any thread."""
        self._create.close()
        self._respond.close()
        self._chat.close()

    async def _show_document(self, _: Request) -> JSONResponse:
        clients = ApiClients(self._settings().api_tokens, self._tokens)
        # Without any token the API is off.
        if not await anyio.to_thread.run_sync(clients.are_let_in):
            raise HTTPException(404)
        return JSONResponse(self._document)

    @cached_property
    def _document(self) -> dict[str, Any]:
        return document(OPERATIONS)


class _OfPrograms(BaseRoute):
    """Matches every path of the HTTP API, so that no other part of the server answers there.

    A `Mount` matches its own path only with a trailing slash, and never a path with a line break.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.FULL if scope["type"] == "http" and is_for_programs(scope) else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)
