"""Bounds connections and websockets below ASGI, and ends open streams at shutdown.

uvicorn has no setting for either: it waits for a request or a message without a time limit, and buffers the fragments
of a message until the last one arrives. The patches are tested with uvicorn 0.54 and websockets 17;
tests/integration/test_websocket.py fails if a name used here is gone.
"""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import threading
from asyncio import TimerHandle, Transport
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any, Final, NoReturn

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import PayloadTooBig
from websockets.extensions import Extension
from websockets.frames import DATA_OPCODES, CloseCode, Frame, Opcode
from websockets.http11 import Request

from api.body import BODY_SECONDS, BUDGET, OVER_BUDGET, Budget
from api.problem import Problem, ProblemError

# Longer than the limit for reading a body, whose refusal should come first.
OWED_SECONDS: Final = 1.5 * BODY_SECONDS
_MOST_FILES: Final = 65_536
# Reserved for databases, models and tools.
_OWN_FILES: Final = 256
_LATE: Final = Problem(408, "request_timeout", "The request wasn't there in time.")
_FULL: Final = Problem(503, "server_busy", "The server has as many connections as it can.", retry_after_seconds=5)


def is_by_proxy(headers: Container[str]) -> bool:
    return any(name in headers for name in _BY_PROXY)


@contextmanager
def _patched(accept: Callable[[H11Protocol, Transport], None]) -> Iterator[None]:
    """Calls `accept` with each connection made within this context: Streamlit starts uvicorn, which has no hook."""
    connection_made = H11Protocol.connection_made

    def patched(protocol: H11Protocol, transport: Transport) -> None:
        connection_made(protocol, transport)
        accept(protocol, transport)

    H11Protocol.connection_made = patched  # type: ignore[assignment,method-assign]  # the patch itself
    try:
        yield
    finally:
        H11Protocol.connection_made = connection_made  # type: ignore[method-assign]  # restored


def room_for_connections() -> int:
    """Raises the limit of open files of this process; returns how many of them connections may use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        soft = max(soft, _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES))
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return _MOST_FILES if soft == resource.RLIM_INFINITY else max(soft - _OWN_FILES, soft // 2)


@contextmanager
def bounded_connections(most: int, *, seconds: float = OWED_SECONDS) -> Iterator[Callable[[], None]]:
    """Bounds every connection started within this context.

    A connection over `most` is refused. One that the server waits for, between `seconds` and twice as long, is closed.
    Streamed answers and websockets have no limit.

    Yields:
        What is to be called when the server begins to end: connections are closed as they come from then on.
    """
    is_ending = threading.Event()

    def bound(protocol: H11Protocol, transport: Transport) -> None:
        if is_ending.is_set():
            # uvicorn closes those that it has, and waits for one that it accepted just before, such as a browser's
            # connection opened ahead, until the browser closes it.
            transport.close()
        elif len(protocol.connections) > most:
            _end(protocol, _FULL)
        else:
            protocol.loop.call_later(seconds, _check, protocol, None, seconds)

    with _patched(bound):
        yield is_ending.set


def _check(protocol: H11Protocol, before: RequestResponseCycle | None, seconds: float) -> None:
    """Closes the connection if the server is still waiting for the client as at the last check."""
    transport: asyncio.Transport = protocol.transport
    if transport.is_closing() or transport.get_protocol() is not protocol:  # a websocket has taken it over
        return
    cycle: RequestResponseCycle | None = protocol.cycle
    if not (cycle is before and (cycle is None or cycle.response_complete or cycle.more_body)):
        protocol.loop.call_later(seconds, _check, protocol, cycle, seconds)
    elif protocol.conn.our_state is h11.IDLE and protocol.conn.trailing_data[0]:
        _end(protocol, _LATE)
    else:
        # A browser opens connections ahead and would show an answer without a request for its next one.
        transport.close()


def _end(protocol: H11Protocol, problem: Problem) -> None:
    body = json.dumps(problem.body()).encode()
    lines = [
        f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *([f"Retry-After: {problem.retry_after_seconds}"] if problem.retry_after_seconds else []),
    ]
    protocol.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
    protocol.transport.close()


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def notified_of_end(*on_end: Callable[[], None]) -> Iterator[None]:
    """Calls `on_end` when a signal ends the server, before the server's own handler; only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        for act in on_end:
            act()
        if callable(handler := before[signal.Signals(number)]):
            handler(number, frame)

    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Key of the `Socket` in the "state" of a websocket's scope.
SOCKET: Final = "socket"
STRANGER_BYTES: Final = 64 * 1024
UNFINISHED_SECONDS: Final = 30.0
# Each takes about 300 KB with its compression windows.
_MOST_STRANGERS: Final = 500
_MOST_OF_ADDRESS: Final = 100
# A click or a short message is accepted even when the budget is used up: a connection itself takes more memory.
CLICK_BYTES: Final = 8 * 1024
# Memory of a fragment beside its bytes; an empty fragment takes it, too.
_PART_BYTES: Final = 100
# Limit of unread pongs in the write buffer.
_UNREAD_BYTES: Final = 2**20
# An admitted visitor's message, which may be a whole chat, gets another second for each of these bytes.
_BYTES_A_SECOND: Final = 64 * 1024
# Time for the client to read the close reason.
_PARTING_SECONDS: Final = 5.0
# With one of these headers the peer address is a proxy's.
_BY_PROXY: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


@dataclass
class _Strangers:
    """The sockets of visitors without access, oldest first; the oldest is closed to make room for a new one."""

    most: int
    most_of_address: int
    by_address: dict[Socket, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, socket: Socket, address: str) -> None:
        """Adds a socket; `address` is "" if unknown."""
        if address and self.counts[address] >= self.most_of_address:
            self._close(next(each for each, known in self.by_address.items() if known == address))
        elif len(self.by_address) >= self.most:
            self._close(next(iter(self.by_address)))
        self.by_address[socket] = address
        self.counts[address] += 1

    def remove(self, socket: Socket) -> None:
        if (address := self.by_address.pop(socket, None)) is not None:
            self.counts -= Counter({address: 1})

    def _close(self, socket: Socket) -> None:
        self.remove(socket)
        socket.close(CloseCode.TRY_AGAIN_LATER, "Too many visitors haven't signed in")


class Socket:
    """A websocket and its share of the budget. Call `let_in` once the visitor is known."""

    def __init__(
        self, protocol: WebSocketsSansIOProtocol, budget: Budget, strangers: _Strangers, *, seconds: float
    ) -> None:
        self._protocol = protocol
        self._share = budget.share()
        self._strangers = strangers
        self._seconds = seconds
        self._most_bytes = protocol.conn.max_message_size
        # Decompressed bytes of messages that the application hasn't received yet, and of the unfinished message.
        self._waiting = self._unfinished = 0
        self._since: float | None = None
        self._timer: TimerHandle | None = None
        protocol.conn.max_message_size = STRANGER_BYTES
        protocol.conn.extensions = [_Counting(self, tuple(protocol.conn.extensions))]

    def let_in(self, owner: str) -> None:
        """Raises the message limit to the server's setting; from now on the bytes count for this owner."""
        self._share.give_to(owner)
        self._protocol.conn.max_message_size = self._most_bytes
        self._strangers.remove(self)

    @property
    def room(self) -> int:
        """The limit for the next fragment, in bytes."""
        return CLICK_BYTES + self._share.most - self._waiting - self._unfinished - _PART_BYTES

    def ping(self) -> None:
        """Raises `PayloadTooBig` if the client leaves too many pongs unread."""
        if self._protocol.transport.get_write_buffer_size() > _UNREAD_BYTES:
            self.refuse(CloseCode.POLICY_VIOLATION, "The answers to pings aren't read")

    def come(self, frame: Frame) -> None:
        """Counts a fragment before anything buffers it; raises `PayloadTooBig` if the budget has no room."""
        self._unfinished += len(frame.data) + _PART_BYTES
        self._hold(self._unfinished + self._waiting)
        if frame.fin:
            self._waiting += self._unfinished
            self._unfinished, self._since = 0, None

    def received(self) -> None:
        """Counts the bytes of an incomplete fragment, and limits how long a message stays unfinished."""
        if (refusal := self._protocol.conn.parser_exc) is not None:
            refusal.with_traceback(None).__context__ = None  # it references the refused fragment
            self._leave()
            return
        unfinished = self._unfinished + len(self._protocol.conn.reader.buffer)
        try:
            self._hold(unfinished + self._waiting)
        except PayloadTooBig:
            self._answer_and_leave()
            return
        if not unfinished:
            self._since = None
        elif self._since is None:
            self._since = self._protocol.loop.time()
            self._check_after(self._seconds)

    def taken(self) -> None:
        """Releases the bytes of waiting messages once the application has received all of them."""
        if self._waiting and self._protocol.queue.empty():
            self._waiting = 0
            self._hold_fewer(self._unfinished + len(self._protocol.conn.reader.buffer))

    def close(self, code: CloseCode, reason: str) -> None:
        self._protocol.conn.fail(code, reason)
        self._answer_and_leave()

    def end(self) -> None:
        """Releases the budget and breaks reference cycles, which would otherwise wait for the garbage collector."""
        self._since = None
        if self._timer is not None:
            self._timer.cancel()
        self._share.hold(0)
        self._strangers.remove(self)
        self._protocol.conn.extensions = []
        self._protocol.scope["state"].pop(SOCKET)

    def _hold(self, count: int) -> None:
        if self._share.is_of_strangers and count > 2 * STRANGER_BYTES:
            self.refuse(CloseCode.MESSAGE_TOO_BIG, "Sign in before you send that much")
        try:
            self._share.hold(_counted(count))
        except ProblemError:
            self.refuse(CloseCode.TRY_AGAIN_LATER, OVER_BUDGET.message)

    def _hold_fewer(self, count: int) -> None:
        self._share.hold(min(self._share.held, _counted(count)))

    def refuse(self, code: CloseCode, reason: str) -> NoReturn:
        """Closes the connection with a code and a reason by `PayloadTooBig`, which websockets expects of extensions."""
        self._protocol.conn.fail(code, reason)
        raise PayloadTooBig(None, self._share.held)

    def _check_after(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = self._protocol.loop.call_later(seconds, self._check)

    def _check(self) -> None:
        self._timer = None
        if self._since is None:
            return
        if self._protocol.transport.is_closing():  # no more data arrives, and pending output may never be read
            self._drop()
            return
        seconds = self._seconds + (0 if self._share.is_of_strangers else self._share.held / _BYTES_A_SECOND)
        left = self._since + seconds - self._protocol.loop.time()
        if left > 0 or not self._protocol.transport.is_reading():  # the server has paused reading
            self._check_after(max(left, self._seconds / 10))
        else:
            self.close(CloseCode.POLICY_VIOLATION, "The message wasn't whole in time")

    def _answer_and_leave(self) -> None:
        if self._protocol.conn.close_sent is not None:  # None before the handshake is answered
            self._protocol.handle_parser_exception()
        self._leave()

    def _leave(self) -> None:
        """Drops the unfinished message and closes; a client that reads gets some seconds for the close reason."""
        self._drop()
        transport = self._protocol.transport
        transport.close()
        reads = transport.get_write_buffer_size() <= _UNREAD_BYTES
        self._protocol.loop.call_later(_PARTING_SECONDS if reads else 0, transport.abort)

    def _drop(self) -> None:
        self._protocol.frames = []
        self._protocol.conn.events_received()
        self._protocol.conn.reader.discard()
        self._since, self._unfinished = None, 0
        self._hold_fewer(self._waiting)


def _counted(count: int) -> int:
    return max(0, count - CLICK_BYTES)


class _Counting(Extension):
    """Replaces the connection's extensions: limits and counts what they decompress."""

    def __init__(self, socket: Socket, within: Sequence[Extension]) -> None:
        self._socket = socket
        self._within = within

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        """Decompresses a fragment within the room that is left, and counts it."""
        if frame.opcode is Opcode.PING:
            self._socket.ping()
        if frame.opcode not in DATA_OPCODES:
            return frame
        room = max(1, self._socket.room)  # zlib takes 0 for no limit
        try:
            for extension in reversed(self._within):
                frame = extension.decode(frame, max_size=room if max_size is None else min(room, max_size))
        except PayloadTooBig:
            if max_size is None or room < max_size:
                self._socket.refuse(CloseCode.TRY_AGAIN_LATER, OVER_BUDGET.message)
            raise
        self._socket.come(frame)
        return frame

    def encode(self, frame: Frame) -> Frame:
        for extension in self._within:
            frame = extension.encode(frame)
        return frame


class _BoundedProtocol(WebSocketsSansIOProtocol):
    """uvicorn's websocket protocol, which reports everything received to a `Socket`."""

    def __init__(self, bounds: Callable[[WebSocketsSansIOProtocol], Socket], **given: Any) -> None:  # noqa: ANN401  # uvicorn's arguments
        super().__init__(**given)
        self._bounds = bounds
        self._socket: Socket | None = None

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:  # set if the handshake failed
            self._socket = self.scope["state"][SOCKET] = self._bounds(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._socket is not None:
            self._socket.received()

    async def receive(self) -> Any:  # noqa: ANN401  # its types are uvicorn's own
        message = await super().receive()
        if self._socket is not None:
            self._socket.taken()
        return message

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._socket is not None:
            self._socket.end()
            self._socket = None


@contextmanager
def bounded_websockets(
    budget: Budget = BUDGET,
    *,
    seconds: float = UNFINISHED_SECONDS,
    most_strangers: int = _MOST_STRANGERS,
    most_of_address: int = _MOST_OF_ADDRESS,
) -> Iterator[None]:
    """Bounds every websocket whose connection starts within this context.

    A message counts towards the budget until the application receives it: the bytes on the wire, the decompressed
    bytes, and a constant for each fragment; the first 8 KiB of each connection are free. A message unfinished after
    `seconds` closes the connection. `most_of_address` isn't applied behind a proxy.
    """
    strangers = _Strangers(most_strangers, most_of_address)

    def bound(protocol: WebSocketsSansIOProtocol) -> Socket:
        socket = Socket(protocol, budget, strangers, seconds=seconds)
        client = None if is_by_proxy(protocol.request.headers) else protocol.client
        strangers.add(socket, client[0] if client else "")
        return socket

    def choose(protocol: H11Protocol, _: Transport) -> None:
        # uvicorn has chosen its protocol classes before this code runs.
        protocol.ws_protocol_class = partial(_BoundedProtocol, bound)  # type: ignore[assignment]  # uvicorn calls it, no more

    with _patched(choose):
        yield
