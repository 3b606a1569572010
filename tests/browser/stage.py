"""A page in one look, with what its states are prepared with."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from playwright.sync_api import Locator, expect

from component.word import Words
from component.wording import words_of
from graph.service import ChatService
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


def words_in(look: str) -> Words:
    return words_of("en" if LOOKS[look]["locale"] == "en-US" else "ko")


@dataclass(frozen=True)
class Stage:
    """A page in one look, and what its states are prepared with.

    Attributes:
        gate: Holds up what one state has begun until another sets it.
    """

    visitor: Visitor
    words: Words
    is_narrow: bool
    endpoint: FakeOpenAI
    service: ChatService
    gate: threading.Event = field(default_factory=threading.Event)

    def button(self, key: str) -> Locator:
        return self.visitor.find(key).locator("button")

    @property
    def dialog(self) -> Locator:
        return self.visitor.page.get_by_role("dialog")

    @property
    def panel(self) -> Locator:
        return self.dialog if self.is_narrow else self.visitor.find("panel")

    def open_sidebar(self) -> None:
        if self.is_narrow:
            self.visitor.page.get_by_test_id("stExpandSidebarButton").click()
            expect(self.visitor.page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "false")
            # A list that opens while it slides in is closed again.
            expect(self.visitor.page.get_by_test_id("stSidebar")).to_be_in_viewport(ratio=1)

    def open_panel(self) -> Locator:
        if self.is_narrow:
            self.button("open_panel").click()
        expect(self.panel.get_by_text(self.words.history)).to_be_visible()
        return self.panel

    def close_panel(self) -> None:
        if self.is_narrow:
            self.close_dialog()

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
        expect(self.dialog).to_have_count(0)
        self.visitor.page.wait_for_timeout(300)  # no hand is faster; Streamlit drops a press that another overtakes


State = Callable[[Stage], None]
