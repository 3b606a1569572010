"""Builds the OpenAPI document from the table of operations and the types of their bodies and answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter

from api.route_table import EVENTS, Operation, adapter_of

_DESCRIPTION: Final = (
    "Chats with a memory that stays affordable: an OpenAI-compatible address, a chat with events, and sessions."
)
STATUSES: Final[Mapping[int, str]] = {
    400: "The request is wrong; error.param names the field.",
    401: "There is no token, or an unknown one.",
    403: "The server doesn't answer under this name, or to this page.",
    404: "There is no such session, turn, record or address.",
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
    """Returns all error statuses: the operation's own and those implied by its method, path, query and body."""
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
