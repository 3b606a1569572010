"""Closes connections whose client owes something for too long: uvicorn itself waits for it without end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from api.body import BODY_SECONDS
from api.problem import Problem

# A body that is read has a limit of its own, whose refusal comes first.
OWED_SECONDS: Final = 1.5 * BODY_SECONDS
_LATE: Final = Problem(408, "request_timeout", "The request wasn't there in time.")


@contextmanager
def bounded_connections(*, seconds: float = OWED_SECONDS) -> Iterator[None]:
    """Has every HTTP connection of this process that begins from now on closed when its client is too slow.

    It is given `seconds`, at most twice that, for a request's head, for its body, and for the rest of a body that was
    answered before its end. Streams of answers and websockets last as long as they like.
    """
    # Streamlit starts uvicorn, which has no setting for it.
    connection_made = H11Protocol.connection_made

    def watched(protocol: H11Protocol, transport: asyncio.Transport) -> None:
        connection_made(protocol, transport)
        protocol.loop.call_later(seconds, _check, protocol, None, seconds)

    H11Protocol.connection_made = watched  # type: ignore[assignment,method-assign]  # what this is for
    try:
        yield
    finally:
        H11Protocol.connection_made = connection_made  # type: ignore[method-assign]  # as it was


def _check(protocol: H11Protocol, before: RequestResponseCycle | None, seconds: float) -> None:
    """Closes the connection if nothing has changed since the last check and the client is what it waits for."""
    transport: asyncio.Transport = protocol.transport
    if transport.is_closing() or transport.get_protocol() is not protocol:  # a websocket has taken it over
        return
    cycle: RequestResponseCycle | None = protocol.cycle
    is_owed = cycle is None or cycle.response_complete or cycle.more_body
    if is_owed and cycle is before:
        _close(protocol)
    else:
        protocol.loop.call_later(seconds, _check, protocol, cycle, seconds)


def _close(protocol: H11Protocol) -> None:
    # A browser opens connections ahead: an answer to no request would be shown for its next one.
    if protocol.conn.our_state is h11.IDLE and protocol.conn.trailing_data[0]:
        protocol.transport.write(_answer())
    protocol.transport.close()


def _answer() -> bytes:
    body = json.dumps(_LATE.body()).encode()
    head = f"HTTP/1.1 {_LATE.status} Request Timeout\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
