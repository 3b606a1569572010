"""Bounds websockets: what an unfinished message holds and for how long, and how many visitors nobody has let in.

uvicorn keeps the parts of a message until its last one is there, waits for that without end, and has no setting for
either. What is changed of it here was tried with uvicorn 0.54 and websockets 17; tests/integration/test_websocket.py
says so if a name that it needs is gone.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NoReturn

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import PayloadTooBig
from websockets.extensions import Extension
from websockets.frames import DATA_OPCODES, CloseCode, Frame, Opcode
from websockets.http11 import Request

from api.budget import BUDGET, OVER_BUDGET, Budget
from api.problem import ProblemError

# Under which name the "state" in a websocket's scope has its `Socket`.
SOCKET: Final = "socket"
STRANGER_BYTES: Final = 64 * 1024
UNFINISHED_SECONDS: Final = 30.0
# With the windows of its compression each takes some 300 KB.
_MOST_STRANGERS: Final = 500
_MOST_OF_ADDRESS: Final = 100
# A click or a short message, which has room even when the budget has none: a connection itself takes more.
CLICK_BYTES: Final = 8 * 1024
# What a part of a message takes beside its bytes, an empty one, too.
_PART_BYTES: Final = 100
# So much of the answers to its pings a client may leave unread.
_UNREAD_BYTES: Final = 2**20
# For each of these bytes the message of a visitor who is let in may take a second more: it may be a whole chat.
_BYTES_A_SECOND: Final = 64 * 1024
# How long a client may take to read why its connection is closed.
_PARTING_SECONDS: Final = 5.0
# What a proxy says of whom it asks for: then the address of the connection is its own.
_BY_PROXY: Final = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


@dataclass
class _Strangers:
    """The sockets of visitors whom nobody has let in, the oldest first.

    The oldest makes room for a new one, as whoever signs in needs his for some seconds alone.
    """

    most: int
    most_of_address: int
    by_address: dict[Socket, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, socket: Socket, address: str) -> None:
        """Adds one; address "" for one that isn't known."""
        if address and self.counts[address] >= self.most_of_address:
            self._close(next(each for each, known in self.by_address.items() if known == address))
        elif len(self.by_address) >= self.most:
            self._close(next(iter(self.by_address)))
        self.by_address[socket] = address
        self.counts[address] += 1

    def remove(self, socket: Socket) -> None:
        """Removes one, if it is there."""
        if (address := self.by_address.pop(socket, None)) is not None:
            self.counts -= Counter({address: 1})

    def _close(self, socket: Socket) -> None:
        self.remove(socket)
        socket.close(CloseCode.TRY_AGAIN_LATER, "Too many visitors haven't signed in")


class Socket:
    """One websocket: what it holds of the budget. Whoever knows its visitor says `let_in`."""

    def __init__(
        self, protocol: WebSocketsSansIOProtocol, budget: Budget, strangers: _Strangers, *, seconds: float
    ) -> None:
        self._protocol = protocol
        self._share = budget.share()
        self._strangers = strangers
        self._seconds = seconds
        self._most_bytes = protocol.conn.max_message_size
        # Of messages that the application hasn't taken, and of the one that isn't whole, decompressed.
        self._waiting = self._unfinished = 0
        self._since: float | None = None
        self._timer: TimerHandle | None = None
        protocol.conn.max_message_size = STRANGER_BYTES
        protocol.conn.extensions = [_Counting(self, tuple(protocol.conn.extensions))]

    def let_in(self, owner: str) -> None:
        """Takes messages as large as the server's setting says; from now on they count for this owner."""
        self._share.give_to(owner)
        self._protocol.conn.max_message_size = self._most_bytes
        self._strangers.remove(self)

    @property
    def room(self) -> int:
        """How many bytes a further part may have."""
        return CLICK_BYTES + self._share.most - self._waiting - self._unfinished - _PART_BYTES

    def ping(self) -> None:
        """Refuses the pings of a client that doesn't read their answers.

        Raises:
            PayloadTooBig: It doesn't; `received` closes the connection.
        """
        if self._protocol.transport.get_write_buffer_size() > _UNREAD_BYTES:
            self.refuse(CloseCode.POLICY_VIOLATION, "The answers to pings aren't read")

    def come(self, frame: Frame) -> None:
        """Counts a part of a message before anything keeps it.

        Raises:
            PayloadTooBig: There is no room for it; `received` closes the connection.
        """
        self._unfinished += len(frame.data) + _PART_BYTES
        self._hold(self._unfinished + self._waiting)
        if frame.fin:
            self._waiting += self._unfinished
            self._unfinished, self._since = 0, None

    def received(self) -> None:
        """Counts what has come of a part that isn't whole, and bounds how long a message stays unfinished."""
        if (refusal := self._protocol.conn.parser_exc) is not None:
            refusal.with_traceback(None).__context__ = None  # it holds the part that there was no room for
            self._leave()
            return
        unfinished = self._unfinished + len(self._protocol.conn.reader.buffer)
        try:
            self._hold(unfinished + self._waiting)
        except PayloadTooBig:
            self._tell_and_leave()
            return
        if not unfinished:
            self._since = None
        elif self._since is None:
            self._since = self._protocol.loop.time()
            self._check_after(self._seconds)

    def taken(self) -> None:
        """Counts what waited for the application as gone, once it has taken all of it."""
        if self._waiting and self._protocol.queue.empty():
            self._waiting = 0
            self._hold_fewer(self._unfinished + len(self._protocol.conn.reader.buffer))

    def close(self, code: CloseCode, reason: str) -> None:
        """Closes the connection and says why."""
        self._protocol.conn.fail(code, reason)
        self._tell_and_leave()

    def end(self) -> None:
        """Gives back what it holds, for good: what held each other would stay until all memory is searched."""
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
        """Has a part of a message refused, saying why.

        Raises:
            PayloadTooBig: That is how websockets is told of it.
        """
        self._protocol.conn.fail(code, reason)
        raise PayloadTooBig(None, self._share.held)

    def _check_after(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = self._protocol.loop.call_later(seconds, self._check)

    def _check(self) -> None:
        """Closes the connection if a message isn't whole in time."""
        self._timer = None
        if self._since is None:
            return
        if self._protocol.transport.is_closing():  # the rest won't come; the answers may never be read
            self._drop()
            return
        seconds = self._seconds + (0 if self._share.is_of_strangers else self._share.held / _BYTES_A_SECOND)
        left = self._since + seconds - self._protocol.loop.time()
        if left > 0 or not self._protocol.transport.is_reading():  # it is the server that lets the client wait
            self._check_after(max(left, self._seconds / 10))
        else:
            self.close(CloseCode.POLICY_VIOLATION, "The message wasn't whole in time")

    def _tell_and_leave(self) -> None:
        if self._protocol.conn.close_sent is not None:  # else the handshake isn't answered yet
            self._protocol.handle_parser_exception()
        self._leave()

    def _leave(self) -> None:
        """Keeps nothing more; a client that reads has some seconds for reading why."""
        self._drop()
        transport = self._protocol.transport
        transport.close()
        reads = transport.get_write_buffer_size() <= _UNREAD_BYTES
        self._protocol.loop.call_later(_PARTING_SECONDS if reads else 0, transport.abort)

    def _drop(self) -> None:
        """Keeps nothing of a message that isn't whole."""
        self._protocol.frames = []
        self._protocol.conn.events_received()
        self._protocol.conn.reader.discard()
        self._since, self._unfinished = None, 0
        self._hold_fewer(self._waiting)


def _counted(count: int) -> int:
    return max(0, count - CLICK_BYTES)


class _Counting(Extension):
    """Stands in the place of all extensions: counts what they make of what comes, which is no more than has room."""

    def __init__(self, socket: Socket, within: Sequence[Extension]) -> None:
        self._socket = socket
        self._within = within

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        """Counts a part of a message as it is decompressed."""
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
        """Passes on what is sent, compressed."""
        for extension in self._within:
            frame = extension.encode(frame)
        return frame


class _BoundedProtocol(WebSocketsSansIOProtocol):
    """uvicorn's websocket, with a `Socket` that is told of all that comes."""

    def __init__(self, bounds: Callable[[WebSocketsSansIOProtocol], Socket], **given: Any) -> None:  # noqa: ANN401  # what uvicorn gives
        super().__init__(**given)
        self._bounds = bounds
        self._socket: Socket | None = None

    def handle_connect(self, event: Request) -> None:
        """Bounds what comes from now on."""
        super().handle_connect(event)
        if not self.close_sent:  # else it was no handshake
            self._socket = self.scope["state"][SOCKET] = self._bounds(self)

    def data_received(self, data: bytes) -> None:
        """Counts what came and isn't whole."""
        super().data_received(data)
        if self._socket is not None:
            self._socket.received()

    async def receive(self) -> Any:  # noqa: ANN401  # its types are uvicorn's own
        """Counts what the application takes."""
        message = await super().receive()
        if self._socket is not None:
            self._socket.taken()
        return message

    def connection_lost(self, exc: Exception | None) -> None:
        """Gives back what was held."""
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
    """Bounds every websocket of this process on a connection that begins from now on.

    What has come of a message counts towards the budget until the application takes it: the bytes on the wire, what
    they become decompressed, and each of its parts, an empty one, too; but for the first 8 KiB of each connection. A
    message that isn't whole after `seconds` ends its connection. Until `Socket.let_in` is called, a message may have
    64 KiB.

    Args:
        budget: That of the server.
        seconds: How long a message may take.
        most_strangers: How many connections there are of visitors who aren't let in.
        most_of_address: How many of these come from one address, where no proxy stands in front.
    """
    strangers = _Strangers(most_strangers, most_of_address)
    connection_made = H11Protocol.connection_made

    def bound(protocol: WebSocketsSansIOProtocol) -> Socket:
        socket = Socket(protocol, budget, strangers, seconds=seconds)
        is_by_proxy = any(name in protocol.request.headers for name in _BY_PROXY)
        strangers.add(socket, "" if is_by_proxy or protocol.client is None else protocol.client[0])
        return socket

    def bounded(protocol: H11Protocol, transport: Transport) -> None:
        connection_made(protocol, transport)
        protocol.ws_protocol_class = partial(_BoundedProtocol, bound)  # type: ignore[assignment]  # uvicorn calls it, no more

    # Streamlit starts uvicorn, which has chosen its protocols before this can say a word.
    H11Protocol.connection_made = bounded  # type: ignore[assignment,method-assign]  # what this is for
    try:
        yield
    finally:
        H11Protocol.connection_made = connection_made  # type: ignore[method-assign]  # as it was
