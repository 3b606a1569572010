"""Under which names, and to which sites' pages, page and routes answer; what browsers are told of other origins."""

from __future__ import annotations

import asyncio
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from api.middleware import Cors, Guard, HostCheck
from graph.server.identity import ApiToken
from graph.server.settings import Settings
from tests.fake.programs import NoPrograms, OneProgram

NAMED = "chat.example.com,192.0.2.7:8501,[2001:db8::7]"
OWN = ["localhost", "LOCALHOST:8501", "localhost.:8501", "127.0.0.1", "127.0.0.1:65535", "127.1.2.3:80", "[::1]:8501"]
ALLOWED = [*OWN, "chat.example.com", "Chat.Example.Com:8443", "192.0.2.7:8501", "[2001:db8::7]:8501"]
REFUSED = [
    "evil.example",
    "evil.example:8501",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "chat.example.com.evil.example",
    "evilchat.example.com",
    "192.0.2.7",
    "192.0.2.7:80",
    "0.0.0.0:8501",
    "2130706433",
    "[::2]",
    "localhost@evil.example",
    "localhost, evil.example",
    "localhost/evil",
    "localhost:",
    "localhost:8501:80",
    "",
    "한국",
]


def hello(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


async def stream(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


def checked(**values: object) -> TestClient:
    settings = Settings(_env_file=None, **values)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values
    routes = [Route("/v1/models", hello), Route("/{path:path}", hello), WebSocketRoute("/_stcore/stream", stream)]
    return TestClient(HostCheck(Starlette(routes=routes), lambda: settings))


def sent(host: str, *origins: str) -> list[tuple[bytes, bytes]]:
    return [(b"Host", host.encode()), *((b"Origin", origin.encode()) for origin in origins)]


def test_page_and_routes_answer_under_their_own_names_alone() -> None:
    client = checked(turnfold_hosts=NAMED)
    for host, path in zip(ALLOWED, cycle(["/", "/health", "/v1/models"])):
        assert client.get(path, headers=sent(host)).text == "hello", host
    for host in REFUSED:
        page = client.get("/", headers=sent(host))
        assert (page.status_code, page.headers["content-type"]) == (403, "text/plain; charset=utf-8"), host
        assert "TURNFOLD_HOSTS" in page.text
        http_api = client.get("/v1/models", headers=sent(host))
        assert (http_api.status_code, http_api.json()["error"]["code"]) == (403, "host_not_allowed"), host


def test_two_hosts_or_none_are_refused() -> None:
    client = checked()
    assert client.get("/", headers=[(b"Host", b"localhost"), (b"Host", b"localhost")]).status_code == 403
    assert asyncio.run(without_host(client.app)) == 403


async def without_host(app: Any) -> int:  # noqa: ANN401  # an ASGI application
    started: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        started.append(message)

    await app({"type": "http", "method": "GET", "path": "/", "headers": []}, receive, send)
    return int(started[0]["status"])


def test_a_page_of_the_server_may_ask_it_and_one_of_another_site_may_not() -> None:
    client = checked(turnfold_hosts=NAMED, chat_api_origins="https://notes.example")
    for host, origin in (
        ("localhost:8501", "http://localhost:8501"),
        ("localhost:8501", "https://localhost:8501"),
        ("127.0.0.1", "http://127.0.0.1"),
        ("chat.example.com", "https://chat.example.com"),
        ("chat.example.com:443", "https://chat.example.com"),
    ):
        assert client.post("/", headers=sent(host, origin)).status_code == 405, origin
        with client.websocket_connect("/_stcore/stream", headers=dict(pairs(host, origin))) as socket:
            assert socket.receive_text() == "hello"
    for origin in (
        "http://evil.example",
        "http://localhost:3000",
        "http://localhost",
        "http://127.0.0.1:8501",
        "https://chat.example.com",
        "https://notes.example",
        "http://localhost:8501@evil.example",
        "http://localhost:8501/",
        "file://",
        "null",
        "",
    ):
        page = client.get("/", headers=sent("localhost:8501", origin))
        assert page.status_code == 403, origin
        assert "CHAT_API_ORIGINS" in page.text
        check_no_stream(client, "localhost:8501", origin)
    for host in ("evil.example:8501", "localhost.evil.example"):
        check_no_stream(client, host, f"http://{host}")


def check_no_stream(client: TestClient, host: str, origin: str) -> None:
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/_stcore/stream", headers=dict(pairs(host, origin))),
    ):
        pass


def test_a_named_origin_may_use_the_routes_for_programs_alone() -> None:
    client = checked(chat_api_origins="https://notes.example,app://editor.example")
    for origin in ("https://notes.example", "app://editor.example"):
        assert client.get("/v1/models", headers=sent("localhost", origin)).text == "hello"
        assert client.get("/v10", headers=sent("localhost", origin)).status_code == 403
        assert client.get("/v1/models", headers=sent("evil.example", origin)).status_code == 403
        two = sent("localhost", origin, "http://evil.example")
        assert client.get("/v1/models", headers=two).status_code == 403


async def echoed(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(scope["path"])(scope, receive, send)


def echoing(**values: object) -> TestClient:
    """Answers with the path that those see who decide behind the check, the token's guard first."""
    settings = Settings(_env_file=None, chat_api_token=CANARY, **values)  # type: ignore[call-arg, arg-type]  # as above
    guard = Guard(echoed, lambda: settings, NoPrograms)

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        await (guard if scope["path"].startswith("/v1/") else echoed)(scope, receive, send)

    return TestClient(HostCheck(routed, lambda: settings), base_url="http://localhost")


@pytest.mark.parametrize("path", ["//v1/models", "///v1/models", "/v1//models", "//v1//models", "/%2Fv1/models"])
def test_a_slash_too_many_in_a_base_url_changes_nothing(path: str) -> None:
    client, address = echoing(chat_api_origins=SITES), f"http://localhost{path}"
    token = (b"Authorization", f"Bearer {CANARY}".encode())
    assert client.get(address, headers=[token]).text == "/v1/models"
    assert client.get(address).json()["error"]["code"] == "invalid_api_key"
    for host, origin, code in (
        ("localhost", "https://notes.example", ""),
        ("localhost", "https://evil.example", "origin_not_allowed"),
        ("evil.example", "https://notes.example", "host_not_allowed"),
    ):
        answer = client.get(address, headers=[token, *sent(host, origin)])
        assert answer.status_code == (403 if code else 200)
        assert not code or answer.json()["error"]["code"] == code


def test_paths_of_others_keep_their_slashes() -> None:
    client = echoing()
    for path in ("//evil.example/v1/models", "//metrics", "//v10/models", "//"):
        assert client.get(f"http://localhost{path}").text == path
    headers = {"Authorization": f"Bearer {CANARY}"}
    assert client.get("http://localhost//v1/models/a//b", headers=headers).text == "/v1/models/a//b"


def pairs(host: str, origin: str) -> list[tuple[str, str]]:
    return [("Host", host), ("Origin", origin)]


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_whatever_is_sent_is_answered_by_a_refusal(host: bytes, origin: bytes) -> None:
    client = checked()

    async def sent_as_it_is(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"host", host), (b"origin", origin)]
        await client.app({**scope, "headers": headers}, receive, send)

    assert TestClient(sent_as_it_is).get("/").status_code == 403


SIGN_IN = {
    "oidc_issuer": "https://id.example.com",
    "oidc_client_id": "turnfold",
    "oidc_client_secret": "secret",
    "turnfold_origin": "https://chat.example.com",
}
ASKED_AT = ["192.0.2.7", "0.0.0.0", "2001:db8::7", "127.0.0.1", "::1"]


@pytest.mark.parametrize("address", ASKED_AT)
@pytest.mark.parametrize("settings", [{}, {"open_without_sign_in": True}, SIGN_IN])
def test_without_a_sign_in_nobody_else_is_answered_whatever_name_is_sent(
    address: str, settings: dict[str, object]
) -> None:
    read = Settings(_env_file=None, turnfold_hosts="chat.example.com", **settings)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values
    check, told = HostCheck(Starlette(routes=[Route("/", hello)]), lambda: read), []

    async def ask() -> None:
        async def send(message: Message) -> None:
            told.append(message)

        scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
        await check({**scope, "server": (address, 8501), "query_string": b""}, receive_nothing, send)

    asyncio.run(ask())
    is_own = address in ("127.0.0.1", "::1")
    assert told[0]["status"] == (200 if is_own or settings else 403)


async def receive_nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


CANARY = "canary-0123456789-abcdef"
SITES = "https://notes.example,app://editor.example"


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


def test_a_browser_is_answered_before_it_has_a_token() -> None:
    origin = "app://editor.example"
    wanted = "authorization,content-type,Last-Event-ID,x-stainless-lang,X-Stainless-Something-New, x-turnfold-session"
    wanted += ",mcp-protocol-version"
    documented = (
        "x-session-id, x-conversation-id, x-openwebui-chat-id, x-opencode-session, x-session-affinity, idempotency-key"
    )
    library = "user-agent, openai-organization, http-referer, x-title"
    unwanted = "cookie,x-evil,x-turnfold-,x-stainless-a_b,x-session-token,,"
    answer = client_of(SITES).options(
        "/v1/models", headers=asked(origin, f"{wanted},{documented},{library},{unwanted}")
    )
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["access-control-allow-methods"] == "GET, POST, PUT, PATCH, DELETE"
    allowed = (
        "authorization, content-type, last-event-id, x-stainless-lang, x-stainless-something-new, x-turnfold-session, "
        "mcp-protocol-version"
    )
    assert answer.headers["access-control-allow-headers"] == f"{allowed}, {documented}, {library}"
    assert "access-control-allow-credentials" not in answer.headers
    assert "Origin" in answer.headers["vary"]


def test_no_other_origin_is_allowed_or_repeated() -> None:
    client = client_of(SITES)
    for origin in ("https://evil.example", "null", "https://notes.example.evil.example", ""):
        for answer in (
            client.options("/v1/models", headers=asked(origin, "authorization")),
            client.get("/v1/models", headers={"Origin": origin, "Authorization": f"Bearer {CANARY}"}),
        ):
            assert not [name for name in answer.headers if name.startswith("access-control-")]
            assert "Origin" in answer.headers["vary"]
    answer = client.get("/v1/models", headers={"Authorization": f"Bearer {CANARY}"})  # no browser
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(("token", "status"), [(CANARY, 200), ("wrong", 401)])
def test_a_page_may_read_answers_and_errors_with_our_headers(token: str, status: int) -> None:
    headers = {"Origin": "https://notes.example", "Authorization": f"Bearer {token}"}
    answer = client_of(SITES).post("/v1/chat/completions", headers=headers)
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
    settings = Settings(_env_file=None, chat_api_origins=SITES)  # type: ignore[call-arg, arg-type]  # as above
    made = OneProgram(ApiToken("notes", "kim", SecretStr(CANARY)))
    client = TestClient(Cors(Guard(answered, lambda: settings, lambda: made), lambda: settings))
    question = client.options("/v1/models", headers=asked("https://notes.example", "authorization"))
    answer = client.get("/v1/models", headers={"Origin": "https://notes.example", "Authorization": f"Bearer {CANARY}"})
    assert (question.status_code, answer.status_code) == (204, 200)
    for told in (question, answer):
        assert told.headers["access-control-allow-origin"] == "https://notes.example"
