"""A change of the page's language changes its words, and nothing that is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from component.words.text import LANGUAGE_NAMES, Language
from component.words.wording import words_of
from tests.browser.conftest import preparing, scripted_settings, started, visiting
from tests.browser.visitor import Visitor
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI

pytestmark = pytest.mark.slow

OPTIONS = {"MODEL_OPTIONS": '{"*": {"reasoning_effort": "medium"}}'}


def choose_language(visitor: Visitor, language: Language) -> None:
    visitor.find("language").get_by_role("radio", name=LANGUAGE_NAMES[language]).click()
    visitor.expect_language(language)
    visitor.settle()


def look_at_panel(visitor: Visitor) -> None:
    """Has the browser report all that it has chosen."""
    for tab in (1, 0):
        visitor.find("panel").get_by_role("tab").nth(tab).click()
        visitor.settle()


def choose(visitor: Visitor, box: str, option: str) -> None:
    visitor.find("model_menu").locator("button").click()
    visitor.find_choice(box).get_by_role("combobox").click()
    visitor.page.get_by_role("option", name=option).click()
    visitor.settle()
    visitor.page.keyboard.press("Escape")


def test_the_embedded_model_stays_the_chats(chromium: Browser, tmp_path: Path, endpoint: FakeOpenAI) -> None:
    with started(tmp_path, {}) as address, visiting(chromium, address) as visitor:
        visitor.open()
        visitor.ask("안녕하세요")
        menu = visitor.find("model_menu").locator("button")
        menu.click()
        visitor.page.keyboard.press("Escape")
        choose_language(visitor, "en")
        look_at_panel(visitor)
        expect(menu).to_contain_text(words_of("en").model_offline.format(name="offline-mini"))
        visitor.ask("Hello", first=2)
        with preparing(tmp_path, endpoint) as service:
            assert service.sessions.get(visitor.session_id).model == service.sessions.default_model()


def test_the_level_of_thinking_stays_the_chats(chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI) -> None:
    settings = {**scripted_settings(fake_openai), **OPTIONS}
    with started(tmp_path, settings) as address, visiting(chromium, address) as visitor:
        visitor.open()
        visitor.ask("안녕하세요")
        choose(visitor, "thinking", words_of("ko").thinking_levels["high"])
        choose_language(visitor, "en")
        look_at_panel(visitor)
        visitor.ask("Hello", first=2)
        with preparing(tmp_path, fake_openai) as service:
            assert service.sessions.get(visitor.session_id).thinking == "high"


NAMED = """() => [...document.querySelectorAll("button")].filter((button) => button.getClientRects().length)
    .map((button) => button.ariaLabel ?? "").filter((name) => /^[A-Z]/.test(name))"""


def test_a_korean_page_names_what_streamlit_draws_in_korean(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    fake_openai.script(text("```python\nprint(1)\n```"), to="코드 한 줄을 주세요.")
    visitor.open()
    visitor.ask("코드 한 줄을 주세요.")
    expect(visitor.page.get_by_role("button", name="메시지 보내기")).to_be_visible()
    assert visitor.page.evaluate(NAMED) == []
    visitor.find("panel").get_by_role("tab").nth(2).click()
    visitor.settle()
    visitor.find("open_settings").locator("button").click()
    closing = visitor.page.get_by_role("dialog").get_by_role("button", name="닫기", exact=True)
    expect(closing).to_be_visible()
    assert visitor.page.evaluate(NAMED) == []
    visitor.page.evaluate("() => document.activeElement.blur()")
    visitor.page.keyboard.press("Escape")
    expect(visitor.page.get_by_role("dialog")).to_have_count(0)
