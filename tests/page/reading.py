"""Reads and presses what a user would on a page under test, by the keys of its widgets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Selectbox, Slider

from component import page_state
from graph.value.view import TurnOptions
from tests.fake.scripted_service import ScriptedService

_HEAD_LINES: Final = ('<p class="rate-now">', '<p class="faint">')  # of the panel
_PAGE: Final = Path(__file__).parents[2] / "component" / "page.py"
NEW: Final = {"waits": "", "is_queued": False, "tries": 0}  # of a message that is sent at once
OPTIONS = TurnOptions(compression_rate=0.3, strategy="interval", model="offline-mini")


def new_page() -> AppTest:
    """The page's script as another tab would run it, not run yet."""
    return as_tab(AppTest.from_file(str(_PAGE), default_timeout=60))


def page_with_presses() -> AppTest:
    """The same page, with presses of its plain buttons by `press`."""
    return as_tab(AppTest.from_function(_pressed_page, default_timeout=60))


def _pressed_page() -> None:
    import streamlit as st  # noqa: PLC0415  # it runs as a page of its own

    from component import browser, page, redraw, turn_buttons  # noqa: PLC0415  # see above

    st.button("", key="look", on_click=lambda: st.session_state.update(stale=redraw.stale_parts()))
    st.button("", key="press", on_click=lambda: turn_buttons.press(st.session_state["pressed"], browser.PRESSES))
    page.main()


def press(page: AppTest, *asked: Mapping[str, object]) -> AppTest:
    page.session_state["pressed"] = asked
    return page.button(key="press").click().run()


def stale_parts(page: AppTest) -> list[str] | None:
    """Returns the parts of a page with presses that are drawn out of date, and draws it."""
    stale: list[str] | None = page.button(key="look").click().run().session_state["stale"]
    return stale


def as_tab(page: AppTest) -> AppTest:
    """Returns a page that has its components from where all have them, as the tabs of a server do.

    Otherwise each looks for components in all installed packages first, which takes longer than all the rest.
    """
    page._bidi_component_manager = _components()  # noqa: SLF001  # has no other name
    return page


@cache
def _components() -> BidiComponentManager:
    return BidiComponentManager()


def page_text(page: AppTest) -> str:
    elements = [*page.markdown, *page.text, *page.error, *page.warning, *page.subheader, *page.title]
    head = [re.sub(r"<[^>]+>", "", line) for line in raw_html(page).splitlines() if line.startswith(_HEAD_LINES)]
    return "\n".join([*(str(element.value) for element in elements), *head])


def slider_of(page: AppTest) -> Slider[Any]:
    """The panel's slider; each rate set from elsewhere makes a new one."""
    (slider,) = (slider for slider in page.slider if str(slider.key).startswith("slider_"))
    return slider


def open_settings(page: AppTest, section: str) -> AppTest:
    """Opens the dialog of settings at a section, which its title names."""
    page.session_state["setting_sections"] = section
    return page.run().button(key="open_settings").click().run()


def setting(page: AppTest, name: str) -> Selectbox[Any]:
    """A box of the settings, at which their dialog is opened."""
    title = {"project_listed": "프로젝트"}.get(name, "요약")
    return open_settings(page, title).selectbox(key=f"{name}_ko")


def keys(page: AppTest) -> set[str]:
    return {button.key for button in page.button if button.key}


def say(page: AppTest, *messages: str) -> AppTest:
    for message in messages:
        page.chat_input(key="ask").set_value(message).run()
    return page


def store_session(service: ScriptedService, turn_count: int) -> str:
    identifier = service.new_id()
    for number in range(1, turn_count + 1):
        service.send(identifier, f"질문 {number}", message_id=f"user-{number}", options=OPTIONS)
    service.calls.clear()
    return identifier


def open_page(page: AppTest, identifier: str) -> AppTest:
    """Opens the page at the session's address, as a new tab does."""
    page.query_params[page_state.SESSION_PARAMETER] = page.session_state[page_state.OPEN] = identifier
    return page.run()


def folds(page: AppTest) -> list[str]:
    """The lines where turns were folded."""
    return [box.label for box in page.main.expander if "fold_" in box.proto.id]


def raw_html(page: AppTest) -> str:
    return "\n".join(str(element.value) for element in page.html)
