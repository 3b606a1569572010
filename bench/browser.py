"""Sends messages in a browser, times what a user sees of each, and counts the bytes that come for it."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from playwright.sync_api import Browser, BrowserContext, sync_playwright

from bench.endpoint import ANSWER, ends_of

SETTLED = '[data-testid="stApp"][data-test-script-state="notRunning"]'
FIELD = '[data-testid="stChatInputTextArea"]'
ENDING = ".st-key-last_actions_{turn}"
WINDOW = {"viewport": {"width": 1280, "height": 800}, "locale": "ko-KR"}
# Notes when each thing is first in the page, in milliseconds from the key press on.
WATCH = """
([question, first, last, ending]) => {
    const seen = (window.benchSeen = {});
    let pressedAt = null;
    const note = (name, isThere) => {
        if (!(name in seen) && isThere) seen[name] = performance.now() - pressedAt;
    };
    const look = () => {
        if (pressedAt === null) return;
        const text = document.querySelector("[data-testid='stMainBlockContainer']").textContent;
        const app = document.querySelector("[data-testid='stApp']");
        note("bubble", text.includes(question));
        note("words", text.includes(first));
        const isDrawn = text.includes(last) && (!ending || document.querySelector(ending));
        note("settled", isDrawn && app.dataset.testScriptState === "notRunning");
        if ("settled" in seen) observer.disconnect();
    };
    const observer = new MutationObserver(look);
    observer.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    const onPress = (event) => {
        if (event.key !== "Enter") return;
        pressedAt = event.timeStamp;
        window.removeEventListener("keydown", onPress, true);
    };
    // Before any listener of the page, which may show the message at once.
    window.addEventListener("keydown", onPress, true);
}
"""
HAS_SETTLED = "() => 'settled' in window.benchSeen"
SEEN = "() => window.benchSeen"


def chromium() -> dict[str, object]:
    """Returns what starts the machine's Chromium, or the one that Playwright has."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    return {"executable_path": next(filter(None, map(shutil.which, names)), None), "args": flags}


@contextmanager
def opened_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**chromium())
        yield browser
        browser.close()


class Sample(NamedTuple):
    """One message: milliseconds from the key press to each sight, and bytes sent to its tab for each of the answer."""

    bubble: float
    words: float
    settled: float
    bytes_share: float


class Wire:
    """A TCP relay on loopback in front of a server.

    Attributes:
        url: Where the browser finds the server through this relay.
        received_bytes: What the server has sent so far over each connection, in the order of their opening.
    """

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.received_bytes: list[int] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                browser, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                for end in (browser, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.received_bytes.append(0)
                number = len(self.received_bytes) - 1
                threading.Thread(target=self._relay, args=(browser, server, None), daemon=True).start()
                threading.Thread(target=self._relay, args=(server, browser, number), daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket, counted: int | None) -> None:
        with suppress(OSError), source, target:
            while data := source.recv(65_536):
                if counted is not None:
                    self.received_bytes[counted] += len(data)
                target.sendall(data)


class Chat:
    """A tab on a page.

    Args:
        context: A window of its own, so that nothing is shared with another page.
        wire: The relay in front of the page's server.
        path: What comes after the server's address.
        ending: Selector of what the page shows when turn {turn} has ended; "" if it shows nothing then.
    """

    def __init__(self, context: BrowserContext, wire: Wire, path: str = "", *, ending: str = "") -> None:
        self._wire = wire
        self._ending = ending
        self._url = wire.url + path
        self.page = context.new_page()
        self.page.set_default_timeout(60_000)
        self.open()

    def open(self) -> None:
        """Opens the address, also once more: the empty page is then another chat's."""
        others = len(self._wire.received_bytes)
        self.page.goto(self._url)
        self.page.wait_for_selector(SETTLED)
        self.page.wait_for_selector(FIELD)
        # Another tab beside this one has connections of its own, and what it is sent isn't this one's.
        self._connections = slice(others, len(self._wire.received_bytes))

    def beside(self, *, is_same: bool) -> Chat:
        """Opens another tab in the same window, on the same session or on the empty page."""
        path = self.page.url.removeprefix(self._wire.url) if is_same else ""
        return Chat(self.page.context, self._wire, path, ending=self._ending)

    def send(self, text: str) -> None:
        """Sends a message without waiting for anything."""
        self.page.fill(FIELD, text)
        self.page.press(FIELD, "Enter")

    def leave(self) -> None:
        """Stops what this tab is answered and closes it: our turn would go on without the tab, the bare chat's ends."""
        self.page.keyboard.press("Escape")
        self.page.wait_for_selector(".st-key-stop", state="detached")
        self.page.close()

    def ask(self, text: str, turn: int) -> Sample:
        """Sends a message, waits until its answer has settled, and returns what was seen."""
        self.page.evaluate(WATCH, [text, *ends_of(text), self._ending.format(turn=turn)])
        self.page.fill(FIELD, text)
        self.page.wait_for_timeout(500)  # what the field itself causes is over by then
        before = self._received_bytes()
        self.page.press(FIELD, "Enter")
        self.page.wait_for_function(HAS_SETTLED)
        received = self._received_bytes() - before
        seen = self.page.evaluate(SEEN)
        answer_bytes = len(" ".join([*ends_of(text), ANSWER]).encode())
        return Sample(seen["bubble"], seen["words"], seen["settled"], received / answer_bytes)

    def _received_bytes(self) -> int:
        return sum(self._wire.received_bytes[self._connections])
