from __future__ import annotations

import logging

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from api.program_routes import ProgramRoutes
from graph.service import ChatService
from graph.settings import Settings
from tests.fake.programs import NoPrograms
from tests.fake.served_door import TOKEN


def broken(_: str) -> ChatService:
    raise ZeroDivisionError


@pytest.mark.parametrize("path", ["/v1/models", "/sessions"])
def test_the_log_names_a_failed_request_as_its_answer_does(path: str, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(_env_file=None, chat_api_token=TOKEN)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic reads the text
    client = TestClient(Starlette(routes=ProgramRoutes(broken, lambda: settings, NoPrograms).routes()))
    with caplog.at_level(logging.ERROR, "api.edge"):
        answer = client.get(path, headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
    assert [record.getMessage() for record in caplog.records] == [f"request {answer.headers['x-request-id']} failed"]
