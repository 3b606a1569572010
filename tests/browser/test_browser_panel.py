from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from component.format import format_count
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


def test_both_sliders_are_one_and_the_last_move_counts(visitor: Visitor, folder: Path) -> None:
    visitor.open()
    visitor.ask(question(1))
    panel = visitor.find("panel")
    visitor.open_settings()
    moves = (("slider_rail", "ArrowRight", 4, "0.5"), ("compression_rate", "ArrowLeft", 3, "0.35"))
    for key, arrow, count, rate in (*moves, ("slider_rail", "ArrowLeft", 1, "0.3")):
        thumb_of(visitor, key).focus()
        for _ in range(count):
            thumb_of(visitor, key).press(arrow)
        expect(panel.get_by_text(f"현재 압축률: {rate}", exact=True)).to_be_visible()
        for other in ("slider_rail", "compression_rate"):
            expect(thumb_of(visitor, other)).to_have_value(rate)
    with closing(sqlite3.connect(folder / "data" / "turnfold.db")) as stored:
        query = "SELECT compression_rate FROM session WHERE session_id = ?"
        assert stored.execute(query, [visitor.session_id]).fetchall() == [(0.3,)]


@pytest.mark.parametrize("key", ["slider_rail", "compression_rate"])
def test_under_the_slider_stand_our_words_alone_also_while_it_is_touched(visitor: Visitor, key: str) -> None:
    visitor.open()
    if key == "compression_rate":
        visitor.open_settings()
    thumb_of(visitor, key).hover(force=True)
    for number in ("0.10", "0.50"):
        expect(visitor.find(key).get_by_text(number, exact=True)).to_be_hidden()


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
    expect(phone.page.get_by_role("dialog").get_by_text("1200자라면 약 300자")).to_be_visible()


def test_the_newest_summary_is_in_sight_and_opens_in_place(visitor: Visitor, chat: Chat) -> None:
    visitor.open(f"?session={chat.session_id}")
    newest = visitor.find("panel").locator('[class*="st-key-card_rail_"]').first
    expect(newest).to_contain_text("[10-12턴 요약]")
    expect(newest.get_by_role("button", name="더 보기")).to_be_in_viewport()
    text = newest.locator('[class*="_summary_"] [data-testid="stMarkdownContainer"]').first
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
    line = panel.get_by_text(
        f"[1-3턴] {format_count(record.original_chars)}자 → {format_count(record.summary_chars)}자"
    )
    expect(line).to_be_visible()
    line.click()
    expect(visitor.find(f"card_rail_{record.id}")).to_be_visible()


def test_enter_saves_a_name(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("이름을 곧 바꿀 대화를 하나 만듭니다.")
    visitor.settle()
    field = open_menu(visitor, "이름 바꾸기").get_by_role("textbox")
    field.fill("")
    field.press("Enter")
    expect(visitor.page.get_by_role("dialog")).to_contain_text("이름을 입력하세요.")
    field.fill("Enter로 지은 이름")
    field.press("Enter")
    expect(visitor.page.get_by_role("dialog")).to_have_count(0)
    expect(visitor.open_row).to_contain_text("Enter로 지은 이름")


def test_delete_is_red_and_save_is_not(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("지우지 않을 대화를 하나 만듭니다.")
    visitor.settle()
    for choice, name, colour in (
        ("삭제", "삭제", "rgb(179, 38, 30)"),
        ("이름 바꾸기", "저장", "rgb(13, 110, 102)"),
    ):
        button = open_menu(visitor, choice).get_by_role("button", name=name)
        expect(button).to_have_css("background-color", colour)
        visitor.page.get_by_role("button", name="취소").click()
        expect(visitor.page.get_by_role("dialog")).to_have_count(0)


def test_a_turn_that_begins_or_ends_leaves_the_panel_in_its_place(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask(question(1))
    thumb_of(visitor, "slider_rail").evaluate("(slider) => { slider.dataset.mark = 'the same'; }")
    visitor.ask(question(2), first=2)
    expect(thumb_of(visitor, "slider_rail")).to_have_attribute("data-mark", "the same")
