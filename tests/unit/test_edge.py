"""The edge of the server: its log, its cookies, its connections, and what a run of the page waits for."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from api.middleware import Edge, SecurityHeaders
from api.program_routes import ProgramRoutes
from component.bridge import delivery
from graph.server.settings import Settings
from graph.service import ChatService
from tests.fake.programs import NoPrograms
from tests.fake.served_api import TOKEN


def broken(_: str) -> ChatService:
    raise ZeroDivisionError


@pytest.mark.parametrize("path", ["/v1/models", "/sessions"])
def test_the_log_names_a_failed_request_as_its_answer_does(path: str, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(_env_file=None, chat_api_token=TOKEN)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic reads the text
    client = TestClient(Starlette(routes=ProgramRoutes(broken, lambda: settings, NoPrograms).routes()))
    with caplog.at_level(logging.ERROR, "api.middleware"):
        answer = client.get(path, headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
    assert [record.getMessage() for record in caplog.records] == [f"request {answer.headers['x-request-id']} failed"]


def test_a_request_that_its_client_gave_up_leaves_without_an_answer_or_a_traceback() -> None:
    async def leave(scope: Scope, receive: Receive, send: Send) -> None:
        pass

    async def never(*_: Message) -> Message:
        raise AssertionError

    asyncio.run(Edge(leave)({"type": "http"}, never, never))  # type: ignore[arg-type]  # neither is called


BEHIND_HTTPS = {"turnfold_origin": "https://chat.example.com", "turnfold_hosts": "chat.example.com"}


def headers_of(address: str, settings: Mapping[str, object]) -> httpx2.Headers:
    def answer(_: Request) -> Response:
        response = Response()
        response.set_cookie("user", "kim; secure=no", httponly=True, samesite="lax")
        response.set_cookie("ours", "1", secure=True)
        response.delete_cookie("old")
        return response

    read = Settings(_env_file=None, **settings)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values
    guard = Middleware(SecurityHeaders, lambda: read, "default-src 'none'")
    app = Starlette(routes=[Route("/", answer)], middleware=[guard])
    return TestClient(app, base_url=address).get("/").headers


def cookies_of(address: str, settings: Mapping[str, object]) -> list[str]:
    return headers_of(address, settings).get_list("set-cookie")


def test_cookies_of_https_are_for_https_alone_and_those_of_this_computer_stay_as_they_are() -> None:
    for address, settings in (("http://chat.example.com", BEHIND_HTTPS), ("https://localhost", {})):
        cookies = cookies_of(address, settings)
        assert [cookie.partition("=")[0] for cookie in cookies] == ["user", "ours", "old"]
        assert [cookie.lower().count("; secure") for cookie in cookies] == [1, 1, 1]
        assert "HttpOnly" in cookies[0]
    assert ["Secure" in cookie for cookie in cookies_of("http://localhost:8501", {})] == [False, True, False]


@pytest.mark.parametrize(
    ("address", "settings", "told"),
    [
        ("https://chat.example.com", BEHIND_HTTPS, "max-age=31536000"),
        ("http://chat.example.com", BEHIND_HTTPS, "max-age=31536000"),  # a proxy has ended the encryption
        ("https://localhost", {}, None),
        ("http://localhost:8501", {"turnfold_origin": "http://localhost:8501"}, None),
    ],
)
def test_browsers_keep_to_https_where_the_origin_says_so_and_nowhere_else(
    address: str, settings: Mapping[str, object], told: str | None
) -> None:
    assert headers_of(address, settings).get("strict-transport-security") == told


SCRIPT = """
import resource, sys
from api.connection import room_for_connections
soft, hard = (int(word) for word in sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
room = room_for_connections()
print(room, *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard", "room"), [(256, 4_096, 3_840), (300, 300, 150)], ids=str)
def test_connections_take_what_the_system_allows_but_leave_room_for_files(soft: int, hard: int, room: int) -> None:
    words = [sys.executable, "-c", SCRIPT, str(soft), str(hard)]
    told = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    assert told.split() == [str(room), str(hard), str(hard)]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A server's loop that is late: it comes to nothing for the first 50 ms."""
    late = asyncio.new_event_loop()
    late.call_soon(time.sleep, 0.05)
    thread = threading.Thread(target=late.run_forever)
    thread.start()
    delivery.use_loop(late)
    yield late
    delivery.use_loop(None)
    late.call_soon_threadsafe(late.stop)
    thread.join()
    late.close()


def test_run_waits_until_the_loop_has_come_to_what_it_drew(loop: asyncio.AbstractEventLoop) -> None:
    taken: list[str] = []
    loop.call_soon_threadsafe(taken.append, "first")
    loop.call_soon_threadsafe(loop.call_later, 0.05, taken.append, "second")
    delivery.wait_until(lambda: len(taken) == 2)
    assert taken == ["first", "second"]


def test_run_waits_for_no_server_that_is_not_there_or_has_ended() -> None:
    delivery.wait_until(lambda: False)
    closed = asyncio.new_event_loop()
    closed.close()
    delivery.use_loop(closed)
    try:
        delivery.wait_until(lambda: False)
    finally:
        delivery.use_loop(None)
