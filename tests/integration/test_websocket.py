"""Real websockets over uvicorn, whose clients send messages that they don't end; what each holds of the budget."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import threading
import time
import weakref
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NamedTuple

import pytest
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit.web.server.starlette import starlette_server
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Opcode

from api.body import Budget
from api.connection import CLICK_BYTES, SOCKET, STRANGER_BYTES, Socket, bounded_websockets
from tests.fake.raw_client import close_code, frame, websocket
from tests.fake.served_programs import Loopback

TOO_LARGE: Final = 1009
TRY_LATER: Final = 1013
REFUSED: Final = 1008
MOST: Final = 4 * 2**20
# Two of one owner, and four of two, have room.
LARGE: Final = 900 * 1024
# Of strangers four have.
SMALL: Final = frame(bytes(STRANGER_BYTES - 1024), is_last=False)


class Served(NamedTuple):
    """A server whose visitors are strangers, but for those who come to a path with `in`."""

    port: int
    budget: Budget

    def wait_for(self, least: int, most: int = MOST) -> None:
        """Waits until that many bytes are held."""
        deadline = time.monotonic() + 20
        while not least <= self.budget.held <= most:
            assert time.monotonic() < deadline, self.budget.held
            time.sleep(0.005)

    def wait_until_none_is_held(self) -> None:
        self.wait_for(0, 0)


# Of all that were opened.
SOCKETS: Final[list[weakref.ref[Socket]]] = []


async def echo(connection: WebSocket) -> None:
    SOCKETS.append(weakref.ref(connection.scope["state"][SOCKET]))
    if "in" in connection.url.path:
        connection.scope["state"][SOCKET].let_in(connection.query_params.get("owner", "kim"))
    await connection.accept()
    with suppress(WebSocketDisconnect):
        while True:
            await connection.send_bytes(b"%d" % len(await connection.receive_bytes()))


@contextmanager
def serving(
    most: int = MOST, *, seconds: float = 20.0, most_strangers: int = 50, most_of_address: int = 50
) -> Iterator[Served]:
    budget = Budget(most)
    app = Starlette(routes=[WebSocketRoute("/{path}", echo)])
    bounds = bounded_websockets(budget, seconds=seconds, most_strangers=most_strangers, most_of_address=most_of_address)
    with bounds, Loopback(app, lambda: None) as loopback:
        yield Served(loopback.port, budget)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as opened:
        yield opened


def deflated(size: int) -> bytes:
    squeeze = zlib.compressobj(wbits=-12)
    return squeeze.compress(bytes(size)) + squeeze.flush(zlib.Z_SYNC_FLUSH)


def test_the_names_that_are_needed_of_uvicorn_and_websockets_are_there() -> None:
    assert starlette_server._get_websocket_protocol() == "websockets-sansio"  # noqa: SLF001  # has no other name
    config = Config(lambda: None, ws="websockets-sansio", http="h11")
    config.load()
    assert (config.ws_protocol_class, config.http_protocol_class) == (WebSocketsSansIOProtocol, H11Protocol)
    loop = asyncio.new_event_loop()
    protocol = WebSocketsSansIOProtocol(config=config, server_state=ServerState(), app_state={}, _loop=loop)
    assert {"conn", "queue", "frames", "loop", "transport", "client", "close_sent"} <= vars(protocol).keys()
    needed = {"handle_connect", "data_received", "receive", "connection_lost", "handle_parser_exception"}
    assert needed <= vars(WebSocketsSansIOProtocol).keys()
    assert {"extensions", "max_message_size", "parser_exc", "close_sent", "reader"} <= vars(protocol.conn).keys()
    assert isinstance(protocol.conn.reader.buffer, bytearray)
    assert "ws_protocol_class" in vars(H11Protocol(config=config, server_state=ServerState(), app_state={}, _loop=loop))
    loop.close()


def test_messages_pass_as_before(served: Served) -> None:
    with websocket(served.port, "/echo") as stranger:
        for _ in range(3):
            stranger.sendall(frame(bytes(STRANGER_BYTES - 1), is_last=False) + frame(b"a", Opcode.CONT))
            assert stranger.recv(100) == b"\x82\x0565536"
    with websocket(served.port, "/in", is_compressed=True) as let_in:
        let_in.sendall(frame(deflated(LARGE)[:-4], is_compressed=True))
        let_in.sendall(frame(bytes(LARGE)) * 2)
        assert let_in.recv(1)
    served.wait_until_none_is_held()


@pytest.mark.parametrize(
    ("sent", "is_compressed", "code"),
    [
        (frame(bytes(STRANGER_BYTES + 1), is_last=False)[:20], False, TOO_LARGE),
        (frame(deflated(20_000_000), is_last=False, is_compressed=True), True, TOO_LARGE),
        (SMALL + frame(bytes(1025), Opcode.CONT)[:20], False, TOO_LARGE),
        (frame(b"", is_last=False) + frame(b"", Opcode.CONT, is_last=False) * 1_500, False, TOO_LARGE),
    ],
    ids=["said to be large", "large when decompressed", "large in parts", "empty parts"],
)
def test_a_strangers_message_that_is_too_large_is_refused(
    sent: bytes, code: int, served: Served, *, is_compressed: bool
) -> None:
    with websocket(served.port, "/echo", is_compressed=is_compressed) as stranger:
        stranger.sendall(sent)
        assert close_code(stranger) == code
    served.wait_until_none_is_held()


def test_whole_messages_that_nobody_takes_are_bounded_too(served: Served) -> None:
    with websocket(served.port, "/echo", is_compressed=True) as stranger:
        stranger.sendall(frame(deflated(STRANGER_BYTES)[:-4], is_compressed=True) * 100)
        assert close_code(stranger) == TOO_LARGE
    served.wait_until_none_is_held()


def test_strangers_have_a_small_part_together_and_leave_the_rest_to_others(served: Served) -> None:
    with ExitStack() as stack:
        strangers = [stack.enter_context(websocket(served.port, "/echo")) for _ in range(8)]
        for number, stranger in enumerate(strangers):
            stranger.sendall(SMALL)
            if number < 4:
                served.wait_for((number + 1) * (STRANGER_BYTES - 1024 - CLICK_BYTES))
            else:
                assert close_code(stranger) == TRY_LATER
        assert served.budget.held <= MOST // 16
        let_in = stack.enter_context(websocket(served.port, "/in"))
        let_in.sendall(frame(bytes(LARGE)))
        assert let_in.recv(100) == b"\x82\x06921600"
    served.wait_until_none_is_held()


@pytest.mark.parametrize("path", ["/echo", "/in"])
def test_a_click_comes_through_when_others_have_filled_the_budget(path: str) -> None:
    with serving(16 * CLICK_BYTES) as served, ExitStack() as stack:
        most = (8 if path == "/in" else 1) * CLICK_BYTES
        stack.enter_context(websocket(served.port, path)).sendall(frame(bytes(CLICK_BYTES + most - 200), is_last=False))
        served.wait_for(most - 200)
        for is_compressed in (False, True):
            visitor = stack.enter_context(websocket(served.port, path, is_compressed=is_compressed))
            click = deflated(CLICK_BYTES // 2)[:-4] if is_compressed else bytes(CLICK_BYTES // 2)
            for _ in range(3):
                visitor.sendall(frame(click, is_compressed=is_compressed))
                assert visitor.recv(100)[0] & 15 == Opcode.BINARY
            visitor.sendall(frame(bytes(2 * CLICK_BYTES)))
            assert close_code(visitor) == TRY_LATER


@pytest.mark.parametrize("kind", ["wire", "whole part", "compressed"])
def test_unfinished_messages_hold_no_more_than_the_budget_and_give_it_back(kind: str, served: Served) -> None:
    sent = {
        "wire": frame(bytes(LARGE + 1))[:-1],
        "whole part": frame(bytes(LARGE), is_last=False),
        "compressed": frame(deflated(LARGE), is_last=False, is_compressed=True),
    }[kind]
    with ExitStack() as stack:
        opened = []
        for number in range(8):  # of two owners, each of whom has half
            path = f"/in?owner={number % 2}"
            opened.append(stack.enter_context(websocket(served.port, path, is_compressed=kind == "compressed")))
            opened[-1].sendall(sent)
            if number < 4:
                served.wait_for((number + 1) * (LARGE - CLICK_BYTES))
            else:
                assert close_code(opened[-1]) == TRY_LATER
        assert served.budget.held <= MOST
        for connection in opened[:2]:  # as a network that breaks off
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    served.wait_until_none_is_held()


@pytest.mark.parametrize("path", ["/echo", "/in"])
def test_a_message_that_does_not_end_in_time_ends_its_connection(path: str) -> None:
    with serving(seconds=0.1) as served:
        for start in (frame(b"a", is_last=False), frame(b"abc")[:7], b"\x82"):
            with websocket(served.port, path) as slow:
                slow.sendall(start)
                assert close_code(slow) == REFUSED
        with websocket(served.port, path) as dripping:
            dripping.sendall(frame(b"a", is_last=False))
            thread = threading.Thread(target=drip_parts, args=(dripping,))
            thread.start()
            assert close_code(dripping) in (REFUSED, 0)  # a part that comes to a closed connection breaks it off
            thread.join()
        with websocket(served.port, path) as quick:
            for _ in range(4):
                quick.sendall(frame(b"a", is_last=False))
                quick.sendall(frame(b"b", Opcode.CONT))
                assert quick.recv(100) == b"\x82\x012"
                time.sleep(0.05)
        served.wait_until_none_is_held()


def test_what_a_client_has_sent_is_given_back_although_it_never_reads_the_answer() -> None:
    with serving(seconds=0.2) as served, websocket(served.port, "/in") as deaf:
        deaf.sendall(frame(bytes(LARGE), is_last=False))
        served.wait_for(LARGE - CLICK_BYTES)
        held = SOCKETS[-1]()
        assert held is not None
        protocol = held._protocol  # noqa: SLF001  # has no other name
        protocol.loop.call_soon_threadsafe(protocol.transport.write, bytes(20_000_000))
        protocol.loop.call_soon_threadsafe(protocol.keepalive_timeout)
        served.wait_until_none_is_held()
        assert protocol.transport.get_write_buffer_size() > 0


def drip_parts(connection: socket.socket) -> None:
    with suppress(OSError):
        for _ in range(1_000):
            connection.sendall(frame(b"a", Opcode.CONT, is_last=False))
            time.sleep(0.02)


def test_of_too_many_strangers_the_oldest_goes() -> None:
    with serving(most_strangers=4, most_of_address=2) as served, ExitStack() as stack:

        def opened(path: str, *fields: str) -> socket.socket:
            return stack.enter_context(websocket(served.port, path, *fields))

        def is_served(connection: socket.socket) -> bool:
            connection.sendall(frame(b"a"))
            return connection.recv(100) == b"\x82\x011"

        let_in = [opened("/in") for _ in range(5)]
        first, second, third = [opened("/echo") for _ in range(3)]
        assert close_code(first) == TRY_LATER
        by_proxy = [opened("/echo", "X-Forwarded-For: 192.0.2.1") for _ in range(3)]
        assert close_code(second) == TRY_LATER
        assert all(is_served(each) for each in (third, *by_proxy, *let_in))


def test_pings_whose_answers_are_not_read_end_their_connection(served: Served) -> None:
    with websocket(served.port, "/echo") as stranger:
        pings = frame(bytes(125), Opcode.PING) * 250_000
        with pytest.raises(OSError):  # noqa: PT011  # whichever tells first that it is closed
            stranger.sendall(pings)
    served.wait_until_none_is_held()


@pytest.mark.parametrize("path", ["/echo", "/in"])
def test_a_connection_that_has_ended_keeps_nothing_until_all_memory_is_searched(path: str, served: Served) -> None:
    gc.disable()
    try:
        for sent in (frame(b"a"), frame(deflated(5_000_000), is_last=False, is_compressed=True), b"\x82\x00"):
            with websocket(served.port, path, is_compressed=True) as connection:
                connection.sendall(sent)
                connection.recv(1)
            deadline = time.monotonic() + 20
            while SOCKETS[-1]() is not None:
                assert time.monotonic() < deadline, sent[:10]
                time.sleep(0.005)
    finally:
        gc.enable()
