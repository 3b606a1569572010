"""Files that are being sent, and websockets of visitors, before a server that says who is let in."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple, cast

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from streamlit import config
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from api.body import Budget
from api.connection import STRANGER_BYTES, bounded_connections, bounded_websockets
from api.middleware import SocketGuard, UploadGuard
from component.bridge import security, service_provider
from graph.attachment import MAX_FILES
from graph.server.identity import owner_of
from graph.server.settings import Settings
from graph.service import ChatService
from tests.fake.identity_provider import COOKIE_SECRET
from tests.fake.owners import withdrawn
from tests.fake.raw_client import answer_of, close_code, connected, frame, handshake, head, websocket
from tests.fake.served_programs import Loopback
from tests.fake.sign_in import PROVIDER

LENGTH: Final = 100_000
MEGABYTE: Final = 2**20
ORIGIN: Final = str(PROVIDER["turnfold_origin"])


class Served(NamedTuple):
    port: int
    budget: Budget

    @contextmanager
    def sending(self, tab: str, length: int = LENGTH, *, sent: bytes = b"a") -> Iterator[socket.socket]:
        """Begins to send a file to a tab."""
        with connected(self.port) as connection:
            start = head("PUT", f"/_stcore/upload_file/{tab}/1", f"Content-Length: {length}", "Connection: close")
            connection.sendall(start + sent)
            yield connection

    def wait_for(self, held: int) -> None:
        deadline = time.monotonic() + 20
        while self.budget.held != held:
            assert time.monotonic() < deadline, self.budget.held
            time.sleep(0.005)


async def take(request: Request) -> Response:
    sent = await request.body()
    if sent.endswith(b"fail"):
        raise ZeroDivisionError
    return Response(status_code=204)


@contextmanager
def serving(
    most: int = 1024 * MEGABYTE, *, retained: tuple[int, int] = (0, 0), seconds: float = 20.0
) -> Iterator[Served]:
    """Serves a server without a sign-in, whose tabs keep so many files and bytes already."""
    settings, budget = Settings(_env_file=None), Budget(most)  # type: ignore[call-arg]  # the base class's own argument
    guard = Middleware(UploadGuard, lambda: settings, security, lambda _: retained, budget=budget)
    app = Starlette(routes=[Route("/_stcore/upload_file/{tab}/{id}", take, methods=["PUT"])], middleware=[guard])
    with bounded_connections(1_000, seconds=seconds), Loopback(app, lambda: None) as loopback:
        yield Served(loopback.port, budget)


def test_files_under_way_count_for_their_tab_and_give_their_places_back() -> None:
    with serving(retained=(2, 0)) as served, ExitStack() as stack:
        opened = [stack.enter_context(served.sending("a")) for _ in range(MAX_FILES - 2)]
        served.wait_for(len(opened) * LENGTH)
        with served.sending("a") as one_more:
            assert answer_of(one_more)[0] == 429
        with served.sending("b", 1) as elsewhere:
            assert answer_of(elsewhere)[0] == 204
        for connection in opened[:3]:
            connection.sendall(bytes(LENGTH - 1))
            assert answer_of(connection)[0] == 204
        for connection in opened[3:6]:
            connection.sendall(bytes(LENGTH - 5) + b"fail")
            assert answer_of(connection)[0] == 500
        for connection in opened[6:]:
            connection.close()
        served.wait_for(0)
        for _ in range(MAX_FILES):
            with served.sending("a", 1) as again:
                assert answer_of(again)[0] == 204


@pytest.mark.parametrize(
    ("most", "retained"), [(4 * MEGABYTE, 0), (1024 * MEGABYTE, 254 * MEGABYTE)], ids=["all", "retained"]
)
def test_files_under_way_count_for_all_tabs_by_their_length(most: int, retained: int) -> None:
    with serving(most, retained=(0, retained)) as served, ExitStack() as stack:
        opened = [stack.enter_context(served.sending(f"tab-{number}", MEGABYTE)) for number in range(2)]
        served.wait_for(2 * MEGABYTE)
        with served.sending("c") as one_more:
            status, answer = answer_of(one_more)
            assert (status, b"\r\nretry-after: 5\r\n" in answer) == (503, True)
        opened[0].close()
        served.wait_for(MEGABYTE)
        with served.sending("c", 1) as again:
            assert answer_of(again)[0] == 204


def test_a_file_that_does_not_end_gives_its_place_back_in_time() -> None:
    with serving(seconds=0.1) as served, served.sending("a") as slow:
        served.wait_for(LENGTH)
        answer_of(slow)
        served.wait_for(0)


def cookie(subject: str, *, secret: str = COOKIE_SECRET, origin: str = ORIGIN, **changes: Any) -> str:  # noqa: ANN401  # what a token says
    now = int(time.time())
    said = {"iss": PROVIDER["oidc_issuer"], "sub": subject, "iat": now, "exp": now + 600, **changes}
    signed = create_signed_value(secret, USER_COOKIE_NAME, json.dumps({"origin": origin, "is_logged_in": True, **said}))
    return f"Cookie: {USER_COOKIE_NAME}={signed.decode()}"


async def count(connection: WebSocket) -> None:
    await connection.accept()
    await connection.send_bytes(b"%d" % len(await connection.receive_bytes()))


@pytest.fixture
def with_sign_in(module_service: ChatService) -> Iterator[Served]:
    settings, budget = Settings(_env_file=None, **PROVIDER), Budget()  # type: ignore[call-arg]  # the base class's own argument
    guard = Middleware(SocketGuard, lambda: settings, security, seconds=0.2)
    app = Starlette(routes=[WebSocketRoute("/page", count)], middleware=[guard])
    service_provider.provide(module_service)
    config.set_option("server.cookieSecret", COOKIE_SECRET)
    try:
        with bounded_websockets(budget), Loopback(app, lambda: None) as loopback:
            yield Served(loopback.port, budget)
    finally:
        config.get_config_options(force_reparse=True)
        service_provider.provide(None)


def test_only_a_visitor_who_is_signed_in_sends_large_messages(
    with_sign_in: Served, module_service: ChatService
) -> None:
    large = frame(bytes(STRANGER_BYTES + 1))
    origin = f"Origin: {ORIGIN}"
    with websocket(with_sign_in.port, "/page", origin, cookie("minsu")) as minsu:
        minsu.sendall(large)
        assert minsu.recv(100) == b"\x82\x0565537"
    with withdrawn(module_service, owner_of(PROVIDER["oidc_issuer"], "minsu")):
        strangers = {
            "nobody": (),
            "withdrawn": (origin, cookie("minsu")),
            "forged": (origin, cookie("yeonghui", secret="x" * 32)),
            "ended": (origin, cookie("yeonghui", exp=int(time.time()) - 1)),
            "of another provider": (origin, cookie("yeonghui", iss="https://evil.example.com")),
            "of another page": ("Origin: https://evil.example.com", cookie("yeonghui")),
            "of no address": ("Origin: https://[", cookie("yeonghui")),
        }
        for name, fields in strangers.items():
            with websocket(with_sign_in.port, "/page", *fields) as stranger:
                stranger.sendall(large[:100])
                assert close_code(stranger) == 1009, name
    with_sign_in.wait_for(0)


class StuckService:
    """Checks nobody before `go_on` is set, as if its database stood still."""

    def __init__(self) -> None:
        self.checked = 0
        self.go_on = threading.Event()

    def for_owner(self, _owner: str, **_: object) -> None:
        self.checked += 1
        assert self.go_on.wait(60)


def test_a_tab_does_not_wait_for_all_others_while_the_database_stands_still(with_sign_in: Served) -> None:
    stuck = StuckService()
    service_provider.provide(cast("ChatService", stuck))
    fields = (f"Origin: {ORIGIN}", cookie("minsu"))
    with ExitStack() as stack:
        stack.callback(stuck.go_on.set)
        for _ in range(16):
            first = stack.enter_context(connected(with_sign_in.port))
            first.sendall(handshake(with_sign_in.port, "/page", *fields))
        while stuck.checked < 16:
            time.sleep(0.005)
        with websocket(with_sign_in.port, "/page", *fields) as minsu:
            minsu.sendall(frame(bytes(STRANGER_BYTES + 1)))
            assert minsu.recv(100) == b"\x82\x0565537"
        assert stuck.checked == 16
