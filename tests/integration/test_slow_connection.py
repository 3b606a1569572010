from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from websockets.sync.client import connect

from api.connection import bounded_connections
from graph.service import ChatService
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI
from tests.fake.raw_client import answer_of, connected, drip, head
from tests.fake.served_chat import ServedChat


@pytest.fixture(scope="module")
def served(module_service: ChatService) -> Iterator[ServedChat]:
    with bounded_connections(10, seconds=0.2), ServedChat(module_service) as opened:
        yield opened


def wait_for_closing(served: ServedChat) -> None:
    with connected(served.port) as connection:
        assert connection.recv(1) == b""


def test_a_head_that_never_ends_is_refused(served: ServedChat) -> None:
    for start in (b"P", b"POST /chat HTTP/1.1\r\nHost: localhost\r\nX-Name: "):
        with connected(served.port) as connection:
            connection.sendall(start)
            threading.Thread(target=drip, args=(connection,), daemon=True).start()
            status, answer = answer_of(connection)
        assert status == 408
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "request_timeout"
    with connected(served.port) as connection:
        connection.sendall(head("GET", "/v1/models") + b"GET /v1/models HTTP/1.1\r\nX-Name: ")
        threading.Thread(target=drip, args=(connection,), daemon=True).start()
        status, answer = answer_of(connection)
    assert status == 200
    assert b"HTTP/1.1 408 " in answer


def test_a_connection_on_which_nothing_comes_is_closed_without_a_word(served: ServedChat) -> None:
    wait_for_closing(served)


def test_a_body_that_drips_on_behind_its_answer_is_not_heard_out(served: ServedChat) -> None:
    with connected(served.port) as connection:
        connection.sendall(head("POST", "/chat", f"Content-Length: {2**30}"))
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
        assert drip(connection)
    with connected(served.port) as connection:  # no route reads it
        connection.sendall(head("GET", "/v1/models", "Content-Length: 100"))
        assert drip(connection)


def test_a_body_that_is_read_but_never_ends_is_cut_off_and_nothing_is_begun(served: ServedChat, chat: Chat) -> None:
    before = chat.service.sessions.list()
    with connected(served.port) as connection:
        connection.sendall(head("POST", "/chat", "Content-Length: 100000") + b'{"message":"')
        assert drip(connection)
    assert chat.service.sessions.list() == before


def test_a_stream_lasts_as_long_as_its_turn(served: ServedChat, chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("부분 "))
    number = chat.start(question(1))
    with served.opened("GET", f"/chat/{chat.session_id}/events") as answer:
        pieces = answer.iter_raw()
        body = next(pieces)
        while "부분".encode() not in body:
            body += next(pieces)
        for _ in range(3):
            wait_for_closing(served)
        chat.service.turns.stop(chat.session_id)
        body += b"".join(pieces)
    assert b"turn_stopped" in body
    assert body.endswith(b"data: [DONE]\n\n")
    assert chat.last_turn.number == number


def test_a_websocket_lasts_as_long_as_it_likes(served: ServedChat) -> None:
    async def echo(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text(await websocket.receive_text())

    served.app.router.routes.append(WebSocketRoute("/echo", echo))
    with connect(f"ws://127.0.0.1:{served.port}/echo") as websocket:
        for _ in range(3):
            wait_for_closing(served)
        websocket.send("안녕")
        assert websocket.recv() == "안녕"


def test_a_connection_too_many_is_refused_and_the_others_go_on(served: ServedChat) -> None:
    with ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(connected(served.port))
        with connected(served.port) as eleventh:
            status, answer = answer_of(eleventh)
            assert (status, b"server_busy" in answer, b"Retry-After: 5" in answer) == (503, True, True)
    assert served.ask("GET", "/v1/models").status == 200


def test_a_connection_that_comes_while_the_server_ends_does_not_keep_it(module_service: ChatService) -> None:
    with bounded_connections(10) as take_no_more, ServedChat(module_service) as opened:
        take_no_more()
        wait_for_closing(opened)
