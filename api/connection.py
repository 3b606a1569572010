"""Bounds connections in number and idle time, and ends open streams at shutdown; uvicorn does neither."""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from types import FrameType
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from api.body import BODY_SECONDS
from api.problem import Problem

# Longer than the limit for reading a body, whose refusal should come first.
OWED_SECONDS: Final = 1.5 * BODY_SECONDS
_MOST_FILES: Final = 65_536
# Reserved for databases, models and tools.
_OWN_FILES: Final = 256
_LATE: Final = Problem(408, "request_timeout", "The request wasn't there in time.")
_FULL: Final = Problem(503, "server_busy", "The server has as many connections as it can.", retry_after_seconds=5)


def room_for_connections() -> int:
    """Raises the limit of open files of this process; returns how many of them connections may use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        soft = max(soft, _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES))
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return _MOST_FILES if soft == resource.RLIM_INFINITY else max(soft - _OWN_FILES, soft // 2)


@contextmanager
def bounded_connections(most: int, *, seconds: float = OWED_SECONDS) -> Iterator[None]:
    """Bounds every connection started within this context.

    A connection over `most` is refused. A connection is closed if the server waits for the client between `seconds` and
    twice as long: for a request's head or body, or for the rest of a body answered early. Streamed answers and
    websockets have no limit.
    """
    # Streamlit starts uvicorn, which has no setting for this.
    connection_made = H11Protocol.connection_made

    def bounded(protocol: H11Protocol, transport: asyncio.Transport) -> None:
        connection_made(protocol, transport)
        if len(protocol.connections) > most:
            _end(protocol, _FULL)
        else:
            protocol.loop.call_later(seconds, _check, protocol, None, seconds)

    H11Protocol.connection_made = bounded  # type: ignore[assignment,method-assign]  # the patch itself
    try:
        yield
    finally:
        H11Protocol.connection_made = connection_made  # type: ignore[method-assign]  # restored


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
def told_of_end(on_end: Callable[[], None]) -> Iterator[None]:
    """Calls `on_end` when a signal ends the server, before the server's own handler.

    Does nothing outside the main thread, the only one that receives signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        on_end()
        if callable(handler := before[signal.Signals(number)]):
            handler(number, frame)

    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
