"""Limits what clients send: request bodies by size, time, values and depth; all unfinished bytes by one budget."""

from __future__ import annotations

import json
import math
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Self, TypeVar

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request

from api.problem import Problem, ProblemError, refused
from graph.core.text import plain_value

BUDGET_BYTES: Final = 256 * 2**20
# The owner of everything sent by visitors without access.
STRANGERS: Final = ""
OVER_BUDGET: Final = Problem(
    503,
    "server_full",
    "The server has as many unfinished messages, bodies and files as it can hold. Try again in a few seconds.",
    retry_after_seconds=5,
)


class Budget:
    """Limits the bytes buffered for unfinished messages, bodies and files.

    An owner gets at most half, all strangers together a sixteenth, so that neither can starve the rest.
    """

    def __init__(self, most: int = BUDGET_BYTES) -> None:
        self._most = most
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        with self._lock:
            return self._held.total()

    def share(self, owner: str = STRANGERS) -> Share:
        return Share(self, owner)

    def change(self, owner: str, count: int) -> None:
        """Adds bytes to an owner's total; a negative count releases them.

        Raises `ProblemError` (503) over the limit; nothing has changed.
        """
        with self._lock:
            if count > max(0, self._room(owner)):
                raise ProblemError(OVER_BUDGET)
            self._held[owner] += count
            if not self._held[owner]:
                del self._held[owner]

    def room(self, owner: str) -> int:
        with self._lock:
            return self._room(owner)

    def _room(self, owner: str) -> int:
        most = self._most // (16 if owner == STRANGERS else 2)
        return min(self._most - self._held.total(), most - self._held[owner])


class Share:
    """The bytes of one message, body or file; a context manager that releases them."""

    def __init__(self, budget: Budget, owner: str) -> None:
        self._budget = budget
        self._owner = owner
        self.held = 0

    @property
    def is_of_strangers(self) -> bool:
        return self._owner == STRANGERS

    @property
    def most(self) -> int:
        return self.held + self._budget.room(self._owner)

    def hold(self, count: int) -> None:
        """Sets the number of bytes held. Raises `ProblemError` (503) over the limit; the number is unchanged."""
        self._budget.change(self._owner, count - self.held)
        self.held = count

    def give_to(self, owner: str) -> None:
        """Moves the bytes to an owner. Raises `ProblemError` (503) over this owner's limit; nothing has changed."""
        self._budget.change(owner, self.held)
        self._budget.change(self._owner, -self.held)
        self._owner = owner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hold(0)


BUDGET: Final = Budget()


_Taken = TypeVar("_Taken")
BODY_BYTES: Final = 32 * 2**20
# For bodies without messages.
SMALL_BODY_BYTES: Final = 2**20
BODY_SECONDS: Final = 30.0
JSON_DEPTH: Final = 64
# Strings, lists, objects and commas: a history of 500 messages with tools has about ten thousand. Each takes up to 230
# bytes of memory, even if it is a single byte of JSON.
JSON_PARTS: Final = 500_000
# Parsed within a few milliseconds, so without a thread.
_QUICK_BYTES: Final = 64 * 1024
# Parsing takes several times the body's bytes.
_PARSES: Final = anyio.CapacityLimiter(2)
# Matches an unterminated string, too, so that no byte is scanned twice.
_PART: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
# Matches the characters that `plain_value` replaces: an escaped NUL, and a surrogate, escaped or not.
_UNSTORABLE: Final = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])|\xed[\xa0-\xbf]")


async def read_json(
    request: Request,
    take: Callable[[dict[str, Any]], _Taken],
    *,
    most_bytes: int,
    empty: bytes = b"",
    budget: Budget = BUDGET,
) -> _Taken:
    """Reads a body and passes its JSON object to `take`, perhaps in a thread.

    Until then the body counts towards the budget.

    A body of zero bytes is read as `empty`.

    Raises:
        ProblemError: From `read_body`, `parse_object` or `take`.
        ClientDisconnect: The client left before the body was complete.
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
        ProblemError: 413 if too large, 415 if compressed, 408 if too slow, 503 if the server buffers too many bytes.
        ClientDisconnect: The client left before the body was complete.
    """
    if request.headers.get("content-encoding", "identity") != "identity":
        raise refused("unsupported_encoding", "Send the body without compression.", status=415)
    declared = request.headers.get("content-length", "0")
    is_long = len(declared.lstrip("0")) > len(str(most_bytes))
    if declared.isdecimal() and (is_long or int(declared) > most_bytes):
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
    """Parses a JSON object; replaces characters that a database or endpoint may refuse.

    Raises `ProblemError`: 400 for no JSON in UTF-8, no object, a number that isn't finite, or nesting too deep; 413 for
    too many values.
    """
    _check_shape(body)
    try:
        # In any other encoding the check of the shape could be misled by bytes that look like quotation marks.
        text = body.decode("utf-8-sig", "surrogatepass")
        value = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except ValueError:  # bad JSON, bad UTF-8, a number of thousands of digits
        raise refused("invalid_json", "The body isn't JSON.") from None
    if not isinstance(value, dict):
        raise refused("invalid_json", "The body isn't a JSON object.")
    plain: dict[str, Any] = plain_value(value) if _UNSTORABLE.search(body) else value
    return plain


def _check_shape(body: bytes | bytearray) -> None:
    """Refuses a body that would take too much memory, before it is parsed."""
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


def _too_large(most_bytes: int) -> ProblemError:
    return refused("request_too_large", f"The body is larger than {most_bytes} bytes.", status=413)
