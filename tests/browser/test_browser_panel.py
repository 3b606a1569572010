from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from graph.service import ChatService
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat, question


@pytest.fixture
def chat(other_server: ChatService) -> Chat:
    """A chat with four summaries that are far longer than six lines."""
    made = Chat(other_server)
    for number in range(1, 14):
        made.say(question(number) * 4)
        made.wait_for_folds()
    return made


def thumb_of(visitor: Visitor, key: str) -> Locator:
    return visitor.find(key).get_by_role("slider")


def open_menu(visitor: Visitor, choice: str) -> Locator:
    menu = visitor.find(f"menu_{visitor.session_id}")
    menu.hover()
    menu.locator("button").click()
    visitor.page.get_by_role("menuitem", name=choice).click()
    return visitor.page.get_by_role("dialog")


def test_slow_presses_on_the_panels_slider_are_none_of_them_lost(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask(question(1))
    thumb = thumb_of(visitor, "slider_rail")
    thumb.focus()
    for _ in range(4):
        thumb.press("ArrowRight")
        visitor.page.wait_for_timeout(300)  # longer than the page waits before it tells the server
    expect(visitor.find("panel").get_by_text("현재 압축률: 0.5")).to_be_visible()
    visitor.page.reload()
    visitor.settle()
    expect(visitor.find("panel").get_by_text("현재 압축률: 0.5")).to_be_visible()


def test_the_drawer_has_the_slider_too(phone: Visitor) -> None:
    phone.open()
    phone.find("open_panel").locator("button").click()
    thumb_of(phone, "slider_drawer").focus()
    thumb_of(phone, "slider_drawer").press("ArrowLeft")
    expect(phone.page.get_by_role("dialog").get_by_text("현재 압축률: 0.25")).to_be_visible()
    expect(phone.page.get_by_role("dialog").get_by_text("1,200자라면 약 300자")).to_be_visible()


def test_the_newest_summary_is_in_sight_and_opens_in_place(visitor: Visitor, chat: Chat) -> None:
    visitor.open(f"?session={chat.session_id}")
    newest = visitor.find("panel").locator('[class*="st-key-card_rail_"]').first
    expect(newest).to_contain_text("[10-12턴 요약]")
    expect(newest.get_by_role("button", name="더 보기")).to_be_in_viewport()
    text = newest.locator('[data-testid="stText"]')
    shown = "element => [element.clientHeight, parseFloat(getComputedStyle(element).lineHeight)]"
    height, line = text.evaluate(shown)
    assert 5.5 < height / line < 6.5
    # What is clamped is the end, not the beginning.
    first_word = text.evaluate("""element => {
        const range = document.createRange();
        range.setStart(document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode(), 0);
        return range.getBoundingClientRect().top - element.getBoundingClientRect().top;
    }""")
    assert 0 <= first_word < line
    newest.get_by_role("button", name="더 보기").click()
    expect(newest.get_by_role("button", name="줄이기")).to_be_visible()
    assert text.evaluate(shown)[0] / line > 10


def test_an_older_summary_is_a_line_that_opens(visitor: Visitor, chat: Chat) -> None:
    visitor.open(f"?session={chat.session_id}")
    record = chat.service.folds.records(chat.session_id)[0]
    panel = visitor.find("panel")
    panel.get_by_text("이전 요약 1개").click()
    line = panel.get_by_text(f"[1-3턴] {record.original_chars:,}자 → {record.summary_chars:,}자")
    expect(line).to_be_visible()
    line.click()
    expect(visitor.find(f"card_rail_{record.id}")).to_be_visible()


def test_enter_saves_a_name(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("이름을 곧 바꿀 대화를 하나 만듭니다.")
    field = open_menu(visitor, "이름 바꾸기").get_by_role("textbox")
    field.fill("")
    field.press("Enter")
    expect(visitor.page.get_by_role("dialog")).to_contain_text("이름을 입력하세요.")
    field.fill("Enter로 지은 이름")
    field.press("Enter")
    expect(visitor.page.get_by_role("dialog")).to_have_count(0)
    expect(visitor.page.locator('[class*="st-key-open_session_"]')).to_contain_text("Enter로 지은 이름")


def test_delete_is_red_and_save_is_not(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("지우지 않을 대화를 하나 만듭니다.")
    colours = []
    for choice, name in (("삭제", "삭제"), ("이름 바꾸기", "저장")):
        button = open_menu(visitor, choice).get_by_role("button", name=name)
        colours.append(button.evaluate("button => getComputedStyle(button).backgroundColor"))
        visitor.page.get_by_role("button", name="취소").click()
        expect(visitor.page.get_by_role("dialog")).to_have_count(0)
    assert colours == ["rgb(179, 38, 30)", "rgb(13, 110, 102)"]
