from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

import pytest
from starlette.routing import Mount, Route, Router

from api.openapi import ENGLISH, KOREAN, LANGUAGES, ErrorAnswer, chosen_language, document, render
from api.problem import BY_CODE
from api.program_routes import OPERATIONS, ProgramRoutes
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
    """Method and path of every route behind the checks, as they are served."""
    found: set[tuple[str, str]] = set()

    def walk(routes: Any, prefix: str) -> None:  # noqa: ANN401  # routes and mounts
        for route in routes:
            if isinstance(route, Mount):
                walk(route.routes, prefix + route.path)
            elif isinstance(route, Route) and route.methods:
                path = re.sub(r":\w+", "", prefix + route.path).rstrip("/")
                found.update((method, path) for method in route.methods - {"HEAD"})

    for joined in ProgramRoutes(nobody, no_settings, NoPrograms).routes():
        app: Any = joined.app  # type: ignore[attr-defined]  # each leads to a stack of layers
        while not isinstance(app, Router):
            app = app._app  # noqa: SLF001  # the layers have no other name for it
        walk(app.routes, "")
    return found


def references(value: Any) -> set[str]:  # noqa: ANN401  # JSON of any shape
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_the_document_has_every_route_that_is_served_and_no_other() -> None:
    assert served() == {(operation.method, operation.path) for operation in OPERATIONS}


def test_each_operation_has_a_name_of_its_own_and_words_in_every_language() -> None:
    names = [operation.name for operation in OPERATIONS]
    assert len(set(names)) == len(names)
    for words in LANGUAGES.values():
        assert words.operations.keys() == set(names)
    assert ENGLISH.statuses.keys() == KOREAN.statuses.keys()


def test_the_document_is_plain_json_whose_references_lead_somewhere() -> None:
    assert json.loads(json.dumps(DOCUMENT)) == DOCUMENT
    assert DOCUMENT["openapi"] == "3.1.0"
    for reference in references(DOCUMENT):
        assert reference.removeprefix("#/components/schemas/") in DOCUMENT["components"]["schemas"]
    assert not any(name.startswith("_") for name in DOCUMENT["components"]["schemas"])


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
            assert {"403"} < statuses
            assert ("401" in statuses) == bool(operation["security"])
            if "requestBody" in operation:
                assert {"400", "408", "413", "415"} <= statuses


def test_what_an_error_is_answered_with_is_what_the_document_says() -> None:
    for problem in BY_CODE.values():
        assert ErrorAnswer.model_validate(problem.body(), strict=True).model_dump() == problem.body()
        if problem.status != 500:
            assert problem.status in ENGLISH.statuses


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_shows_every_operation_without_a_script_or_anything_from_elsewhere(language: str) -> None:
    page = render(DOCUMENT, language)
    for operation in OPERATIONS:
        assert f'<article id="{operation.name}">' in page
        assert f"{operation.method} {operation.path}" in page
    assert f'<html lang="{language}">' in page
    assert not re.search(r"<(script|img|link|iframe|form|object)\b|\bon\w+=|(src|href)=\"(?!#|\?|/openapi)", page)
    assert not re.search(r"https?://|@import|url\(", page)
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert targets <= set(re.findall(r'id="([^"]+)"', page))


def test_what_the_document_has_is_text_on_the_page() -> None:
    hostile = json.loads(json.dumps(DOCUMENT).replace("search", "<script>alert(1)</script>"))
    assert "<script" not in render(hostile, "en")


def test_the_language_is_the_one_asked_for_or_accepted() -> None:
    for asked, accepted, language in (
        ("", "", "en"),
        ("ko", "en", "ko"),
        ("en", "ko", "en"),
        ("xx", "ko-KR,ko;q=0.9,en;q=0.8", "ko"),
        ("", "en-US,en;q=0.9,ko;q=0.8", "en"),
        ("", "fr;q=1, ko;q=0.2, en;q=0.1", "ko"),
        ("", "ko;q=0, en;q=0.1", "en"),
        ("", "ko;q=x,\x00,;;,q=", "en"),
        ("<script>", "*", "en"),
    ):
        assert chosen_language(asked, accepted) == language, accepted
