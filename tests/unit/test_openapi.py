from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from starlette.routing import Route

from api.problem import BY_CODE
from api.program_routes import OPERATIONS, STATUSES, ErrorAnswer, ProgramRoutes, document
from api.sessions import SessionAnswer
from graph.server.settings import Settings
from graph.service import ChatService
from graph.value.view import SessionView
from tests.fake.programs import NoPrograms

DOCUMENT = document(OPERATIONS)


def nobody(_: str) -> ChatService:
    raise AssertionError


def no_settings() -> Settings:
    raise AssertionError


def served() -> set[tuple[str, str]]:
    """Method and path of every route behind the check of tokens, as they are served."""
    guarded, *_ = ProgramRoutes(nobody, no_settings, NoPrograms).routes()
    routes: list[Route] = guarded.app.routes  # type: ignore[attr-defined]  # the router of them all
    return {(method, route.path.rstrip("/")) for route in routes for method in (route.methods or set()) - {"HEAD"}}


def references(value: Any) -> set[str]:  # noqa: ANN401  # JSON of any shape
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_the_document_has_every_route_that_is_served_and_no_other() -> None:
    # `/mcp` describes itself, by its own protocol.
    assert served() - {("POST", "/mcp")} == {(operation.method, operation.path) for operation in OPERATIONS}


def test_each_operation_has_a_name_of_its_own_and_a_summary() -> None:
    described = [told for methods in DOCUMENT["paths"].values() for told in methods.values()]
    assert len({told["operationId"] for told in described}) == len(described) == len(OPERATIONS)
    assert all(told["summary"] for told in described)


def test_the_document_is_plain_json_whose_references_lead_somewhere() -> None:
    assert json.loads(json.dumps(DOCUMENT)) == DOCUMENT
    assert DOCUMENT["openapi"] == "3.1.0"
    for reference in references(DOCUMENT):
        assert reference.removeprefix("#/components/schemas/") in DOCUMENT["components"]["schemas"]
    assert not any(name.startswith("_") for name in DOCUMENT["components"]["schemas"])


def test_the_answers_of_the_openai_address_have_their_fields() -> None:
    for path, method, name in (
        ("/v1/models", "get", "data"),
        ("/v1/models/{model_id}", "get", "id"),
        ("/v1/chat/completions", "post", "choices"),
    ):
        answer = DOCUMENT["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
        schema = DOCUMENT["components"]["schemas"][answer["$ref"].removeprefix("#/components/schemas/")]
        assert name in schema["properties"]


def test_a_session_is_told_with_all_that_the_service_has_of_it() -> None:
    assert set(SessionAnswer.model_fields) == {field.name for field in fields(SessionView)}


def test_a_body_that_may_be_left_out_is_told() -> None:
    needed = {
        name: told["requestBody"]["required"]
        for described in DOCUMENT["paths"].values()
        for told in described.values()
        if "requestBody" in told and (name := told["operationId"])
    }
    assert {name for name, is_needed in needed.items() if not is_needed} == {"changeSession", "restoreContext"}


def test_every_operation_says_how_it_is_refused() -> None:
    for described in DOCUMENT["paths"].values():
        for operation in described.values():
            statuses = set(operation["responses"])
            assert {"401", "403", "503"} < statuses
            if "requestBody" in operation:
                assert {"400", "408", "413", "415"} <= statuses


def test_what_an_error_is_answered_with_is_what_the_document_says() -> None:
    for problem in BY_CODE.values():
        assert ErrorAnswer.model_validate(problem.body(), strict=True).model_dump() == problem.body()
        if problem.status != 500:
            assert problem.status in STATUSES
