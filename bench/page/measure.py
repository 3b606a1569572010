"""Sends messages in a browser, and times what a user sees of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from playwright.sync_api import BrowserContext, Page

from bench.page.endpoint import answer_to
from bench.page.wire import Wire

SETTLED: Final = '[data-testid="stApp"][data-test-script-state="notRunning"]'
FIELD: Final = '[data-testid="stChatInputTextArea"]'
_STOP: Final = ".st-key-stop"
_PATIENCE_MILLISECONDS: Final = 60_000
# Notes when each thing is first in the page, in milliseconds from the key press on.
WATCH: Final = """
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


@dataclass(frozen=True)
class Sample:
    """One message: milliseconds from the key press to each sight, and bytes sent to its tab meanwhile."""

    bubble: float
    words: float
    settled: float
    received_bytes: int
    answer_bytes: int


class Chat:
    """A tab on one of the two pages.

    Args:
        context: A window of its own, so that nothing is shared with the other page.
        wire: The relay in front of the page's server.
        path: What comes after the server's address.
        ending: Selector of what the page shows when turn {turn} has ended; "" if it shows nothing then.
    """

    def __init__(self, context: BrowserContext, wire: Wire, path: str = "", *, ending: str = "") -> None:
        self._wire = wire
        self._ending = ending
        self._url = wire.url + path
        self.page: Page = context.new_page()
        self.page.set_default_timeout(_PATIENCE_MILLISECONDS)
        self._connections = slice(0)
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
        self.page.wait_for_selector(_STOP, state="detached")
        self.page.close()

    def ask(self, text: str, turn: int) -> Sample:
        """Sends a message, waits until its answer has settled, and returns what was seen."""
        answer = answer_to(text)
        words = answer.split()
        self.page.evaluate(WATCH, [text, words[0], words[-1], self._ending.format(turn=turn)])
        self.page.fill(FIELD, text)
        self.page.wait_for_timeout(500)  # what the field itself causes is over by then
        before = self._received_bytes()
        self.page.press(FIELD, "Enter")
        self.page.wait_for_function("() => 'settled' in window.benchSeen")
        received = self._received_bytes() - before
        seen = self.page.evaluate("() => window.benchSeen")
        return Sample(seen["bubble"], seen["words"], seen["settled"], received, len(answer.encode()))

    def _received_bytes(self) -> int:
        return sum(self._wire.received_bytes[self._connections])
