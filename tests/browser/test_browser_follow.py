from __future__ import annotations

import pytest
from playwright.sync_api import expect

from graph.service import ChatService
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI

LONG = "\n\n".join(f"{number}번째 줄입니다." for number in range(40))
REST = "box => box.scrollHeight - box.clientHeight - box.scrollTop"


def rest(visitor: Visitor) -> float:
    return float(visitor.page.locator("#stMain").evaluate(REST))


def wait_for_end_in_view(visitor: Visitor) -> None:
    box = visitor.page.locator("#stMain").element_handle()
    visitor.page.wait_for_function(f"box => ({REST})(box) < 2", arg=box)


def scroll(visitor: Visitor, pixels: int, *, left: int = 500) -> None:
    visitor.page.mouse.move(left, 300)
    visitor.page.mouse.wheel(0, pixels)


def ask_for_long_answers(visitor: Visitor, fake_openai: FakeOpenAI, *asked: str, first: int = 1) -> None:
    for message in asked:
        fake_openai.script(text(LONG), to=message)
    visitor.ask(*asked, first=first)


def pull_down(phone: Visitor, pixels: int) -> None:
    """Moves the page with a finger."""
    screen = phone.context.new_cdp_session(phone.page)
    for y in range(200, 200 + pixels, 10):
        kind = "touchStart" if y == 200 else "touchMove"
        screen.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": 200, "y": y}]})
    phone.page.wait_for_timeout(100)  # from under a finger that has come to rest, the page doesn't roll on
    screen.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    screen.detach()


def stream_slowly(visitor: Visitor, fake_openai: FakeOpenAI, asked: str) -> None:
    """Asks for an answer of 150 lines and waits for the thirtieth."""
    fake_openai.script(text(*(f"{number}번째 줄입니다.\n\n" for number in range(150)), pause_seconds=0.03), to=asked)
    visitor.open()
    visitor.write(asked)
    expect(visitor.turn(1)).to_contain_text("30번째 줄입니다.")


def test_a_message_sent_from_further_up_is_shown_and_followed_each_time(
    visitor: Visitor, fake_openai: FakeOpenAI
) -> None:
    visitor.open()
    ask_for_long_answers(visitor, fake_openai, "따라가기를 보는 첫 물음입니다.", "따라가기를 보는 둘째 물음입니다.")
    for number in (3, 4):
        scroll(visitor, -1500)
        expect(visitor.page.locator("button.to-end")).to_be_visible()
        ask_for_long_answers(visitor, fake_openai, f"위를 보다가 보내는 {number}번째 물음입니다.", first=number)
        wait_for_end_in_view(visitor)


def test_a_message_sent_by_the_button_is_followed_too(phone: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "위를 보다가 단추로 보내는 물음입니다."
    phone.open()
    ask_for_long_answers(phone, fake_openai, "단추로 보내기 전의 물음입니다.")
    scroll(phone, -1500, left=200)
    expect(phone.page.locator("button.to-end")).to_be_visible()
    fake_openai.script(text(LONG), to=asked)
    phone.field.fill(asked)
    phone.page.get_by_test_id("stChatInputSubmitButton").click()
    phone.wait_for_end(2)
    wait_for_end_in_view(phone)


def draw_again(visitor: Visitor) -> None:
    """Moves the page as a turn that is drawn again does: it is shorter for a moment, and the browser moves it up."""
    visitor.turn(2).evaluate(
        """async (turn) => {
            document.querySelector("#stMain").scrollTop -= 300;
            turn.style.paddingBottom = "40px";
            await new Promise(requestAnimationFrame);
            await new Promise(requestAnimationFrame);
        }"""
    )


@pytest.mark.parametrize("key", ["a", "Shift", "ArrowUp", "Home"])
def test_typing_while_the_page_is_drawn_again_is_no_scrolling(
    visitor: Visitor, fake_openai: FakeOpenAI, key: str
) -> None:
    visitor.open()
    ask_for_long_answers(visitor, fake_openai, f"글을 쓰며 {key}를 누릅니다.", f"글을 쓰며 {key}를 또 누릅니다.")
    wait_for_end_in_view(visitor)
    visitor.field.press(key)
    draw_again(visitor)
    wait_for_end_in_view(visitor)


def test_who_went_up_and_back_to_the_end_stays_there(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    visitor.open()
    ask_for_long_answers(visitor, fake_openai, "위로 갔다가 끝으로 돌아옵니다.", "위로 갔다가 또 돌아옵니다.")
    wait_for_end_in_view(visitor)
    scroll(visitor, -1500)
    visitor.page.wait_for_function("() => document.documentElement.classList.contains('away-from-end')")
    visitor.page.locator("button.to-end").evaluate("(button) => button.click()")
    draw_again(visitor)
    wait_for_end_in_view(visitor)


def test_who_scrolls_up_is_left_alone_and_gets_back_by_a_button(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    stream_slowly(visitor, fake_openai, "천천히 길게 답해 주세요.")
    scroll(visitor, -400)
    button = visitor.page.locator("button.to-end")
    expect(button).to_be_visible()
    visitor.wait_for_end(1)
    assert rest(visitor) > 400
    button.click()
    wait_for_end_in_view(visitor)
    expect(button).to_be_hidden()


def test_who_scrolls_back_to_the_end_is_taken_along_again(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    stream_slowly(visitor, fake_openai, "길게 답하는 동안 위로 갔다가 돌아옵니다.")
    scroll(visitor, -400)
    expect(visitor.page.locator("button.to-end")).to_be_visible()
    for number in range(60, 110, 10):  # a line that comes between a wheel and its scroll is a new end
        scroll(visitor, 100_000)
        expect(visitor.turn(1)).to_contain_text(f"{number}번째 줄입니다.")
    visitor.wait_for_end(1)
    wait_for_end_in_view(visitor)


def test_who_scrolls_up_with_a_finger_is_left_there(phone: Visitor, fake_openai: FakeOpenAI) -> None:
    stream_slowly(phone, fake_openai, "길게 답하는 동안 손가락으로 올립니다.")
    pull_down(phone, 400)
    expect(phone.page.locator("button.to-end")).to_be_visible()
    top = phone.page.locator("#stMain").evaluate("box => box.scrollTop")
    phone.wait_for_end(1)
    assert rest(phone) > 400
    phone.page.wait_for_function("top => Math.abs(document.querySelector('#stMain').scrollTop - top) <= 2", arg=top)


def test_earlier_turns_come_above_what_is_being_read(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 36)
    visitor.open(f"?session={chat.session_id}")
    wait_for_end_in_view(visitor)
    seventh = visitor.turn(7)
    scroll(visitor, -100_000)
    visitor.page.wait_for_function("turn => turn.getBoundingClientRect().top > 0", arg=seventh.element_handle())
    before = seventh.evaluate("turn => turn.getBoundingClientRect().top")
    visitor.find("earlier").locator("button").click()
    expect(visitor.turn(1)).to_be_attached()
    visitor.settle()
    visitor.page.wait_for_function(
        "(top) => Math.abs(document.querySelector('.st-key-turn_7').getBoundingClientRect().top - top) <= 2", arg=before
    )
