"""One operation of the routes for programs: what serves it, where, and what the document says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel
from starlette.routing import Route

from api.body import SMALL_BODY_BYTES
from api.token_guard import ApiClient
from graph.service import ChatService

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
EVENTS: Final = "text/event-stream"
_ANY = (401, 403, 503)
_OF_A_BODY = (400, 408, 413, 415)


@dataclass(frozen=True)
class Call:
    """One request for an operation, read and checked.

    Attributes:
        service: That of the owner whose sessions the program works with.
        client: The program.
        path: The parts of the path that the operation's braces name.
        sent: The body as the operation's `body`, or the query as its `query`; None if it takes neither.
    """

    service: ChatService
    client: ApiClient
    path: Mapping[str, str]
    sent: Any

    @property
    def session_id(self) -> str:
        """The session that the path names."""
        return self.path["session_id"]


@dataclass(frozen=True)
class Operation:
    """What one method does at one address.

    Attributes:
        name: Its name in the document and in `docs_word`.
        path: From the root of the server; what stands in braces is text without a slash.
        query: What its query may have, None for nothing.
        body: The type of its body's JSON, None for none.
        body_bytes: How many its body may have, if it has no handler of its own.
        answer: The type of its answer's JSON; None for an answer without a body, `str` for lines of text.
        status: Of its answer.
        may_be_empty: Whether it may answer 204 instead.
        media_types: In which forms it answers.
        refusals: The statuses of its errors, beside those that any operation of its kind has.
        needs_token: Whether it is for programs with a token alone.
        call: Serves it, in a thread; None if it has a handler of its own.
        is_slow: Whether it waits for a model, so that quick ones wait elsewhere.
    """

    name: str
    method: Method
    path: str
    answer: Any = None
    query: type[BaseModel] | None = None
    body: Any = None
    body_bytes: int = SMALL_BODY_BYTES
    status: int = 200
    may_be_empty: bool = False
    media_types: tuple[str, ...] = ("application/json",)
    refusals: tuple[int, ...] = ()
    needs_token: bool = True
    call: Callable[[Call], Any] | None = None
    is_slow: bool = False

    @property
    def statuses(self) -> tuple[int, ...]:
        """Every status of an error that it may answer with, in order."""
        found = {*self.refusals, *(_ANY if self.needs_token else (403, 404))}
        if self.body is not None:
            found |= {*_OF_A_BODY}
        if self.query is not None:
            found |= {400}
        if self.method == "POST":
            found |= {429}
        if "{" in self.path:
            found |= {404}
        return tuple(sorted(found))


def with_slash(path: str, endpoint: Callable[..., object], methods: Iterable[str]) -> list[Route]:
    """Returns the routes to a handler, with and without a slash at the path's end."""
    return [Route(path + slash, endpoint, methods=list(methods)) for slash in ("", "/")]
