"""A server with one slot: it answers one request at a time, and its cache has what the last one has read and said."""

from __future__ import annotations

import json
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from tests.fake.openai_reply import Body, Reply
from tests.fake.openai_responder import Kind, kind_of

_CHARS_A_TOKEN: Final = 4
_SAID: Final = re.compile(r'"content": "((?:[^"\\]|\\.)*)"')


@dataclass
class Served:
    """A request that had the slot.

    Attributes:
        evaluated: Tokens that it had the server read, as its cache didn't have them.
        is_whole: It was answered to the end.
    """

    kind: Kind
    evaluated: int
    is_whole: bool = False


class OneSlot:
    """The slot and its queue.

    Attributes:
        served: The requests that had it, in order.
    """

    def __init__(self) -> None:
        self.served: list[Served] = []
        self._queue: deque[object] = deque()
        self._lock = threading.Lock()
        self._cached = ""

    @contextmanager
    def taken(self, body: Body, reply: Reply, wait: Callable[[], None]) -> Iterator[None]:
        """Waits in the queue for the slot, and has it while the block runs; `wait` raises if the client has gone."""
        ticket = object()
        with self._lock:
            self._queue.append(ticket)
        try:
            while self._queue[0] is not ticket:
                wait()
            served, words = self._read(body)
            yield
            served.is_whole = True
            self._cached = words + _words([{"role": "assistant", "content": _said(reply)}])
        finally:
            with self._lock:
                self._queue.remove(ticket)

    def evaluated(self, *kinds: Kind) -> int:
        """How many tokens the server has read for requests of these kinds; for all, if none is named."""
        return sum(each.evaluated for each in self.served if not kinds or each.kind in kinds)

    def _read(self, body: Body) -> tuple[Served, str]:
        words = _words([body.get("tools", []), *body["messages"]])
        shared = len(os.path.commonprefix([words, self._cached]))  # noqa: RUF071  # it compares characters here, not paths
        self._cached = words
        self.served.append(Served(kind_of(body), (len(words) - shared) // _CHARS_A_TOKEN))
        return self.served[-1], words


def _words(parts: Sequence[Any]) -> str:
    return "".join(json.dumps(part, ensure_ascii=False, sort_keys=True) for part in parts)


def _said(reply: Reply) -> str:
    return "".join(json.loads(f'"{words}"') for words in _SAID.findall("".join(reply.events)))
