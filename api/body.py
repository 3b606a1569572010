"""Reads the body of a request: how much, for how long, how many values, how deep."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request

from api.budget import BUDGET, Budget, Share
from api.problem import ProblemError, refused
from graph.core.text import plain_value

_Taken = TypeVar("_Taken")
BODY_BYTES: Final = 32 * 2**20
# Of what has no messages in it.
SMALL_BODY_BYTES: Final = 2**20
BODY_SECONDS: Final = 30.0
JSON_DEPTH: Final = 64
# Texts, lists, objects and commas: a history of 500 messages with tools has some ten thousand. Each costs up to 230
# bytes of memory, however few it takes to write.
JSON_PARTS: Final = 500_000
# One that is parsed within a few milliseconds needs no thread.
_QUICK_BYTES: Final = 64 * 1024
# A large one takes several times its bytes while it is parsed.
_PARSES: Final = anyio.CapacityLimiter(2)
# A text that doesn't end is one, too: none of its bytes is looked at twice.
_PART: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
# What `plain_value` replaces: an escaped NUL, and a surrogate, escaped or not.
_UNSTORABLE: Final = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])|\xed[\xa0-\xbf]")


async def read_json(
    request: Request,
    take: Callable[[dict[str, Any]], _Taken],
    *,
    most_bytes: int,
    empty: bytes = b"",
    budget: Budget = BUDGET,
) -> _Taken:
    """Reads a body and returns what `take` makes of its object; until then it counts towards the server's budget.

    Args:
        request: Of a program, which `request.state.client` names.
        take: Checks the object; maybe in a thread.
        most_bytes: How many the body may have.
        empty: What a body without a byte is read as.
        budget: That of the server.

    Raises:
        ProblemError: See `read_body` and `parse_object`, and what `take` raises.
        ClientDisconnect: The client left before all of it was there.
    """
    with budget.share(request.state.client.owner) as share:
        body = await read_body(request, share, most_bytes=most_bytes) or empty
        if len(body) <= _QUICK_BYTES:
            return take(parse_object(body))
        return await anyio.to_thread.run_sync(lambda: take(parse_object(body)), limiter=_PARSES)


async def read_body(
    request: Request, share: Share, *, most_bytes: int = BODY_BYTES, seconds: float = BODY_SECONDS
) -> bytearray:
    """Returns the body, which is counted while it is read.

    Raises:
        ProblemError: 413 for one that is too large, 415 for a compressed one, 408 if it doesn't come in time, 503 if
            the server holds too many bytes.
        ClientDisconnect: The client left before all of it was there.
    """
    if request.headers.get("content-encoding", "identity") != "identity":
        raise refused("unsupported_encoding", "Send the body without compression.", status=415)
    said = request.headers.get("content-length", "0")
    if said.isdecimal() and len(said.lstrip("0")) > len(str(most_bytes)):
        raise _too_large(most_bytes)
    if said.isdecimal() and int(said) > most_bytes:
        raise _too_large(most_bytes)
    body = bytearray()
    try:
        with anyio.fail_after(seconds):
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                piece = message.get("body", b"")
                if len(body) + len(piece) > most_bytes:
                    raise _too_large(most_bytes)
                share.hold(len(body) + len(piece))
                body += piece
                if not message.get("more_body", False):
                    return body
    except TimeoutError:
        raise refused("request_timeout", f"The body wasn't there within {seconds:g} s.", status=408) from None


def parse_object(body: bytes | bytearray) -> dict[str, Any]:
    """Returns the JSON object in a body; each text in it as every database and endpoint accepts it.

    Raises:
        ProblemError: 400: no JSON in UTF-8, no object, a number that isn't finite, or nested too deep; 413: too many
            values.
    """
    _check_shape(body)
    try:
        # In another encoding a byte that looks like a quotation mark need be none.
        text = body.decode("utf-8-sig", "surrogatepass")
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except ValueError:  # bad JSON, bad UTF-8, a number of thousands of digits
        raise refused("invalid_json", "The body isn't JSON.") from None
    if not isinstance(value, dict):
        raise refused("invalid_json", "The body isn't a JSON object.")
    plain: dict[str, Any] = plain_value(value) if _UNSTORABLE.search(body) else value
    return plain


def _check_shape(body: bytes | bytearray) -> None:
    """Refuses a body that would need too much memory, before any of it is parsed."""
    depth = parts = 0
    for part in _PART.finditer(body):
        sign = body[part.start()]
        if sign in b"]}":
            depth -= 1
            continue
        depth += sign in b"[{"
        parts += 1
        if depth > JSON_DEPTH:
            raise refused("invalid_json", f"The body is nested deeper than {JSON_DEPTH} levels.")
        if parts > JSON_PARTS:
            raise refused("request_too_large", f"The body has more than {JSON_PARTS:,} values.", status=413)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError


def _too_large(most_bytes: int) -> ProblemError:
    return refused("request_too_large", f"The body is larger than {most_bytes} bytes.", status=413)
