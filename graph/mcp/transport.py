"""The two ways to a server, with bounds on what it sends: a child process, and streamable HTTP."""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import httpx2
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage, jsonrpc_message_adapter

from graph.core.text import plain_value
from graph.mcp.config import ServerConfig
from graph.value.mcp import Failure

if TYPE_CHECKING:
    from graph.mcp.connection import Connection

_END_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.01
_ERROR_CHARS: Final = 4_000
_SKIPPED_MESSAGES: Final = 8
_TOO_LARGE: Final = "the body is too large"
_HTTP_SECONDS: Final = 30.0
_UNITS_PER_SECOND: Final = 1_000
_UNIT_BYTES: Final = 16 * 1024
_BURST_SECONDS: Final = 2.0
# A text costs one, what begins an object or a list or goes on with it two: 50,000 named values, or 20,000 parts of a
# result, which are parsed in 0.1 s.
_MOST_COST: Final = 200_000
_MOST_DEPTH: Final = 300
_QUICK_BYTES: Final = 16 * 1024
# No parser here reads a longer number, so that the message would be lost, and its call wait for silence.
_MOST_DIGITS: Final = 4_000
# A text, also one whose end is still to come, a bracket or comma, too long a number or what may become one, or the
# empty line behind an event. No text has a line break, so that a quotation mark outside of JSON hides nothing of what
# follows.
_MARK: Final = re.compile(
    rb'"(?:[^"\\\r\n]++|\\[^\r\n])*+(?:"|(\\?)\Z)?|[\[\]{},]|(?<![0-9])(?:[0-9]{%d,}+|[0-9]++\Z)|(?:\r\n?+|\n){2}'
    % (_MOST_DIGITS + 1)
)
_in_thread: Final = anyio.to_thread.run_sync
_GONE: Final = (OSError, anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError)
_FromServer = MemoryObjectReceiveStream[SessionMessage | Exception]
_ToSession = MemoryObjectSendStream[SessionMessage | Exception]
_FromSession = MemoryObjectReceiveStream[SessionMessage]
_ToServer = MemoryObjectSendStream[SessionMessage]


class Pace:
    """Slows a server that never stops talking, by not reading on: up to 1,000 messages or 16 MB a second are free."""

    def __init__(self) -> None:
        self._paid_until = 0.0

    async def pay(self, size: int) -> None:
        now = anyio.current_time()
        cost = (1 + size / _UNIT_BYTES) / _UNITS_PER_SECOND
        self._paid_until = max(self._paid_until, now - _BURST_SECONDS) + cost
        await anyio.sleep(max(self._paid_until - now, 0))


class Shape:
    """Counts what a message of JSON has, and how deep it lies, while its bytes come: nothing is parsed yet."""

    def __init__(self, *, is_events: bool = False) -> None:
        self._is_events = is_events
        self._cost = self._depth = 0
        self._rest = b""

    def take(self, piece: bytes) -> bool:
        """Returns whether the message is within the bounds, this piece included."""
        piece = self._rest + piece
        self._rest = piece[-1:] if self._is_events and piece.endswith((b"\r", b"\n")) else b""
        for mark in _MARK.finditer(piece):
            sign = piece[mark.start() : mark.start() + 1]
            if sign in b"\r\n":
                if self._is_events:
                    self._cost = self._depth = 0
                continue
            if sign == b'"':
                self._cost += 1
                self._rest = self._rest if mark[1] is None else sign + mark[1]
            elif sign.isdigit():
                self._rest = mark[0]
                if len(self._rest) > _MOST_DIGITS:
                    return False
            else:
                self._cost += 2 * (sign not in b"]}")
                self._depth += (sign in b"[{") - (sign in b"]}")
            if self._cost > _MOST_COST or self._depth > _MOST_DEPTH:
                return False
        return True


@asynccontextmanager
async def open_process(
    config: ServerConfig, listener: Connection, *, most_bytes: int
) -> AsyncIterator[tuple[_FromServer, _ToServer]]:
    """Starts a server and yields its streams; at the end closes its input, then ends its whole process group.

    The library's own transport reads lines of any length, writes what it can't read to the log, and leaves children
    of a server that ends by itself.

    Raises `OSError`: the command can't be started.
    """
    process = await anyio.open_process(
        [config.command, *config.args], env=get_default_environment() | dict(config.env), start_new_session=True
    )
    assert process.stdin and process.stdout and process.stderr  # noqa: PT018, S101 - pipes were asked for
    try:
        to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks, to_session, from_server, to_server, from_session:
            tasks.start_soon(_read, process.stdout, to_session, listener, most_bytes)
            tasks.start_soon(_write, process.stdin, from_session)
            tasks.start_soon(_read_errors, process.stderr, listener)
            yield from_server, to_server
            tasks.cancel_scope.cancel()
    finally:
        # Once the readers have left the pipes: two at once would wait for ever.
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as readers:
                # A server that can't write doesn't end, and its last words may tell why it ends.
                readers.start_soon(_drain, process.stdout)
                readers.start_soon(_read_errors, process.stderr, listener)
                await _end(process, process.stdin)
                # What it wrote last is read to its end, or the pipes would stay open.
                readers.cancel_scope.deadline = anyio.current_time() + _END_SECONDS


async def _read(output: ByteReceiveStream, to_session: _ToSession, listener: Connection, most_bytes: int) -> None:
    pace = Pace()
    with suppress(*_GONE), closing(to_session):
        async for line in _lines(output, listener, most_bytes):
            await pace.pay(len(line))
            message = _message_of(line) if len(line) <= _QUICK_BYTES else await _in_thread(_message_of, line)
            if message is not None:  # some servers print greetings
                await to_session.send(SessionMessage(message))
    listener.hear_end()


def _message_of(line: bytes) -> JSONRPCMessage | None:
    with suppress(ValueError):
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    # That refuses half of an emoji, which a text that is cut at some length may end with.
    with suppress(ValueError, RecursionError):
        return jsonrpc_message_adapter.validate_python(plain_value(json.loads(line.decode())), by_name=False)
    return None


async def _lines(stream: ByteReceiveStream, listener: Connection, most_bytes: int) -> AsyncIterator[bytes]:
    """Yields the lines of a stream; one over a bound is skipped, and ends the stream if it doesn't end soon."""
    parts: list[bytes] = []
    size, shape, is_kept = 0, Shape(), True
    async for chunk in stream:
        pieces = chunk.split(b"\n")
        for number, piece in enumerate(pieces, start=1):
            size += len(piece)
            if is_kept and (size > most_bytes or not shape.take(piece)):
                listener.hear_too_large()
                is_kept, parts = False, []
            if is_kept:
                parts.append(piece)
            if number < len(pieces):
                if is_kept:
                    yield b"".join(parts)
                parts, size, shape, is_kept = [], 0, Shape(), True
        if size > _SKIPPED_MESSAGES * most_bytes:
            listener.hear_end(Failure("too_large", f"{_SKIPPED_MESSAGES * most_bytes / 1024**2:g}"))
            return


async def _write(to_server: ByteSendStream, from_session: _FromSession) -> None:
    # A server that is gone is noticed by its output, which ends too.
    with suppress(*_GONE):
        async for sent in from_session:
            line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
            await to_server.send(line.encode("utf-8", "replace") + b"\n")


async def _read_errors(errors: ByteReceiveStream, listener: Connection) -> None:
    line = b""
    with suppress(*_GONE):
        async for chunk in errors:
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                listener.hear_error((line + end)[:_ERROR_CHARS].decode("utf-8", "replace"))
                line = b""
            line = (line + rest)[:_ERROR_CHARS]
    if line:
        listener.hear_error(line.decode("utf-8", "replace"))


async def _end(process: Process, to_server: ByteSendStream) -> None:
    """Closes the input, gives the server a moment, then ends it with all that it started."""
    with suppress(*_GONE):
        await to_server.aclose()
    with anyio.move_on_after(_END_SECONDS):
        # process.wait() would also wait for children that hold the pipes.
        while process.returncode is None:  # noqa: ASYNC110 - a process sets no event
            await anyio.sleep(_POLL_SECONDS)
    await terminate_posix_process_tree(process, _END_SECONDS)
    with anyio.move_on_after(_END_SECONDS):
        await process.wait()


async def _drain(output: ByteReceiveStream) -> None:
    with suppress(*_GONE):
        async for _ in output:
            pass


@asynccontextmanager
async def open_url(config: ServerConfig, listener: Connection, *, most_bytes: int) -> AsyncIterator[Any]:
    """Yields the streams of a server behind a URL; bodies are bounded, those of events one by one."""
    pace = Pace()

    async def bound(response: httpx2.Response) -> None:
        is_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        most = math.inf if is_events else most_bytes
        # Compressed, a small body may be a huge one: none was asked for.
        most = 0 if response.headers.get("content-encoding", "identity") != "identity" else most
        response.encoding = "utf-8"  # what is counted is what is read
        response.stream = _BoundedStream(response.stream, listener, pace, most, Shape(is_events=is_events))

    async with (
        httpx2.AsyncClient(
            headers={**config.headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(_HTTP_SECONDS, read=None),
            event_hooks={"response": [bound]},
        ) as http,
        # A goodbye would be waited for without end.
        streamable_http_client(
            config.url, http_client=http, terminate_on_close=False, max_sse_event_size=most_bytes
        ) as streams,
    ):
        yield streams


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that ends with an error where it is too large."""

    def __init__(self, stream: Any, listener: Connection, pace: Pace, most_bytes: float, shape: Shape) -> None:  # noqa: ANN401 - httpx's union of streams
        self._stream = stream
        self._listener = listener
        self._pace = pace
        self._most_bytes = most_bytes
        self._shape = shape

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._most_bytes or not self._shape.take(chunk):
                self._listener.hear_too_large()
                raise httpx2.StreamError(_TOO_LARGE)
            await self._pace.pay(len(chunk))
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
