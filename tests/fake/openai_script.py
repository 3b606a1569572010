"""Matches scripted replies with requests, and reports replies that were not used."""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fake.openai_reply import Body, Reply, describe
from tests.fake.openai_responder import Kind, asked_in

Responder = Callable[[Body], Reply]
Scripted = Reply | Responder


class UnusedReplyError(AssertionError):
    """A test has scripted a reply that no request came for."""


@dataclass
class Exchange:
    """One request and how it was answered; `is_closed_early` if the client left before the whole reply was sent."""

    kind: Kind
    body: Body
    headers: dict[str, str]
    sent: bytes
    started_at: float = field(default_factory=time.monotonic)
    finished_at: float | None = None
    is_hanging: bool = False
    is_finished: bool = False
    is_closed_early: bool = False


@dataclass
class Script:
    """Replies for the next requests of one kind, in order.

    Attributes:
        to: Words that the request's last user message holds; "" fits any.
        may_stay: A reply may be left over.
        script_line: File and line that scripted it.
        exchanges: The requests that have come for these replies.
    """

    kind: Kind
    to: str
    may_stay: bool
    script_line: str
    replies: deque[Scripted]
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def is_asked_for(self) -> bool:
        """A request has come for the first reply."""
        return bool(self.exchanges)

    def is_for(self, exchange: Exchange) -> bool:
        return bool(self.replies) and exchange.kind == self.kind and self.to in asked_in(exchange.body)

    @property
    def left_over(self) -> str:
        """The sentence for what is left, "" for nothing."""
        if self.may_stay or not self.replies:
            return ""
        came = len(self.exchanges)
        whom = f" that say {self.to!r}" if self.to else ""
        next_one = describe(self.replies[0]) if isinstance(self.replies[0], Reply) else "made of its request"
        return (
            f"{self.script_line} scripted {came + len(self.replies)} replies for {self.kind} requests{whom}, "
            f"but only {came} came. The next reply is {next_one}."
        )


class Scripts:
    """All replies scripted by one test; with `is_shared`, scripts without `to` are never matched."""

    def __init__(self, *, to: str = "", is_shared: bool = False) -> None:
        self._to = to
        self._is_shared = is_shared
        self._scripts: list[Script] = []

    def is_of_this_test(self, body: Body) -> bool:
        return self._to in asked_in(body)

    def add(self, replies: Sequence[Scripted], *, kind: Kind, to: str, may_stay: bool) -> Script:
        if self._is_shared and not (to or self._to):
            message = "tests share this server: script(..., to=<words that only this test's request says>)"
            raise ValueError(message)
        caller = traceback.extract_stack(limit=3)[0]
        script_line = f"{Path(caller.filename).name}:{caller.lineno}"
        script = Script(kind, to or self._to, may_stay, script_line, deque(replies))
        self._scripts.append(script)
        return script

    def take(self, exchange: Exchange) -> Scripted | None:
        """Returns the first reply for this request."""
        script = next((script for script in self._scripts if script.is_for(exchange)), None)
        if script is None:
            return None
        script.exchanges.append(exchange)
        return script.replies.popleft()

    def forget(self) -> None:
        self._scripts.clear()

    @property
    def left_over(self) -> list[str]:
        """A sentence for each script of which a reply is left."""
        return [script.left_over for script in self._scripts if script.left_over]

    def end(self) -> None:
        """Ends the test's scripts; raises `UnusedReplyError` for a reply left over."""
        left_over = self.left_over
        self.forget()
        if left_over:
            raise UnusedReplyError("\n".join(left_over))
