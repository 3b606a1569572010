"""Reads the body of a request: how much, for how long, how deep."""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn

import anyio
from starlette.requests import ClientDisconnect, Request

from api.problem import ProblemError, refused
from graph.core.text import plain_value

BODY_BYTES: Final = 32 * 2**20
BODY_SECONDS: Final = 30.0
JSON_DEPTH: Final = 64


async def read_body(request: Request, *, most_bytes: int = BODY_BYTES, seconds: float = BODY_SECONDS) -> bytes:
    """Returns the body, which is counted while it is read.

    Raises:
        ProblemError: 413 for one that is too large, 415 for a compressed one, 408 if it doesn't come in time.
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
                body += message.get("body", b"")
                if len(body) > most_bytes:
                    raise _too_large(most_bytes)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise refused("request_timeout", f"The body wasn't there within {seconds:g} s.", status=408) from None


def parse_object(body: bytes) -> dict[str, Any]:
    """Returns the JSON object in a body; each text in it as every database and endpoint accepts it.

    Raises:
        ProblemError: 400: no JSON, no object, a number that isn't finite, or nested too deep.
    """
    try:
        value = json.loads(body, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # bad JSON, bad UTF-8, a number of thousands of digits
        raise refused("invalid_json", "The body isn't JSON.") from None
    if not isinstance(value, dict):
        raise refused("invalid_json", "The body isn't a JSON object.")
    _check_depth(value)
    plain: dict[str, Any] = plain_value(value)
    return plain


def _check_depth(value: dict[str, Any]) -> None:
    level: list[Any] = [value]
    for _ in range(JSON_DEPTH):
        level = [
            item
            for node in level
            if isinstance(node, (dict, list))
            for item in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise _too_deep()


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError


def _too_deep() -> ProblemError:
    return refused("invalid_json", f"The body is nested deeper than {JSON_DEPTH} levels.")


def _too_large(most_bytes: int) -> ProblemError:
    return refused("request_too_large", f"The body is larger than {most_bytes} bytes.", status=413)
