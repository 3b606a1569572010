from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import Locator, WebSocket, expect

from component.live import WATCH_SECONDS
from tests.browser.visitor import Visitor
from tests.browser.wire import Deliver, deliver_twice, lose, on_the_way
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI

# A busy browser: what should run at once runs after the timers that were due before. Streamlit sends a press so.
LATE: Final = """
const soon = window.setTimeout.bind(window);
window.setTimeout = (run, after, ...rest) => soon(run, after === 0 ? {milliseconds} : after, ...rest);
"""
WHILE_ANSWERING_MILLISECONDS: Final = 290  # a little less than a run of the live turn
WHILE_IDLE_MILLISECONDS: Final = 1000 * WATCH_SECONDS + 300
TIMES: Final = 6


def begin_answer(visitor: Visitor, fake_openai: FakeOpenAI, asked: str) -> None:
    fake_openai.script(hang("여기까지 씁니다. "), to=asked)
    visitor.open()
    visitor.write(asked)
    expect(visitor.turn(1)).to_contain_text("여기까지 씁니다.")
    visitor.find("stop").locator("button").wait_for()  # it is drawn after the chat


def test_a_refused_message_comes_back_however_late_the_browser_sends_it(
    visitor: Visitor, fake_openai: FakeOpenAI
) -> None:
    visitor.page.add_init_script(LATE.format(milliseconds=WHILE_ANSWERING_MILLISECONDS))
    begin_answer(visitor, fake_openai, "늦은 브라우저에서 오래 걸리는 답")
    for number in range(TIMES):
        visitor.write(f"성급한 말 {number}")
        expect(visitor.field).to_have_value(f"성급한 말 {number}")
        if number == 0:  # the same words aren't told twice within a few seconds
            expect(visitor.page.get_by_test_id("stToast")).to_be_visible()
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(1)


def press_along_with_a_timer(button: Locator, wire: WebSocket, key: str) -> None:
    presses: list[bytes] = []

    def is_its_own(request: str | bytes) -> bool:
        presses.extend([request] if isinstance(request, bytes) and f"-{key}".encode() in request else [])
        return len(presses) == len(["the timer's", "its own"])

    with wire.expect_event("framesent", is_its_own):
        button.click()


def test_a_press_that_a_timer_takes_along_counts_once(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "한 번만 다시 답할 말"
    fake_openai.script(text("첫째 답"), text("둘째 답"), to=asked)
    visitor.page.add_init_script(LATE.format(milliseconds=WHILE_IDLE_MILLISECONDS))
    with visitor.page.expect_websocket() as opened:
        visitor.open()
    visitor.ask(asked)
    press_along_with_a_timer(visitor.find("regenerate").locator("button"), opened.value, "regenerate")
    visitor.ask("그다음 말", first=2)
    assert len(fake_openai.bodies("chat", to=asked)) == len(["asked", "asked again"])


def test_what_a_press_opens_stays_open_though_a_timer_takes_it_along(visitor: Visitor) -> None:
    visitor.page.add_init_script(LATE.format(milliseconds=WHILE_IDLE_MILLISECONDS))
    with visitor.page.expect_websocket() as opened:
        visitor.open()
    visitor.ask("아주 긴 물음입니다. " * 200)
    more = visitor.turn(1).locator('[class*="st-key-more_"] button')
    press_along_with_a_timer(more, opened.value, "more_")
    visitor.ask("그다음 말", first=2)
    expect(visitor.turn(1).locator('[class*="st-key-whole_"]')).to_be_visible()


def test_a_dialog_that_is_accepted_counts_though_a_timer_takes_it_along(visitor: Visitor) -> None:
    visitor.page.add_init_script(LATE.format(milliseconds=WHILE_IDLE_MILLISECONDS))
    with visitor.page.expect_websocket() as opened:
        visitor.open()
    visitor.ask("지울 대화")
    menu = visitor.find(f"menu_{visitor.session_id}")
    menu.hover()
    menu.locator("button").click()
    visitor.page.get_by_role("menuitem", name="삭제").click()
    press_along_with_a_timer(visitor.find("dialog_confirm").locator("button"), opened.value, "dialog_confirm")
    expect(visitor.page.get_by_role("dialog")).to_have_count(0)
    expect(visitor.open_row).to_have_count(0)


@pytest.mark.parametrize("deliver", [lose, deliver_twice])
def test_a_message_is_said_once_whatever_becomes_of_its_request(visitor: Visitor, deliver: Deliver) -> None:
    on_the_way(visitor, "꼭 한 번", deliver)
    visitor.open()
    visitor.ask("꼭 한 번 전해질 첫마디", "그다음 말", "그다음 말")
    expect(visitor.page.locator('[class*="st-key-turn_"]')).to_have_count(3)
    expect(visitor.field).to_have_value("")


@pytest.mark.parametrize("deliver", [lose, deliver_twice])
def test_a_message_in_an_open_chat_is_said_once_too(visitor: Visitor, deliver: Deliver) -> None:
    on_the_way(visitor, "꼭 한 번", deliver)
    visitor.open()
    visitor.ask("첫마디", "꼭 한 번 전해질 말")
    visitor.page.reload()
    visitor.settle()
    expect(visitor.page.locator('[class*="st-key-turn_"]')).to_have_count(2)


def test_a_message_survives_that_the_page_is_left_at_once(visitor: Visitor) -> None:
    on_the_way(visitor, "남겨 두고", lose)
    visitor.open()
    visitor.ask("첫마디")
    visitor.write("남겨 두고 떠난 말")
    visitor.page.reload()
    visitor.settle()
    visitor.wait_for_end(2)
    expect(visitor.turn(2)).to_contain_text("남겨 두고 떠난 말")


def test_a_message_goes_to_the_chat_that_it_was_typed_in(visitor: Visitor) -> None:
    on_the_way(visitor, "옮겨 다녀도", lose)
    visitor.open()
    visitor.ask("첫째 대화")
    session_id = visitor.session_id
    visitor.write("옮겨 다녀도 첫째 대화의 말")
    visitor.find("new_chat").locator("button").click()
    expect(visitor.find("suggestions")).to_be_visible()
    visitor.ask("둘째 대화")
    expect(visitor.page.locator('[class*="st-key-turn_"]')).to_have_count(1)
    visitor.find(f"session_{session_id}").locator("button").click()
    expect(visitor.turn(2)).to_contain_text("옮겨 다녀도 첫째 대화의 말")


def test_what_is_typed_meanwhile_stays_behind_what_comes_back(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    visitor.page.add_init_script(LATE.format(milliseconds=WHILE_ANSWERING_MILLISECONDS))
    begin_answer(visitor, fake_openai, "두 마디를 기다리게 하는 답")
    visitor.write("먼저 한 말")
    visitor.field.press_sequentially("나중 말")
    expect(visitor.field).to_have_value("먼저 한 말\n나중 말")
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(1)
    visitor.field.press("Enter")
    visitor.wait_for_end(2)
    expect(visitor.turn(2)).to_contain_text("나중 말")


def test_stop_and_a_message_at_once_lose_neither(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    begin_answer(visitor, fake_openai, "멈추면서 다음 말을 할 답")
    visitor.field.fill("바로 다음 말")
    visitor.field.evaluate(
        """(field) => {
            document.querySelector(".st-key-stop button").click();
            const options = { key: "Enter", code: "Enter", keyCode: 13, bubbles: true, cancelable: true };
            field.dispatchEvent(new KeyboardEvent("keydown", options));
        }"""
    )
    expect(visitor.turn(1)).to_contain_text("중지했습니다.")
    # It is said if the answer has stopped by then, and comes back otherwise.
    visitor.page.wait_for_function(
        """(text) => document.querySelector(".st-key-ask textarea").value === text
            || document.querySelector("[class*='st-key-turn_2']")?.textContent.includes(text)""",
        arg="바로 다음 말",
    )


def test_presses_that_share_a_request_count_each(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    visitor.page.add_init_script(LATE.format(milliseconds=WHILE_ANSWERING_MILLISECONDS))
    begin_answer(visitor, fake_openai, "한 요청에 실린 말과 중지")
    visitor.field.fill("함께 실린 말")
    visitor.field.evaluate(
        f"""(field) => {{
            const options = {{ key: "Enter", code: "Enter", keyCode: 13, bubbles: true, cancelable: true }};
            field.dispatchEvent(new KeyboardEvent("keydown", options));
            setTimeout(() => document.querySelector(".st-key-stop button").click(), {WHILE_ANSWERING_MILLISECONDS} / 3);
        }}"""
    )
    visitor.wait_for_end(1)
    expect(visitor.turn(1)).to_contain_text("중지했습니다.")
    assert visitor.shared_requests


@pytest.mark.parametrize("composing", ["isComposing: true", "keyCode: 229", "shiftKey: true", "ctrlKey: true"])
def test_an_enter_that_ends_a_syllable_or_a_line_sends_nothing(visitor: Visitor, composing: str) -> None:
    visitor.open()
    visitor.field.fill("아직 쓰는 중")
    visitor.field.evaluate(
        f"""(field) => field.dispatchEvent(
            new KeyboardEvent("keydown", {{ key: "Enter", bubbles: true, cancelable: true, {composing} }}))"""
    )
    assert visitor.field.input_value() == "아직 쓰는 중"
    assert visitor.page.evaluate("sessionStorage.getItem('turnfold_outbox')") is None
    visitor.ask("보낸 말")
    expect(visitor.page.locator('[class*="st-key-turn_"]')).to_have_count(1)
