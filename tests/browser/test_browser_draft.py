from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.visitor import SETTLED, Visitor
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI


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
