from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Locator, expect

from component.format import format_money
from component.wording import words_of
from graph.cost_view import CostView
from graph.service import ChatService
from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat, question
from tests.fake.openai_server import FakeOpenAI

WIDTHS: Final[dict[str, dict[str, Any]]] = {
    "1280": {},
    "390": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}
LOCALES: Final = {"ko": "ko-KR", "en": "en-US"}
SAID: Final = f"The request as it was sent: {question(7)}"


@pytest.fixture
def chat(other_server: ChatService, fake_openai: FakeOpenAI) -> Chat:
    """Six turns, of which three are folded."""
    assert fake_openai
    made = Chat(other_server)
    for text in (*(question(number) * 4 for number in range(1, 6)), SAID):
        made.say(text)
        made.wait_for_folds()
    return made


def amount_of(cost: CostView | None) -> str:
    assert cost is not None
    return format_money(cost.total.amount, cost.currency, is_estimate=cost.total.is_estimate)


def panel_of(visitor: Visitor, *, is_narrow: bool) -> Locator:
    if is_narrow:
        visitor.find("open_panel").locator("button").click()
    return visitor.page.get_by_role("dialog") if is_narrow else visitor.find("panel")


@pytest.mark.parametrize("language", LOCALES)
@pytest.mark.parametrize("width", WIDTHS)
def test_money_and_the_request_as_sent_are_shown(
    chromium: Browser,
    address: str,
    chat: Chat,
    fake_openai: FakeOpenAI,
    width: str,
    language: str,
    tmp_path: Path,
) -> None:
    words = words_of("en" if language == "en" else "ko")
    said, is_narrow = words.input, width == "390"
    costs = chat.service.costs
    amount, of_all = amount_of(costs.of_session(chat.session_id)), amount_of(costs.of_all())
    with visiting(chromium, address, locale=LOCALES[language], **WIDTHS[width]) as visitor:
        visitor.open(f"?session={chat.session_id}")
        panel = panel_of(visitor, is_narrow=is_narrow)
        panel.get_by_role("tab", name=words.tab_statistics).click()
        box = panel.locator(".st-key-cost")
        expect(box.get_by_text(words.cost.of_session.format(amount=amount))).to_be_visible()
        expect(box.get_by_text(words.cost.of_all.format(amount=of_all))).to_be_visible()
        if is_narrow:
            expect(panel.get_by_role("heading", name=words.tab_statistics, exact=True)).to_be_visible()

        panel.get_by_role("tab", name=said.tab).click()
        expect(panel.get_by_text(said.verified)).to_be_visible()
        if is_narrow:
            expect(panel.get_by_role("heading", name=said.tab, exact=True)).to_be_visible()
        request = panel.locator('[class*="st-key-input_request_"]').first
        request.locator("summary").click()
        expect(request.get_by_text(said.request_verified)).to_be_visible()
        with visitor.page.expect_download() as download:
            request.get_by_role("button", name=said.request_file).click()
        download.value.save_as(tmp_path / "request.json")
        body = fake_openai.bodies("chat", to=SAID)[-1]
        assert json.loads((tmp_path / "request.json").read_text()) == body
        visitor.page.evaluate("() => navigator.clipboard.writeText('')")
        request.locator("button.copy").click()
        copied = visitor.page.wait_for_function("() => navigator.clipboard.readText()").json_value()
        assert json.loads(copied) == body


@pytest.mark.parametrize("language", LOCALES)
def test_the_title_of_the_drawer_names_the_open_tab(chromium: Browser, address: str, chat: Chat, language: str) -> None:
    words = words_of("en" if language == "en" else "ko")
    with visiting(chromium, address, locale=LOCALES[language], **WIDTHS["390"]) as visitor:
        visitor.open(f"?session={chat.session_id}")
        panel = panel_of(visitor, is_narrow=True)
        for name in (words.tab_summaries, words.tab_statistics, words.input.tab, words.tab_summaries):
            panel.get_by_role("tab", name=name).click()
            expect(panel.get_by_role("heading", name=name, exact=True)).to_be_visible()
            expect(panel.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
        panel.get_by_role("tab", name=words.tab_summaries).press("ArrowRight")
        expect(panel.get_by_role("heading", name=words.tab_statistics, exact=True)).to_be_visible()
        expect(panel).to_have_accessible_name(words.tab_statistics)
        visitor.page.keyboard.press("Escape")
        expect(panel).to_have_count(0)
