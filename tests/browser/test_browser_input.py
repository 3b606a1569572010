from __future__ import annotations

from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Locator, expect

from component.word import Words
from component.wording import words_of
from graph.service import ChatService
from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI

WIDTHS: Final[dict[str, dict[str, Any]]] = {
    "1280": {},
    "390": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}
LOCALES: Final = {"ko": "ko-KR", "en": "en-US"}


@pytest.fixture
def chat(other_server: ChatService, fake_openai: FakeOpenAI) -> Chat:
    """Five turns, the first three folded; the fifth uses a tool."""
    call = ScriptedCall("get_current_time", '{"timezone": "Asia/Seoul"}', "call-1")
    fake_openai.script(tools(call), text("정오입니다."), to=question(5) * 2)
    made = Chat(other_server)
    for number in range(1, 6):
        made.say(question(number) * 2)
        made.wait_for_folds()
    return made


def open_tab(visitor: Visitor, words: Words, *, is_narrow: bool) -> Locator:
    if is_narrow:
        visitor.find("open_panel").locator("button").click()
    panel = visitor.page.get_by_role("dialog") if is_narrow else visitor.find("panel")
    panel.get_by_role("tab", name=words.input.tab).click()
    expect(panel.locator(".input-bar[role='img']")).to_be_visible()
    return panel


def line(panel: Locator, kind: str) -> Locator:
    return panel.locator(f'[class*="st-key-input_{kind}_"]').first


def choose(visitor: Visitor, panel: Locator, key: str, name: str) -> None:
    chooser = panel.locator(f'[class*="st-key-input_{key}_"]').get_by_role("combobox")
    chooser.scroll_into_view_if_needed()
    visitor.page.wait_for_timeout(300)  # a list closes when what it stands in is scrolled
    chooser.click()
    visitor.page.get_by_role("option", name=name, exact=True).click()


@pytest.mark.parametrize("language", LOCALES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_block_opens_to_the_words_that_were_sent(
    chromium: Browser, address: str, chat: Chat, width: str, language: str
) -> None:
    words = words_of("en" if language == "en" else "ko")
    said = words.input
    with visiting(chromium, address, locale=LOCALES[language], **WIDTHS[width]) as visitor:
        visitor.open(f"?session={chat.session_id}")
        panel = open_tab(visitor, words, is_narrow=width == "390")
        expect(panel.get_by_text(said.sent.format(turn=5))).to_be_visible()
        expect(panel.get_by_text(said.verified)).to_be_visible()

        line(panel, "system").locator("summary").click()
        asked = chat.service.folds.inputs(chat.session_id, 5)[-1]
        expect(line(panel, "system").get_by_test_id("stText")).to_have_text(asked.blocks[0].text or "")
        line(panel, "records").locator("summary").first.click()
        line(panel, "part_records").locator("summary").click()
        record = chat.service.folds.records(chat.session_id)[0]
        expect(line(panel, "part_records").get_by_test_id("stText")).to_have_text(record.summary)
        line(panel, "raw").locator("summary").click()
        expect(line(panel, "raw").get_by_test_id("stText").first).to_have_text(question(4) * 2)
        line(panel, "tools").locator("summary").click()
        tool = line(panel, "tool_tools")
        tool.locator("summary").click()
        expect(tool.get_by_test_id("stCode")).to_contain_text('"name": "get_current_time"')
        line(panel, "current").locator("summary").click()
        expect(line(panel, "current").get_by_text("get_current_time")).to_be_visible()

        choose(visitor, panel, "call", said.call.format(number=1, count=2))
        expect(line(panel, "current").get_by_role("img")).to_have_count(0)
        line(panel, "current").locator("summary").click()
        expect(line(panel, "current").get_by_test_id("stText")).to_have_count(1)

        choose(visitor, panel, "turn", said.in_turn.format(turn=3))
        expect(panel.get_by_text(said.sent.format(turn=3))).to_be_visible()
        expect(line(panel, "records")).to_have_count(0)

        choose(visitor, panel, "turn", said.newest)
        expect(panel.get_by_text(said.sent.format(turn=5))).to_be_visible()
        visitor.settle()  # till then the box of the other turn stands there
        line(panel, "history").locator("summary").first.click()
        first = panel.locator('[class*="st-key-input_past_"]').filter(has_text=said.turn.format(turn=1))
        expect(first).to_contain_text(said.ways["record"])
        first.locator("summary").click()
        expect(first.get_by_test_id("stText").first).to_have_text(question(1) * 2)


def test_the_tab_follows_the_next_answer_unless_another_turn_is_chosen(visitor: Visitor, chat: Chat) -> None:
    visitor.open(f"?session={chat.session_id}")
    panel = open_tab(visitor, words_of("ko"), is_narrow=False)
    visitor.ask(question(6), first=6)
    expect(panel.get_by_text("6턴에 보낸 양")).to_be_visible()
    choose(visitor, panel, "turn", "4턴에 보낸 것")
    expect(panel.get_by_text("4턴에 보낸 양")).to_be_visible()
    visitor.ask(question(7), first=7)
    expect(panel.get_by_text("4턴에 보낸 양")).to_be_visible()


def test_what_was_changed_in_the_tables_is_said_not_to_be_what_was_sent(visitor: Visitor, chat: Chat) -> None:
    chat.change("UPDATE message SET content = replace(content, '김민수', '이영희')")
    visitor.open(f"?session={chat.session_id}")
    panel = open_tab(visitor, words_of("ko"), is_narrow=False)
    expect(panel.get_by_text(words_of("ko").input.unverified)).to_be_visible()


def test_a_chat_without_an_answer_says_what_the_tab_will_show(visitor: Visitor) -> None:
    visitor.open()
    visitor.find("panel").get_by_role("tab", name="모델 입력").click()
    expect(visitor.find("panel").get_by_text(words_of("ko").input.nothing)).to_be_visible()
