from __future__ import annotations

import pytest
from pydantic import SecretStr
from starlette.responses import JSONResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from api.cors import Cors
from api.token_guard import Guard
from graph.api_token import ApiToken
from graph.settings import Settings
from tests.fake.programs import NoPrograms, OneProgram

CANARY = "canary-0123456789-abcdef"
NAMED = "https://notes.example,app://editor.example"


async def answered(scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"X-Turnfold-Session": "s1", "X-Turnfold-Matched": "new", "x-request-id": "req_1"}
    await JSONResponse({}, headers=headers)(scope, receive, send)


def client_of(origins: str, token: str | None = CANARY) -> TestClient:
    settings = Settings(_env_file=None, chat_api_token=token, chat_api_origins=origins)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values
    return TestClient(Cors(Guard(answered, lambda: settings, NoPrograms), lambda: settings))


def asked(origin: str, headers: str) -> dict[str, str]:
    return {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": headers,
    }


@pytest.mark.parametrize("origin", ["https://notes.example", "app://editor.example"])
def test_a_browser_is_answered_before_it_has_a_token(origin: str) -> None:
    wanted = "authorization,content-type,Last-Event-ID,x-stainless-lang,X-Stainless-Something-New, x-turnfold-session"
    unwanted = "cookie,x-evil,x-turnfold-,x-stainless-a_b,,"
    answer = client_of(NAMED).options("/v1/models", headers=asked(origin, f"{wanted},{unwanted}"))
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["access-control-allow-methods"] == "GET, POST, PUT, PATCH, DELETE"
    allowed = (
        "authorization, content-type, last-event-id, x-stainless-lang, x-stainless-something-new, x-turnfold-session"
    )
    assert answer.headers["access-control-allow-headers"] == allowed
    assert "access-control-allow-credentials" not in answer.headers
    assert "Origin" in answer.headers["vary"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://notes.example.evil.example", ""])
def test_no_other_origin_is_allowed_or_repeated(origin: str) -> None:
    client = client_of(NAMED)
    for answer in (
        client.options("/v1/models", headers=asked(origin, "authorization")),
        client.get("/v1/models", headers={"Origin": origin, "Authorization": f"Bearer {CANARY}"}),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert "Origin" in answer.headers["vary"]


@pytest.mark.parametrize(("token", "status"), [(CANARY, 200), ("wrong", 401)])
def test_a_page_may_read_answers_and_errors_with_our_headers(token: str, status: int) -> None:
    headers = {"Origin": "https://notes.example", "Authorization": f"Bearer {token}"}
    answer = client_of(NAMED).post("/v1/chat/completions", headers=headers)
    assert answer.status_code == status
    assert answer.headers["access-control-allow-origin"] == "https://notes.example"
    exposed = answer.headers["access-control-expose-headers"].split(", ")
    assert {"x-request-id", "retry-after", "location"} <= set(exposed)
    assert ("x-turnfold-session" in exposed) == (status == 200)
    assert "access-control-allow-credentials" not in answer.headers


def test_without_named_origins_nothing_is_said() -> None:
    answer = client_of("").options("/v1/models", headers=asked("https://notes.example", "authorization"))
    assert answer.status_code == 401
    assert not [name for name in answer.headers if name.startswith("access-control-") or name == "vary"]


def test_a_page_may_use_a_token_that_no_setting_names() -> None:
    settings = Settings(_env_file=None, chat_api_origins=NAMED)  # type: ignore[call-arg, arg-type]  # as above
    made = OneProgram(ApiToken("notes", "kim", SecretStr(CANARY)))
    client = TestClient(Cors(Guard(answered, lambda: settings, lambda: made), lambda: settings))
    question = client.options("/v1/models", headers=asked("https://notes.example", "authorization"))
    answer = client.get("/v1/models", headers={"Origin": "https://notes.example", "Authorization": f"Bearer {CANARY}"})
    assert (question.status_code, answer.status_code) == (204, 200)
    for told in (question, answer):
        assert told.headers["access-control-allow-origin"] == "https://notes.example"


def test_a_program_that_is_no_browser_is_told_nothing_of_origins() -> None:
    answer = client_of(NAMED).get("/v1/models", headers={"Authorization": f"Bearer {CANARY}"})
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers
