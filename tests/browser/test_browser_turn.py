from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from graph.service import ChatService
from graph.view import TurnOptions
from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI

ARABIC = "مرحبا!\n" + "كلمات كثيرة في سطر واحد " * 3
FROM_THE_RIGHT = """(part) => {
    const line = document.createRange();
    line.setStart(document.createTreeWalker(part, NodeFilter.SHOW_TEXT).nextNode(), 0);
    line.setEnd(line.startContainer, 1);
    return part.getBoundingClientRect().right - line.getBoundingClientRect().right;
}"""
# Where the number of a turn begins and ends, from the left edge of what the chat scrolls in.
NUMBER = """(turn) => {
    const style = getComputedStyle(turn, "::before");
    const left = turn.getBoundingClientRect().left - document.querySelector("#stMain").getBoundingClientRect().left;
    const moved = new DOMMatrix(style.transform).m41;
    return [left + parseFloat(style.left) + moved, parseFloat(style.width)];
}"""


def expect_folded(visitor: Visitor, *, folded: tuple[int, ...], whole: tuple[int, ...]) -> None:
    for number in folded:
        expect(visitor.turn(number)).to_have_attribute("data-folded", "")
    for number in whole:
        expect(visitor.turn(number)).not_to_have_attribute("data-folded", "")


def test_turns_that_are_sent_whole_again_are_not_shown_as_folded(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 8)
    visitor.open(f"?session={chat.session_id}")
    expect_folded(visitor, folded=(1, 2, 3, 4, 5, 6), whole=(7, 8))
    visitor.find("panel").locator('[class*="st-key-menu_card_"] button').first.click()
    visitor.page.get_by_role("menuitem", name="요약 풀기").click()
    expect_folded(visitor, folded=(1, 2, 3), whole=(4, 5, 6, 7, 8))
    visitor.open_settings()
    visitor.find("strategy").get_by_role("combobox").click()
    visitor.page.get_by_role("option", name="최근 턴만").click()
    expect_folded(visitor, folded=(), whole=(1, 2, 3, 4, 5, 6, 7, 8))


@pytest.mark.parametrize("width", [1280, 390])
def test_a_number_of_four_digits_is_in_view(chromium: Browser, address: str, width: int) -> None:
    with visiting(chromium, address, viewport={"width": width, "height": 844}) as visitor:
        visitor.open()
        visitor.ask("번호를 볼 물음입니다.")
        expect(visitor.turn(1)).to_have_attribute("data-turn", "1")
        visitor.turn(1).evaluate("(turn) => (turn.dataset.turn = '1000')")
        left, number_width = visitor.turn(1).evaluate(NUMBER)
        assert left >= 0
        assert 15 < number_width < 30


def test_on_the_way_through_the_list_only_the_chat_that_has_the_focus_stops_at_its_menu(
    visitor: Visitor, other_server: ChatService
) -> None:
    chats = [Chat(other_server), Chat(other_server), Chat(other_server)]
    for chat in chats:
        chat.ask(1, 1)
    visitor.open()
    newest, middle, oldest = (visitor.find(f"session_{chat.session_id}").locator("button") for chat in reversed(chats))
    oldest.focus()
    visitor.page.keyboard.press("Shift+Tab")
    expect(middle).to_be_focused()
    visitor.page.keyboard.press("Shift+Tab")
    expect(newest).to_be_focused()
    visitor.page.keyboard.press("Tab")
    expect(visitor.find(f"menu_{chats[2].session_id}").locator("button")).to_be_focused()
    visitor.page.keyboard.press("Tab")
    expect(middle).to_be_focused()


def test_code_in_a_card_is_scrolled_by_the_keyboard(
    visitor: Visitor, other_server: ChatService, fake_openai: FakeOpenAI
) -> None:
    chat, asked = Chat(other_server), "코드를 요약할 대화입니다. "
    line = "x = " + " + ".join(f"value_{number}" for number in range(40))
    draft = text(f"<summary>\n배포를 확인하는 코드입니다.\n\n```python\n{line}\n```\n</summary>")
    fake_openai.script(draft, draft, kind="summary", to=asked, may_stay=True)
    for _ in range(6):
        chat.say(asked + "배포를 확인하는 코드를 봅니다. " * 30, options=TurnOptions(strategy="compaction"))
    other_server.folds.compact(chat.session_id)
    visitor.open(f"?session={chat.session_id}")
    code = visitor.find("panel").locator('[class*="st-key-card_"] pre').first
    expect(code).to_have_attribute("tabindex", "0")
    code.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.wait_for_function("code => code.scrollLeft > 0", arg=code.element_handle())


def test_words_from_right_to_left_begin_at_the_right(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    fake_openai.script(text(ARABIC.replace("\n", "\n\n")), to=ARABIC)
    visitor.open()
    visitor.field.fill(ARABIC)
    visitor.field.press("Enter")
    visitor.wait_for_end(1)
    question = visitor.turn(1).get_by_test_id("stText").locator("> *").first
    for part in (question, visitor.turn(1).get_by_test_id("stChatMessage").last.locator("p").first):
        assert part.evaluate(FROM_THE_RIGHT) < 3
