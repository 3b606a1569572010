"""What may become of a request on its way from the browser to the server."""

from __future__ import annotations

import threading
from collections.abc import Callable

from playwright.sync_api import WebSocketRoute
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.browser.visitor import PATIENCE_MILLISECONDS, Visitor

Deliver = Callable[[WebSocketRoute, bytes], None]

_LOOK_MILLISECONDS = 20
_DRAW_MILLISECONDS = 300


def deliver_twice(server: WebSocketRoute, request: bytes) -> None:
    server.send(request)
    server.send(request)


def lose(server: WebSocketRoute, request: bytes) -> None:
    """Delivers nothing, as Streamlit does with a request that another one overtakes."""


def on_the_way(visitor: Visitor, words: str, deliver: Deliver) -> None:
    """Has the first request that holds these words delivered so."""
    met: list[bytes] = []

    def pass_on(server: WebSocketRoute, request: bytes) -> None:
        if met or words.encode() not in request:
            server.send(request)
        else:
            met.append(request)
            deliver(server, request)

    _through(visitor, pass_on)


def lose_until(visitor: Visitor, words: str, gate: threading.Event) -> None:
    """Loses each request that holds these words until the gate is open."""

    def pass_on(server: WebSocketRoute, request: bytes) -> None:
        if gate.is_set() or words.encode() not in request:
            server.send(request)

    _through(visitor, pass_on)


def outdate_timers(visitor: Visitor) -> list[BackMsg]:
    """Has the page's timers ask as they do before the browser has heard which chat is open; returns what they asked."""
    met: list[BackMsg] = []

    def pass_on(server: WebSocketRoute, request: bytes) -> None:
        asked = BackMsg.FromString(request)
        if asked.rerun_script.is_auto_rerun:
            asked.rerun_script.query_string = ""
            met.append(asked)
        server.send(asked.SerializeToString())

    _through(visitor, pass_on)
    return met


def _through(visitor: Visitor, pass_on: Deliver) -> None:
    """Has each request of the page go through this on its way to the server."""

    def connect(browser: WebSocketRoute) -> None:
        server = browser.connect_to_server()
        browser.on_message(lambda sent: pass_on(server, sent if isinstance(sent, bytes) else sent.encode()))

    visitor.page.route_web_socket("**/_stcore/stream", connect)


class Hold:
    """Holds back what the server sends to a page, in its order, from when it is told to until it lets go.

    Attributes:
        behind: Words behind which it begins by itself, once they have come in this order.
    """

    def __init__(self, visitor: Visitor, *behind: str) -> None:
        self.is_holding = False
        self.behind = list(behind)
        self._page = visitor.page
        self._held: list[str | bytes] = []
        self._browser: WebSocketRoute | None = None
        visitor.page.route_web_socket("**/_stcore/stream", self._connect)

    def wait(self) -> None:
        """Waits until it holds something back, and the page has drawn what came before."""
        for _ in range(PATIENCE_MILLISECONDS // _LOOK_MILLISECONDS):
            if self._held:
                break
            self._page.wait_for_timeout(_LOOK_MILLISECONDS)
        assert self._held
        self._page.wait_for_timeout(_DRAW_MILLISECONDS)

    @property
    def count(self) -> int:
        """How many messages it holds back."""
        return len(self._held)

    def let_go(self, first: int | None = None) -> None:
        """Sends what was held; what comes meanwhile waits behind it.

        Args:
            first: How many of them alone go, while the rest waits on; all by default.
        """
        assert self._browser is not None
        left = 0 if first is None else max(self.count - first, 0)
        while len(self._held) > left:
            self._browser.send(self._held.pop(0))
        self.is_holding = first is not None

    def _connect(self, browser: WebSocketRoute) -> None:
        self._browser = browser
        browser.connect_to_server().on_message(self._pass_on)

    def _pass_on(self, sent: str | bytes) -> None:
        assert self._browser is not None
        if self.is_holding:
            self._held.append(sent)
            return
        self._browser.send(sent)
        data = sent if isinstance(sent, bytes) else sent.encode()
        if self.behind and self.behind[0].encode() in data:
            del self.behind[0]
            self.is_holding = not self.behind
