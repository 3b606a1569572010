"""A server that runs as a child process and speaks over its standard input and output, line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol

import anyio
import anyio.lowlevel
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

from graph.mcp.config import ServerConfig

_END_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.01
_ERROR_CHARS: Final = 4_000
_SKIPPED_MESSAGES: Final = 8
_FromServer = MemoryObjectReceiveStream[SessionMessage | Exception]
_ToSession = MemoryObjectSendStream[SessionMessage | Exception]
_FromSession = MemoryObjectReceiveStream[SessionMessage]
_ToServer = MemoryObjectSendStream[SessionMessage]


class Listener(Protocol):
    """Hears what happens below the protocol."""

    def hear_error(self, line: str) -> None:
        """A line of the standard error."""

    def hear_too_large(self) -> None:
        """A message was over the bound and isn't delivered."""

    def hear_end(self, reason: str = "") -> None:
        """Nothing comes any more; `reason` is given if that isn't the server's own doing."""


@asynccontextmanager
async def open_process(
    config: ServerConfig, listener: Listener, *, most_bytes: int
) -> AsyncIterator[tuple[_FromServer, _ToServer]]:
    """Starts a server and yields its streams; at the end closes its input, then ends its whole process group.

    The library's own transport reads lines of any length, writes what it can't read to the log, and leaves children
    of a server that ends by itself.

    Raises `OSError`: the command can't be started.
    """
    process = await anyio.open_process(
        [config.command, *config.args], env=get_default_environment() | dict(config.env), start_new_session=True
    )
    # From here on no await until the block that ends the process: a cancellation would leave it running.
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks, to_session, from_server, to_server, from_session:
        try:
            tasks.start_soon(_read, process, to_session, listener, most_bytes)
            tasks.start_soon(_write, process, from_session)
            tasks.start_soon(_read_errors, process, listener)
            yield from_server, to_server
        finally:
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()  # for the readers to leave the pipes
                await _end(process, listener)


async def _read(
    process: Process,
    to_session: _ToSession,
    listener: Listener,
    most_bytes: int,
) -> None:
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    try:
        async for line in _lines(process.stdout, listener, most_bytes):
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except (ValidationError, ValueError):
                continue  # some servers print greetings
            await to_session.send(SessionMessage(message))
    except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        pass
    finally:
        to_session.close()
        listener.hear_end()


async def _lines(stream: ByteReceiveStream, listener: Listener, most_bytes: int) -> AsyncIterator[bytes]:
    """Yields the lines of a stream; one over the bound is skipped, and ends the stream if it doesn't end soon."""
    parts: list[bytes] = []
    size = 0
    async for chunk in stream:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if size + len(end) <= most_bytes:
                yield b"".join((*parts, end))
            elif size <= most_bytes:
                listener.hear_too_large()
            parts, size = [], 0
        if size <= most_bytes < size + len(rest):
            listener.hear_too_large()
            parts = []
        size += len(rest)
        if size > _SKIPPED_MESSAGES * most_bytes:
            listener.hear_end("the server sent a message without end")
            return
        if rest and size <= most_bytes:
            parts.append(rest)


async def _write(process: Process, from_session: _FromSession) -> None:
    assert process.stdin is not None  # noqa: S101 - a pipe was asked for
    # A server that is gone is noticed by its output, which ends too.
    with suppress(OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        async for sent in from_session:
            line = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
            await process.stdin.send(line.encode("utf-8", "replace") + b"\n")


async def _read_errors(process: Process, listener: Listener) -> None:
    assert process.stderr is not None  # noqa: S101 - a pipe was asked for
    line = b""
    with suppress(OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        async for chunk in process.stderr:
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                listener.hear_error((line + end)[:_ERROR_CHARS].decode("utf-8", "replace"))
                line = b""
            line = (line + rest)[:_ERROR_CHARS]
    if line:
        listener.hear_error(line.decode("utf-8", "replace"))


async def _end(process: Process, listener: Listener) -> None:
    """Closes the input, gives the server a moment, then ends it with all that it started."""
    assert process.stdin is not None  # noqa: S101 - a pipe was asked for
    async with anyio.create_task_group() as readers:
        # A server that can't write doesn't end, and its last words may tell why it ends.
        readers.start_soon(_drain, process)
        readers.start_soon(_read_errors, process, listener)
        with suppress(OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            await process.stdin.aclose()
        with anyio.move_on_after(_END_SECONDS):
            # process.wait() would also wait for children that hold the pipes.
            while process.returncode is None:  # noqa: ASYNC110 - a process sets no event
                await anyio.sleep(_POLL_SECONDS)
        await terminate_posix_process_tree(process, _END_SECONDS)
        with anyio.move_on_after(_END_SECONDS):
            await process.wait()
        readers.cancel_scope.cancel()


async def _drain(process: Process) -> None:
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    with suppress(OSError, anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while True:
            await process.stdout.receive()
