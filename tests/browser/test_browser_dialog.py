from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.visitor import Visitor
from tests.browser.wire import together
from tests.fake.openai_reply import Body, Reply, text
from tests.fake.openai_server import FakeOpenAI

ASKED = "대화 상자를 열어 둔 동안 끝날 답을 주세요."


@pytest.fixture
def may_answer(fake_openai: FakeOpenAI) -> Iterator[threading.Event]:
    """The answer to ASKED waits for this."""
    gate = threading.Event()

    def answer(_: Body) -> Reply:
        gate.wait(60)
        return text("이제 끝났습니다.")

    fake_openai.script(answer, to=ASKED)
    yield gate
    gate.set()


def dialog_of(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("dialog")


def open_menu(visitor: Visitor, choice: str) -> None:
    menu = visitor.find(f"menu_{visitor.session_id}")
    menu.hover()
    menu.locator("button").click()
    visitor.page.get_by_role("menuitem", name=choice).click()


def test_a_name_that_is_being_typed_survives_the_end_of_an_answer(
    visitor: Visitor, may_answer: threading.Event
) -> None:
    visitor.open()
    visitor.write(ASKED)
    expect(visitor.turn(1)).to_be_visible()
    open_menu(visitor, "이름 바꾸기")
    dialog_of(visitor).get_by_role("textbox").fill("새로 지은 이름")
    may_answer.set()
    expect(visitor.turn(1)).to_contain_text("이제 끝났습니다.")
    expect(visitor.turn(1).get_by_role("status")).to_have_count(0)
    expect(dialog_of(visitor).get_by_role("textbox")).to_have_value("새로 지은 이름")
    dialog_of(visitor).get_by_role("button", name="저장").click()
    visitor.wait_for_end(1)
    expect(visitor.open_row).to_contain_text("새로 지은 이름")
    expect(dialog_of(visitor)).to_have_count(0)


@pytest.mark.parametrize(("press", "named"), [("dialog_confirm", "새로 지은 이름"), ("dialog_cancel", ASKED[:20])])
def test_a_dialog_that_is_closed_as_the_answer_ends_is_gone(
    visitor: Visitor, may_answer: threading.Event, press: str, named: str
) -> None:
    together(visitor, press, "redraw__events")
    visitor.open()
    visitor.write(ASKED)
    expect(visitor.turn(1)).to_be_visible()
    open_menu(visitor, "이름 바꾸기")
    dialog_of(visitor).get_by_role("textbox").fill("새로 지은 이름")
    visitor.find(press).locator("button").click()
    may_answer.set()
    visitor.wait_for_end(1)
    expect(dialog_of(visitor)).to_have_count(0)
    expect(visitor.open_row).to_contain_text(named)


def test_the_drawer_stays_open_until_it_is_dismissed(phone: Visitor, may_answer: threading.Event) -> None:
    phone.open()
    phone.write(ASKED)
    expect(phone.turn(1)).to_be_visible()
    phone.find("open_panel").locator("button").click()
    expect(dialog_of(phone)).to_be_visible()
    may_answer.set()
    expect(phone.turn(1)).to_contain_text("이제 끝났습니다.")
    expect(phone.turn(1).get_by_role("status")).to_have_count(0)
    expect(dialog_of(phone)).to_be_visible()
    dialog_of(phone).get_by_role("button", name="Close").click()
    phone.wait_for_end(1)
    expect(dialog_of(phone)).to_have_count(0)


def test_escape_closes_the_drawer_wherever_the_focus_went(phone: Visitor, may_answer: threading.Event) -> None:
    phone.open()
    phone.write(ASKED)
    expect(phone.turn(1)).to_be_visible()
    phone.find("open_panel").locator("button").click()
    expect(dialog_of(phone)).to_be_focused()
    # So it comes when the focus was lost with the tab that it stood in.
    phone.page.evaluate("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))")
    expect(dialog_of(phone)).to_have_count(0)
    expect(phone.find("stop")).to_be_visible()
    may_answer.set()
    phone.wait_for_end(1)
    expect(phone.turn(1)).to_contain_text("이제 끝났습니다.")


@pytest.mark.parametrize("choice", ["이름 바꾸기", "삭제"])
def test_a_dialog_that_is_cancelled_or_dismissed_stays_away(visitor: Visitor, choice: str) -> None:
    visitor.open()
    visitor.ask("이름을 그대로 둘 대화를 하나 만듭니다.")
    open_menu(visitor, choice)
    dialog_of(visitor).get_by_role("button", name="취소").click()
    expect(dialog_of(visitor)).to_have_count(0)
    open_menu(visitor, choice)
    expect(dialog_of(visitor)).to_be_focused()
    visitor.page.keyboard.press("Escape")
    expect(dialog_of(visitor)).to_have_count(0)
    visitor.page.wait_for_timeout(300)  # no hand is faster; Streamlit drops a press that another overtakes at once
    visitor.ask("그 뒤에 한마디를 더 합니다.", first=2)
    expect(dialog_of(visitor)).to_have_count(0)
