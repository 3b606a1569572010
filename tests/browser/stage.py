"""A page in one look, with what its states are prepared with."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
from playwright.sync_api import Browser, Locator, expect

from component.words.wording import words_of
from component.words.words import Words
from graph.service import ChatService
from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.fake.openai_reply import Reply
from tests.fake.openai_server import FakeOpenAI

LOOKS: Final[dict[str, dict[str, Any]]] = {
    "light, Korean, 1280": {"color_scheme": "light", "locale": "ko-KR"},
    "dark, English, 390": {
        "color_scheme": "dark",
        "locale": "en-US",
        "viewport": {"width": 390, "height": 844},
        "has_touch": True,
    },
}

WIDE, NARROW = LOOKS
QUICK_LOOKS: Final = [WIDE, pytest.param(NARROW, marks=pytest.mark.slow)]


def words_in(look: str) -> Words:
    return words_of("en" if LOOKS[look]["locale"] == "en-US" else "ko")


@dataclass(frozen=True)
class Stage:
    """A page in one look, and what its states are prepared with.

    Attributes:
        folder: Where files of its own may lie.
        gate: Holds up what one state has begun until another sets it.
    """

    visitor: Visitor
    words: Words
    is_narrow: bool
    endpoint: FakeOpenAI
    service: ChatService
    folder: Path
    gate: threading.Event = field(default_factory=threading.Event)

    @property
    def is_dark(self) -> bool:
        return bool(self.visitor.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches"))

    def button(self, key: str) -> Locator:
        return self.visitor.find(key).locator("button")

    @property
    def dialog(self) -> Locator:
        return self.visitor.page.get_by_test_id("stDialog")

    @property
    def panel(self) -> Locator:
        return self.visitor.find("panel")

    def open_sidebar(self) -> None:
        """Opens it where it is a drawer, unless it has stayed open over a reload."""
        if self.is_narrow:
            sidebar = self.visitor.page.get_by_test_id("stSidebar")
            if sidebar.get_attribute("data-collapsed") == "true":
                self.visitor.page.get_by_test_id("stExpandSidebarButton").click()
            expect(sidebar).to_have_attribute("data-collapsed", "false")
            # A list that opens while it slides in is closed again.
            expect(sidebar).to_be_in_viewport(ratio=1)

    def choose(self, choice: str, menu: Locator | None = None) -> None:
        """Chooses something in a menu, without one in that of the open chat in the list."""
        if menu is None:
            menu = self.visitor.find(f"menu_{self.visitor.session_id}")
            menu.hover()
        menu.locator("button").first.click()
        self.visitor.page.get_by_role("menuitem", name=choice, exact=True).click()

    def copied(self, button: Locator) -> str:
        """Presses a button that copies, and returns what it has copied."""
        self.visitor.page.evaluate("() => navigator.clipboard.writeText('')")
        button.click()
        return str(self.visitor.page.wait_for_function("() => navigator.clipboard.readText()").json_value())

    def saved(self, button: Locator) -> tuple[str, str]:
        """Presses a button that saves a file; returns its name and what is in it."""
        with self.visitor.page.expect_download() as saving:
            button.click()
        return saving.value.suggested_filename, Path(saving.value.path()).read_text()

    def expect_nothing_sticks_out(self) -> None:
        for part in ("#stMain", "html"):
            box = self.visitor.page.locator(part)
            assert box.evaluate("box => box.scrollWidth") == box.evaluate("box => box.clientWidth")

    def open_panel(self) -> Locator:
        """Opens it over the chat, unless it is open: on a wide page it always is."""
        opener = self.visitor.find("open_panel").locator("button")
        # While the end of a turn is drawn, the opener of a narrow page isn't there for a moment.
        expect(opener.or_(self.panel).filter(visible=True).first).to_be_visible()
        if not self.panel.is_visible():
            opener.click()
        expect(self.panel).to_be_visible()
        return self.panel

    def open_tab(self, name: str) -> None:
        tab = self.panel.get_by_role("tab", name=name, exact=True)
        tab.click()
        expect(tab).to_have_attribute("aria-selected", "true")

    def close_panel(self) -> None:
        """Closes it where it lies over the chat."""
        if self.is_narrow:
            self.panel.locator("button.close-panel").click()
            expect(self.panel).to_be_hidden()

    def close_sidebar(self) -> None:
        if self.is_narrow:
            self.visitor.page.get_by_test_id("stSidebarCollapseButton").locator("button").click()
            expect(self.visitor.page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")

    def write(self, asked: str, *replies: Reply) -> None:
        """Writes a message that these scripted replies answer."""
        self.endpoint.script(*replies, to=asked)
        self.visitor.write(asked)

    def close_dialog(self) -> None:
        self.visitor.page.keyboard.press("Escape")
        try:
            expect(self.dialog).to_have_count(0, timeout=5_000)
        except AssertionError:  # one that comes while the dialog is drawn anew closes nothing
            self.visitor.page.keyboard.press("Escape")
            expect(self.dialog).to_have_count(0)
        # Whatever opened it has the focus again.
        self.visitor.page.wait_for_function("() => document.activeElement !== document.body")
        self.visitor.page.wait_for_timeout(300)  # no hand is faster; Streamlit drops a press that another overtakes


class State(Protocol):
    """Brings the page from the state before into this one, which its name tells."""

    __name__: str

    def __call__(self, stage: Stage) -> None: ...


@contextmanager
def staged(
    chromium: Browser, address: str, look: str, endpoint: FakeOpenAI, service: ChatService, folder: Path
) -> Iterator[Stage]:
    options = LOOKS[look]
    with visiting(chromium, address, **options) as visitor:
        yield Stage(visitor, words_in(look), "viewport" in options, endpoint, service, folder)
