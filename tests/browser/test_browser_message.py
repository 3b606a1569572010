"""The message field: its keys, its drafts, the focus, and what is seen from the moment that a message is sent."""

from __future__ import annotations

import re
import threading
from typing import Final

import pytest
from playwright.sync_api import expect

from graph.server.settings import Settings
from tests.browser.sight import EMPTY_PAGE, MESSAGE, NO_MESSAGE, jump, press_enter, sights, spots, watch
from tests.browser.visitor import SETTLED, Visitor
from tests.browser.wire import Hold
from tests.fake.openai_reply import Body, Reply, failure, text
from tests.fake.openai_server import FakeOpenAI

MESSAGE_CHARS: Final = Settings.model_fields["message_chars"].default
STILL_PIXELS: Final = 4
LONG_ANSWER: Final = "\n\n".join(["이 답은 화면을 채우도록 여러 문단으로 이어집니다."] * 12)
WAITED_FOR: Final = "답이 조금 늦게 오는 물음입니다."
AGAIN: Final = ("edit", "regenerate", "retry")
BUBBLE: Final = "\n\x04user\x12\x04user"  # as Streamlit sends it: with the question's bubble, before its words
ENTER: Final = """(field) => field.dispatchEvent(
    new KeyboardEvent("keydown", {{ key: "Enter", bubbles: true, cancelable: true, {composing} }}))"""
# Streamlit draws the message field before the page's own script runs: somebody quick types in between.
TYPE_AT_ONCE: Final = """new MutationObserver((_, observer) => {
    const field = document.querySelector(".st-key-ask textarea");
    if (!field) return;
    observer.disconnect();
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, "빠른 손");
    field.dispatchEvent(new Event("input", { bubbles: true }));
}).observe(document, { childList: true, subtree: true });"""


def test_an_enter_that_ends_a_syllable_or_a_line_sends_nothing(visitor: Visitor) -> None:
    visitor.open()
    visitor.field.focus()
    keyboard = visitor.context.new_cdp_session(visitor.page)
    keyboard.send("Input.imeSetComposition", {"text": "안녕하세", "selectionStart": 4, "selectionEnd": 4})
    expect(visitor.field).to_have_value("안녕하세")
    # What an input method sends for Enter while it composes: key code 229, with isComposing set.
    keyboard.send(
        "Input.dispatchKeyEvent",
        {"type": "rawKeyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229},
    )
    keyboard.send("Input.insertText", {"text": "안녕하세요"})
    expect(visitor.field).to_have_value("안녕하세요")
    for composing in ("isComposing: true", "keyCode: 229", "shiftKey: true", "ctrlKey: true"):
        visitor.field.evaluate(ENTER.format(composing=composing))
        assert visitor.field.input_value() == "안녕하세요"
        assert visitor.page.evaluate("sessionStorage.getItem('turnfold_outbox')") is None
    expect(visitor.page.locator('[class*="st-key-turn_"]')).to_have_count(0)
    visitor.field.press("Enter")
    visitor.wait_for_end(1)
    expect(visitor.turn(1)).to_contain_text("안녕하세요")
    expect(visitor.page.locator('[class*="st-key-turn_"]')).to_have_count(1)


def test_shortcuts_reach_field_and_new_chat(visitor: Visitor) -> None:
    visitor.open()
    expect(visitor.field).to_be_focused()
    visitor.ask("단축키를 시험하려고 대화를 시작합니다.")
    visitor.settle()  # the script that hears of the new chat puts the focus into the field
    visitor.page.keyboard.press("Control+KeyK")
    expect(visitor.find("search").locator("input")).to_be_focused()
    visitor.page.keyboard.press("Control+Shift+KeyS")
    expect(visitor.find("panel")).to_be_hidden()
    visitor.page.keyboard.press("Control+Shift+KeyS")
    expect(visitor.find("panel")).to_be_focused()
    visitor.page.evaluate("() => navigator.clipboard.writeText('')")
    visitor.page.keyboard.press("Control+Shift+Semicolon")
    visitor.page.wait_for_function("() => navigator.clipboard.readText()")
    visitor.page.keyboard.press("/")
    expect(visitor.field).to_be_focused()
    expect(visitor.field).to_have_value("")
    visitor.page.keyboard.press("Control+Shift+KeyO")
    expect(visitor.find("suggestions")).to_be_visible()
    expect(visitor.field).to_be_focused()
    visitor.page.go_back()
    visitor.page.get_by_role("tab", name="요약", exact=True).focus()
    visitor.page.keyboard.press("Control+Shift+KeyO")
    expect(visitor.field).to_be_focused()


def test_a_tab_keeps_the_focus_and_what_opened_a_dialog_a_form_or_the_search_has_it_again(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("초점을 시험하려고 대화를 시작합니다.")
    visitor.settle()
    menu = visitor.find(f"menu_{visitor.session_id}").get_by_role("button")
    for typed, closing in (("잘못 연 이름", "Escape"), ("새로 쓴 이름", "Enter")):
        menu.focus()
        menu.press("Enter")
        visitor.page.get_by_role("menuitem", name="이름 바꾸기").click()
        dialog = visitor.page.get_by_role("dialog")
        expect(dialog.get_by_role("textbox")).to_be_focused()
        visitor.page.keyboard.type(typed)
        visitor.page.keyboard.press(closing)
        expect(dialog).to_have_count(0)
        expect(menu).to_be_focused()
    expect(visitor.find(f"session_{visitor.session_id}")).to_have_text("새로 쓴 이름")
    edit = visitor.turn(1).get_by_role("button", name="질문 편집")
    edit.press("Enter")
    visitor.find("edit_cancel").get_by_role("button").press("Enter")
    expect(edit).to_be_focused()
    opener = visitor.find("icon_find").get_by_role("button")
    opener.press("Enter")
    expect(visitor.find("find").locator("input")).to_be_focused()
    visitor.page.keyboard.press("Escape")
    expect(visitor.every("find")).to_have_count(0)
    expect(opener).to_be_focused()
    visitor.page.get_by_role("tab", name="요약", exact=True).focus()
    visitor.page.keyboard.press("ArrowRight")
    expect(visitor.find("panel").get_by_text("📊 요약 통계")).to_be_visible()
    expect(visitor.page.get_by_role("tab", name="통계")).to_be_focused()  # Streamlit disables tabs while it draws them


@pytest.mark.slow
def test_what_goes_with_its_press_leaves_the_focus_near_it(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("초점: 여러 개를 고르려고 대화를 시작합니다.")
    visitor.begin_chat()
    expect(visitor.field).to_be_focused()  # the script has heard of it
    opener = visitor.find("icon_select").get_by_role("button")
    for last in ("cancel_selection", "delete_ticked"):
        opener.press("Enter")
        box = visitor.page.get_by_role("checkbox", name="초점: 여러 개를 고르려고 대화를 시작합니다.", exact=True)
        expect(opener).to_be_focused()
        box.press("Space")
        expect(visitor.find("delete_ticked").get_by_role("button")).to_be_enabled()
        visitor.find(last).get_by_role("button").press("Enter")
        expect(box).to_have_count(0)
        expect(opener).to_be_focused()
    undo = visitor.find("undo_delete").get_by_role("button")
    undo.press("Enter")
    expect(undo).to_have_count(0)
    expect(visitor.field).to_be_focused()


def test_field_and_panel_are_reached_past_the_list_of_chats(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("건너뛰기를 시험하려고 대화를 시작합니다.")
    visitor.settle()
    expect(visitor.page.get_by_test_id("stSkipToContent")).to_have_text("대화로 건너뛰기")
    visitor.page.get_by_role("button", name="메시지 입력란으로 건너뛰기").press("Enter")
    expect(visitor.field).to_be_focused()
    visitor.page.get_by_role("button", name="패널로 건너뛰기").press("Enter")
    expect(visitor.find("panel")).to_be_focused()


def test_each_session_has_its_own_draft_and_a_reload_keeps_it(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("초안을 남길 대화입니다.")
    session_id = visitor.session_id
    visitor.field.fill("아직 보내지 않은 말")
    visitor.begin_chat()
    expect(visitor.field).to_have_value("")
    visitor.field.fill("새 대화의 말")
    visitor.find(f"session_{session_id}").locator("button:visible").click()
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


@pytest.mark.parametrize("who", ["visitor", pytest.param("phone", marks=pytest.mark.slow)])
def test_a_message_is_seen_at_once_and_only_once_where_its_turn_will_stand(
    who: str, request: pytest.FixtureRequest
) -> None:
    visitor: Visitor = request.getfixturevalue(who)
    visitor.open()
    for number, message in enumerate(("바로 보여야 하는 첫마디", "바로 보여야 하는 질문"), 1):
        visitor.field.fill(message)
        assert press_enter(visitor) == message
        visitor.wait_for_end(number)
        expect(visitor.page.locator("i.heard")).to_have_attribute("data-turn", "finished")  # else the next one waits
        assert sights(visitor) == {MESSAGE}
        assert len(spots(visitor)) == 1


@pytest.mark.parametrize("sends", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_no_frame_of_a_send_shows_the_message_twice_or_moves_the_chat_back(
    visitor: Visitor, fake_openai: FakeOpenAI, sends: int
) -> None:
    visitor.open()
    for number in range(1, sends + 1):
        message = f"{number}번째로 보내는 말은 한 번만 보여야 합니다."
        fake_openai.script(text(LONG_ANSWER, pause_seconds=0.005), to=message)
        visitor.field.fill(message)
        assert press_enter(visitor) == message
        visitor.wait_for_end(number)
        expect(visitor.page.locator("i.heard")).to_have_attribute("data-turn", "finished")
        assert sights(visitor) == {MESSAGE}, number
        assert jump(visitor) <= STILL_PIXELS, number


@pytest.mark.parametrize("kind", ["queued", *(pytest.param(kind, marks=pytest.mark.slow) for kind in AGAIN)])
def test_a_message_that_goes_otherwise_is_shown_once_too(visitor: Visitor, fake_openai: FakeOpenAI, kind: str) -> None:
    message, gate = f"이 말은 다르게 갑니다: {kind}", threading.Event()

    def answer(_: Body) -> Reply:
        gate.wait(60)
        return text(LONG_ANSWER, pause_seconds=0.02)

    fake_openai.script(answer, to=WAITED_FOR)
    if kind in {"retry", "regenerate"}:
        first = failure(401) if kind == "retry" else text("처음 답입니다.")
        fake_openai.script(first, text(LONG_ANSWER), to=message)
    else:
        fake_openai.script(text(LONG_ANSWER, pause_seconds=0.05), to=message)
    visitor.open()
    visitor.write(WAITED_FOR)
    expect(visitor.turn(1)).to_be_visible()
    if kind == "queued":
        visitor.write(message)
        expect(visitor.page.locator(".waiting p")).to_have_text(message)
        expect(visitor.page.locator("i.heard")).to_have_attribute("data-waiting", re.compile(r"^[0-9a-f]{24}\.0$"))
        watch(visitor, message)
        gate.set()
        visitor.wait_for_end(2)
    else:
        gate.set()
        visitor.wait_for_end(1)
        if kind == "edit":
            visitor.turn(1).get_by_role("button", name="질문 편집").click()
            visitor.page.locator(".st-key-turn_1 textarea").fill(message)
            watch(visitor, message)
            visitor.find("edit_confirm").get_by_role("button").click()
            expect(visitor.page.locator(".siblings")).to_be_visible()
        else:
            visitor.ask(message, first=2)
            expect(visitor.page.locator("i.heard")).to_have_attribute("data-turn", re.compile("finished|failed"))
            watch(visitor, message)
            visitor.find(kind).get_by_role("button").click()
            expect(visitor.turn(2)).to_contain_text(LONG_ANSWER[:20])
        expect(visitor.page.locator("i.heard")).to_have_attribute("data-turn", "finished")
        visitor.page.wait_for_selector(SETTLED)
    assert sights(visitor) - {NO_MESSAGE} == {MESSAGE}
    assert (NO_MESSAGE in sights(visitor)) == (kind == "edit")  # it is in the form until the branch is drawn
    assert kind == "edit" or jump(visitor) <= STILL_PIXELS


@pytest.mark.slow
@pytest.mark.parametrize(("number", "parts"), [(1, ()), (2, (BUBBLE,))], ids=["turn", "bubble"])
def test_a_message_keeps_its_place_while_its_turn_is_half_drawn(
    visitor: Visitor, number: int, parts: tuple[str, ...]
) -> None:
    hold = Hold(visitor)
    visitor.open()
    visitor.ask(*["질문이 이미 하나 있습니다."] * (number - 1))
    hold.behind = [f"turn_{number}", *parts]
    expect(visitor.page.locator("html")).to_have_attribute("data-panel", "beside")  # it takes room from the chat
    visitor.field.fill("말풍선보다 늦게 그려지는 말")
    press_enter(visitor)
    hold.wait()
    hold.let_go()
    expect(visitor.turn(number)).to_contain_text("말풍선보다 늦게 그려지는 말")
    assert sights(visitor) == {MESSAGE}
    assert len(spots(visitor)) == 1


@pytest.mark.slow
def test_what_is_refused_or_no_message_gives_the_empty_page_back(visitor: Visitor) -> None:
    visitor.open()
    visitor.field.fill("/compact")
    assert press_enter(visitor) is None
    expect(visitor.page.get_by_test_id("stToast")).to_be_visible()
    assert sights(visitor) == {EMPTY_PAGE}
    long = "긴" * (MESSAGE_CHARS + 1)
    visitor.field.fill(long)
    shown = press_enter(visitor)
    assert shown
    assert long.startswith(shown)
    expect(visitor.field).to_have_value(long)
    expect(visitor.find("empty").get_by_role("heading")).to_be_in_viewport()
    expect(visitor.find("suggestions").get_by_role("button")).to_have_count(4)
    assert sights(visitor) == {MESSAGE, EMPTY_PAGE}


@pytest.mark.slow
def test_what_is_typed_while_a_new_chat_begins_stays(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "답하는 동안 더 쓸 첫 물음입니다."
    fake_openai.script(text(*"천천히 나오는 답", pause_seconds=0.2), to=asked)
    visitor.page.add_init_script(TYPE_AT_ONCE)
    visitor.open()
    expect(visitor.field).to_have_value("빠른 손")
    visitor.write(asked)
    visitor.field.press_sequentially("이어서 쓰는 말", delay=60)
    expect(visitor.turn(1)).to_be_visible()
    visitor.wait_for_end(1)
    expect(visitor.field).to_have_value("이어서 쓰는 말")


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_page_that_went_blank_comes_back_with_its_draft(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("화면이 사라져도 남아 있을 말입니다.")
    visitor.field.fill("아직 보내지 않은 말")
    visitor.page.evaluate(
        "() => { document.getElementById('root').remove(); setTimeout(() => { throw new Error('blank'); }); }"
    )
    expect(visitor.turn(1)).to_contain_text("화면이 사라져도 남아 있을 말입니다.")
    expect(visitor.field).to_have_value("아직 보내지 않은 말")
    assert all("blank" in complaint for complaint in visitor.complaints)
    visitor.complaints.clear()


@pytest.mark.slow
def test_on_the_way_through_the_list_only_the_chat_that_has_the_focus_stops_at_its_menu(visitor: Visitor) -> None:
    visitor.open()
    rows = []
    for number in (1, 2, 3):
        visitor.begin_chat()
        visitor.ask(f"목록의 {number}번째 대화입니다.")
        rows.append(visitor.session_id)
    visitor.open()
    newest, middle, oldest = (visitor.find(f"session_{row}").locator("button:visible") for row in reversed(rows))
    expect(visitor.field).to_be_focused()  # a page that opens takes the focus there, even from the list
    oldest.focus()
    visitor.page.keyboard.press("Shift+Tab")
    expect(middle).to_be_focused()
    visitor.page.keyboard.press("Shift+Tab")
    expect(newest).to_be_focused()
    visitor.page.keyboard.press("Tab")
    expect(visitor.find(f"menu_{rows[2]}").locator("button")).to_be_focused()
    visitor.page.keyboard.press("Tab")
    expect(middle).to_be_focused()
