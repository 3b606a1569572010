"""Writes the OpenAPI document of the routes for programs, from the table and the types that serve them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from api.docs_word import ENGLISH
from api.route_table import EVENTS, Operation
from api.served import adapter_of

_REF: Final = "#/components/schemas/{model}"
_IN_BRACES: Final = re.compile(r"\{(\w+)\}")
Schemas = dict[tuple[str, str], dict[str, Any]]


class ErrorDetail(BaseModel):
    """Why a request has no answer: a sentence for people, and a code for programs."""

    message: str
    type: str
    param: str | None = Field(description="The field that is wrong, if it is one.")
    code: str


class ErrorAnswer(BaseModel):
    """What every error is answered with."""

    error: ErrorDetail


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """Returns the document, as JSON values."""
    operations = tuple(operations)
    schemas, definitions = _schemas(operations)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Turnfold", "version": "1", "description": ENGLISH.lead},
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(operations: Iterable[Operation]) -> tuple[Schemas, dict[str, Any]]:
    """Returns the schema of each body and answer, and those that they refer to."""
    wanted: list[tuple[tuple[str, str], Literal["validation", "serialization"], TypeAdapter[Any]]] = [
        (("", "error"), "serialization", adapter_of(ErrorAnswer))
    ]
    for operation in operations:
        if operation.body is not None:
            wanted.append(((operation.name, "body"), "validation", adapter_of(operation.body)))
        if operation.answer is not None:
            wanted.append(((operation.name, "answer"), "serialization", adapter_of(operation.answer)))
    found, rest = TypeAdapter.json_schemas(wanted, ref_template=_REF)
    schemas = {key: _public(schema) for (key, _), schema in found.items()}
    return schemas, {name.lstrip("_"): _public(schema) for name, schema in rest.get("$defs", {}).items()}


def _public(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape, returned in its shape
    """Returns a schema without the mark of a module's own types: to a reader they are types as any other."""
    if isinstance(value, dict):
        return {name: _public(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_public(item) for item in value]
    return value.replace("/schemas/_", "/schemas/") if isinstance(value, str) else value


def _described(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": operation.name,
        "summary": ENGLISH.operations[operation.name],
        "parameters": [*map(_in_path, _IN_BRACES.findall(operation.path)), *_in_query(operation.query)],
        "responses": {
            str(operation.status): _answered(operation, schemas),
            **({"204": {"description": HTTPStatus.NO_CONTENT.phrase}} if operation.may_be_empty else {}),
            **{str(status): _refused(status, schemas) for status in operation.statuses},
        },
        "security": [{"token": []}] if operation.needs_token else [],
    }
    if operation.body is not None:
        schema = schemas[operation.name, "body"]
        told["requestBody"] = {"content": {"application/json": {"schema": schema}}, "required": _needs_body(operation)}
    return told


def _needs_body(operation: Operation) -> bool:
    """Whether a request without a body is refused; elsewhere it is read as one without fields."""
    try:
        adapter_of(operation.body).validate_python({})
    except ValidationError:
        return True
    return operation.call is None


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _in_query(query: type[BaseModel] | None) -> list[dict[str, Any]]:
    if query is None:
        return []
    schema = query.model_json_schema()
    needed = schema.get("required", ())
    return [
        {
            "name": name,
            "in": "query",
            "required": name in needed,
            "schema": {key: value for key, value in taken.items() if key not in ("title", "description")},
            "description": taken.get("description", ""),
        }
        for name, taken in schema["properties"].items()
    ]


def _answered(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    told: dict[str, Any] = {"description": HTTPStatus(operation.status).phrase}
    if operation.answer is not None:
        schema = schemas[operation.name, "answer"]
        # No schema has a word for a stream of events.
        told["content"] = {kind: {} if kind == EVENTS else {"schema": schema} for kind in operation.media_types}
    return told


def _refused(status: int, schemas: Schemas) -> dict[str, Any]:
    content = {"application/json": {"schema": schemas["", "error"]}}
    return {"description": ENGLISH.statuses[status], "content": content}
