from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from api.host import HostCheck
from graph.settings import Settings

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


@pytest.mark.parametrize("path", ["/", "/health", "/v1/models"])
@pytest.mark.parametrize("host", ALLOWED)
def test_page_and_routes_answer_under_their_own_names(path: str, host: str) -> None:
    assert checked(turnfold_hosts=NAMED).get(path, headers=sent(host)).text == "hello"


@pytest.mark.parametrize("host", REFUSED)
def test_no_other_name_is_answered(host: str) -> None:
    page = checked(turnfold_hosts=NAMED).get("/", headers=sent(host))
    assert (page.status_code, page.headers["content-type"]) == (403, "text/plain; charset=utf-8")
    assert "TURNFOLD_HOSTS" in page.text
    door = checked(turnfold_hosts=NAMED).get("/v1/models", headers=sent(host))
    assert (door.status_code, door.json()["error"]["code"]) == (403, "host_not_allowed")


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


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8501", "http://localhost:8501"),
        ("localhost:8501", "https://localhost:8501"),
        ("127.0.0.1", "http://127.0.0.1"),
        ("chat.example.com", "https://chat.example.com"),
        ("chat.example.com:443", "https://chat.example.com"),
    ],
)
def test_a_page_of_the_server_may_ask_it(host: str, origin: str) -> None:
    client = checked(turnfold_hosts=NAMED)
    assert client.post("/", headers=sent(host, origin)).status_code == 405
    with client.websocket_connect("/_stcore/stream", headers=dict(pairs(host, origin))) as socket:
        assert socket.receive_text() == "hello"


@pytest.mark.parametrize(
    "origin",
    [
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
    ],
)
def test_a_page_of_another_site_may_not(origin: str) -> None:
    client = checked(turnfold_hosts=NAMED, chat_api_origins="https://notes.example")
    page = client.get("/", headers=sent("localhost:8501", origin))
    assert page.status_code == 403
    assert "CHAT_API_ORIGINS" in page.text
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/_stcore/stream", headers=dict(pairs("localhost:8501", origin))),
    ):
        pass


@pytest.mark.parametrize("host", ["evil.example:8501", "localhost.evil.example"])
def test_no_stream_is_opened_under_another_name(host: str) -> None:
    with (
        pytest.raises(WebSocketDisconnect),
        checked().websocket_connect("/_stcore/stream", headers=dict(pairs(host, f"http://{host}"))),
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
