from __future__ import annotations

import pytest
from playwright.sync_api import expect

from graph.service import ChatService
from tests.browser.visitor import SETTLED, Visitor
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


def scroll(visitor: Visitor, pixels: int) -> None:
    visitor.page.mouse.move(500, 300)
    visitor.page.mouse.wheel(0, pixels)


def ask_for_long_answers(visitor: Visitor, fake_openai: FakeOpenAI, *asked: str, first: int = 1) -> None:
    for message in asked:
        fake_openai.script(text(LONG), to=message)
    visitor.ask(*asked, first=first)


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
    asked = "천천히 길게 답해 주세요."
    fake_openai.script(text(*(f"{number}번째 줄입니다.\n\n" for number in range(150)), pause_seconds=0.03), to=asked)
    visitor.open()
    visitor.write(asked)
    expect(visitor.turn(1)).to_contain_text("30번째 줄입니다.")
    scroll(visitor, -400)
    button = visitor.page.locator("button.to-end")
    expect(button).to_be_visible()
    visitor.wait_for_end(1)
    assert rest(visitor) > 400
    button.click()
    wait_for_end_in_view(visitor)
    expect(button).to_be_hidden()


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


def test_the_field_has_the_focus_where_one_types(visitor: Visitor) -> None:
    visitor.open()
    expect(visitor.field).to_be_focused()
    visitor.ask("초점을 보려는 대화입니다.")
    visitor.find("new_chat").locator("button").click()
    expect(visitor.find("suggestions")).to_be_visible()
    expect(visitor.field).to_be_focused()


def test_each_session_has_its_own_draft_and_a_reload_keeps_it(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("초안을 남길 대화입니다.")
    session_id = visitor.session_id
    visitor.field.fill("아직 보내지 않은 말")
    visitor.find("new_chat").locator("button").click()
    expect(visitor.find("suggestions")).to_be_visible()
    expect(visitor.field).to_have_value("")
    visitor.field.fill("새 대화의 말")
    visitor.find(f"session_{session_id}").locator("button").click()
    expect(visitor.field).to_have_value("아직 보내지 않은 말")
    visitor.page.reload()
    visitor.settle()
    expect(visitor.field).to_have_value("아직 보내지 않은 말")
    visitor.field.press("Enter")
    visitor.wait_for_end(2)
    expect(visitor.turn(2)).to_contain_text("아직 보내지 않은 말")
    visitor.page.reload()
    visitor.settle()
    expect(visitor.field).to_have_value("")


def test_what_is_typed_while_a_new_chat_begins_stays(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "답하는 동안 더 쓸 첫 물음입니다."
    fake_openai.script(text(*"천천히 나오는 답", pause_seconds=0.2), to=asked)
    visitor.open()
    visitor.write(asked)
    visitor.field.press_sequentially("이어서 쓰는 말", delay=60)
    expect(visitor.turn(1)).to_be_visible()
    visitor.wait_for_end(1)
    expect(visitor.field).to_have_value("이어서 쓰는 말")


def test_what_is_typed_while_the_page_opens_stays(visitor: Visitor) -> None:
    # The message field is there before the page's own script: somebody quick types in between.
    visitor.page.add_init_script(
        """new MutationObserver((_, observer) => {
            const field = document.querySelector(".st-key-ask textarea");
            if (!field) return;
            observer.disconnect();
            Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, "빠른 손");
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }).observe(document, { childList: true, subtree: true });"""
    )
    visitor.open()
    expect(visitor.field).to_have_value("빠른 손")


def test_what_is_typed_while_another_chat_opens_is_for_that_chat(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("먼저 연 대화입니다.")
    first = visitor.session_id
    visitor.field.press_sequentially("먼저 연 대화의 초안")
    visitor.page.evaluate(
        """() => {
            const field = document.querySelector(".st-key-ask textarea");
            const push = history.pushState.bind(history);
            history.pushState = (...change) => {
                push(...change);
                Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, "빠른 손");
                field.dispatchEvent(new Event("input", { bubbles: true }));
            };
        }"""
    )
    visitor.find("new_chat").locator("button").click()
    expect(visitor.find("empty")).to_be_visible()
    visitor.page.wait_for_selector(SETTLED)
    expect(visitor.field).to_have_value("빠른 손")
    visitor.page.goto(f"{visitor.address}?session={first}")
    visitor.settle()
    expect(visitor.field).to_have_value("먼저 연 대화의 초안")
