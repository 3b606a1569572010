from __future__ import annotations

import threading

from playwright.sync_api import Locator, expect

from graph.service import ChatService
from tests.browser.visitor import Visitor
from tests.browser.wire import lose, on_the_way
from tests.fake.chat import Chat
from tests.fake.openai_reply import Body, Reply, text
from tests.fake.openai_server import FakeOpenAI


def press(visitor: Visitor, button: Locator) -> float:
    """Presses the mouse in the middle of the button, holds it, and returns how far down that is."""
    button.hover()
    visitor.page.mouse.down()
    box = button.bounding_box()
    assert box is not None
    return box["y"] + box["height"] / 2


def wait_until_moved(visitor: Visitor, button: Locator, y: float) -> None:
    visitor.page.wait_for_function(
        "([button, y]) => { const box = button.getBoundingClientRect(); return box.bottom < y || box.top > y; }",
        arg=[button.element_handle(), y],
    )


def test_a_press_counts_though_a_growing_answer_moves_the_page(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked, may_answer = "눌린 동안 자라는 답을 주세요.", threading.Event()

    def answer(_: Body) -> Reply:
        may_answer.wait(30)
        return text("\n\n".join(f"{number}번째 줄입니다." for number in range(60)))

    fake_openai.script(answer, to=asked)
    visitor.open()
    visitor.ask("먼저 짧은 물음을 하나 드립니다.")
    visitor.write(asked)
    expect(visitor.turn(2)).to_be_visible()
    copy = visitor.turn(1).locator("button.copy")
    visitor.page.evaluate("() => navigator.clipboard.writeText('')")
    y = press(visitor, copy)
    may_answer.set()
    wait_until_moved(visitor, copy, y)
    visitor.page.mouse.up()
    visitor.page.wait_for_function("() => navigator.clipboard.readText()")
    visitor.wait_for_end(2)


def test_a_press_counts_though_the_column_is_scrolled_under_it(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1280, "height": 500})
    visitor.open()
    visitor.open_settings()
    shortcuts = visitor.find("shortcuts").locator("button")
    y = press(visitor, shortcuts)
    visitor.page.mouse.wheel(0, -200)
    wait_until_moved(visitor, shortcuts, y)
    visitor.page.mouse.up()
    expect(visitor.page.get_by_text("메시지 입력란으로 가기")).to_be_visible()


def test_a_press_counts_though_the_request_for_it_is_lost(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 1)
    on_the_way(visitor, '"thumb"', lose)
    visitor.open(f"?session={chat.session_id}")
    good = visitor.page.locator('button[data-thumb="up"]')
    good.click()
    expect(good).to_have_attribute("aria-pressed", "true")


def test_a_press_that_is_drawn_away_from_its_button_is_none(visitor: Visitor) -> None:
    visitor.open()
    press(visitor, visitor.find("suggestion_0").locator("button"))
    visitor.find("suggestion_2").hover()
    visitor.page.mouse.up()
    visitor.field.fill("아직 아무것도 보내지 않았습니다.")
    expect(visitor.find("suggestions")).to_be_visible()


def test_a_box_opens_and_closes_at_once_for_whoever_wants_no_motion(visitor: Visitor) -> None:
    visitor.open()
    visitor.open_settings()
    box, content = visitor.find("settings").locator("details"), visitor.find("shortcuts")
    heights = box.evaluate("box => [box.getBoundingClientRect().height, box.scrollHeight]")
    assert heights[0] >= heights[1]
    visitor.open_settings()
    assert not content.is_visible()
