"""What somebody does while an answer, a summary or a file is still on its way: nothing of it is lost."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Locator, expect

from component.words.wording import words_of
from graph.service import ChatService
from tests.browser.conftest import preparing, scripted_settings, started, visiting
from tests.browser.sight import MESSAGE, press_enter, sights
from tests.browser.stage import WIDE, staged
from tests.browser.state_attach import attach, choose, sent_with, wait_for_files
from tests.browser.state_project import inside, press
from tests.browser.state_setting import BACKGROUNDS
from tests.browser.visitor import Visitor
from tests.browser.wire import lose_until
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import Body, Reply, failure, hang, slowed, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.pdf import pdf_of

ASKED: Final = "그동안 다른 일을 할 답을 주세요."
ANSWER: Final = "이제 끝났습니다."
EDITED: Final = "예산을 두 배로 고쳐 쓴 요약입니다."
STEERING: Final = words_of("ko").steering
# What a browser with much to do does.
LATE_TIMERS: Final = """
const early = window.setTimeout;
window.setTimeout = (act, milliseconds = 0, ...rest) => early(act, milliseconds + 300, ...rest);
"""


@pytest.fixture
def may_answer(fake_openai: FakeOpenAI) -> Iterator[threading.Event]:
    """The answer to ASKED waits for this."""
    gate = threading.Event()

    def answer(_: Body) -> Reply:
        gate.wait(60)
        return text(ANSWER)

    fake_openai.script(answer, to=ASKED)
    yield gate
    gate.set()


@pytest.fixture
def chat(other_server: ChatService) -> Chat:
    """Four turns, of which three are folded."""
    made = Chat(other_server)
    for number in range(1, 5):
        made.say(question(number) * 3)
        made.wait_for_folds()
    return made


def ask(visitor: Visitor, number: int = 1) -> None:
    visitor.write(ASKED)
    expect(visitor.turn(number)).to_be_visible()


def end(visitor: Visitor, gate: threading.Event, number: int = 1) -> None:
    gate.set()
    expect(visitor.turn(number)).to_contain_text(ANSWER)
    expect(visitor.turn(number).get_by_role("status")).to_have_count(0)


def dialog_of(visitor: Visitor) -> Locator:
    return visitor.page.get_by_test_id("stDialog")


def open_panel(visitor: Visitor) -> Locator:
    visitor.find("open_panel").locator("button").click()
    panel = visitor.page.get_by_role("dialog", name="요약 패널")
    expect(panel).to_be_focused()
    return panel


def card(visitor: Visitor) -> Locator:
    return visitor.find("panel").locator('[class*="st-key-card_"]').first


def pick(visitor: Visitor, choice: str) -> None:
    card(visitor).locator('[class*="st-key-menu_card_"] button').click()
    visitor.page.get_by_role("menuitem", name=choice).click()


@pytest.mark.slow
def test_the_panel_stays_over_the_chat_until_it_is_closed(phone: Visitor, may_answer: threading.Event) -> None:
    phone.open()
    ask(phone)
    panel = open_panel(phone)
    assert phone.find("ask").evaluate("field => field.closest('[inert]') !== null")
    end(phone, may_answer)
    expect(panel).to_be_visible()
    panel.get_by_role("button", name="패널 닫기").click()
    phone.wait_for_end(1)
    expect(panel).to_be_hidden()


@pytest.mark.slow
def test_escape_closes_the_panel_over_the_chat_and_stops_no_answer(phone: Visitor, may_answer: threading.Event) -> None:
    phone.open()
    ask(phone)
    panel = open_panel(phone)
    phone.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(phone.find("open_panel").locator("button")).to_be_focused()
    expect(phone.find("stop")).to_be_visible()
    end(phone, may_answer)


def test_other_widgets_leave_a_running_answer_alone(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "천천히 답해 주세요."
    fake_openai.script(slowed(text(" ".join(f"낱말{number}" for number in range(40))), 0.06), to=asked)
    visitor.open()
    visitor.write(asked)
    expect(visitor.turn(1)).to_contain_text("낱말3")
    visitor.open_statistics()
    visitor.begin_chat()
    visitor.page.locator('[class*="st-key-session_"] button', has_text=asked).first.click()
    visitor.wait_for_end(1)
    expect(visitor.turn(1)).to_contain_text("낱말39")
    assert len(fake_openai.bodies("chat", to=asked)) == 1


@pytest.mark.slow
def test_a_name_and_a_question_that_are_being_typed_survive_the_end_of_an_answer(
    visitor: Visitor, may_answer: threading.Event
) -> None:
    visitor.open()
    visitor.ask("먼저 짧은 물음을 하나 드립니다.")
    ask(visitor, 2)
    visitor.turn(1).get_by_role("button", name="질문 편집").click()
    field = visitor.turn(1).get_by_role("textbox")
    field.press_sequentially(" 다시 묻습니다.")
    menu = visitor.find(f"menu_{visitor.session_id}")
    menu.hover()
    menu.locator("button").click()
    visitor.page.get_by_role("menuitem", name="이름 바꾸기").click()
    dialog_of(visitor).get_by_role("textbox").fill("새로 지은 이름")
    end(visitor, may_answer, 2)
    expect(dialog_of(visitor).get_by_role("textbox")).to_have_value("새로 지은 이름")
    dialog_of(visitor).get_by_role("button", name="저장").click()
    visitor.wait_for_end(2)
    expect(visitor.open_row).to_contain_text("새로 지은 이름")
    expect(dialog_of(visitor)).to_have_count(0)
    expect(field).to_have_value("먼저 짧은 물음을 하나 드립니다. 다시 묻습니다.")


@pytest.mark.slow
def test_a_summary_is_edited_while_an_answer_is_written(
    visitor: Visitor, chat: Chat, may_answer: threading.Event
) -> None:
    visitor.open(f"?session={chat.session_id}")
    ask(visitor, 5)
    pick(visitor, "편집")
    field = dialog_of(visitor).get_by_role("textbox")
    field.fill("버릴 말")
    visitor.page.keyboard.press("Escape")
    expect(dialog_of(visitor)).to_have_count(0)
    expect(visitor.find("stop")).to_be_visible()  # the dialog had the key alone
    pick(visitor, "편집")
    field.fill(EDITED)
    end(visitor, may_answer, 5)
    expect(field).to_have_value(EDITED)
    visitor.find("dialog_confirm").locator("button").click()
    expect(dialog_of(visitor)).to_have_count(0)
    expect(card(visitor)).to_contain_text(EDITED)


@pytest.mark.slow
def test_a_message_is_pinned_while_an_answer_is_written(visitor: Visitor, chat: Chat, fake_openai: FakeOpenAI) -> None:
    asked = "천천히 길게 답해 주세요, 그동안 고정합니다."
    fake_openai.script(hang("첫 문장은 여기까지입니다. "), to=asked)
    visitor.open(f"?session={chat.session_id}")
    visitor.write(asked)
    expect(visitor.turn(5)).to_contain_text("첫 문장은 여기까지입니다.")
    visitor.turn(4).hover()
    pin = visitor.turn(4).locator("button.pin").nth(1)
    visitor.turn(4).locator("details.about summary").click()
    for pressed in ("true", "false"):  # pinned, it stands beside the menu
        pin.click()
        expect(pin).to_have_attribute("aria-pressed", pressed)
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(5)


@pytest.mark.slow
def test_a_summary_is_made_anew_with_a_wish_while_the_page_stays_usable(
    visitor: Visitor, chat: Chat, fake_openai: FakeOpenAI
) -> None:
    gate = threading.Event()

    def summarise(_: Body) -> Reply:
        gate.wait(60)
        return text(
            "(1턴) 예산은 120만 원이고 담당자는 김민수, 서버 이전은 10월 1일이다. 데이터베이스를 먼저 복제한다."
        )

    fake_openai.script(summarise, kind="summary", to="예산을 빠짐없이")
    visitor.open(f"?session={chat.session_id}")
    pick(visitor, STEERING.remake)
    dialog_of(visitor).get_by_role("textbox").fill("예산을 빠짐없이")
    visitor.find("dialog_confirm").locator("button").click()
    expect(visitor.page.get_by_text("1-3턴을 요약하는 중…")).to_be_visible()
    expect(visitor.find("stop")).to_have_count(0)
    visitor.field.fill("쓰던 말")
    gate.set()
    expect(visitor.find("change_bar")).to_contain_text("다시 요약했습니다")
    expect(card(visitor)).to_contain_text("v2")
    expect(visitor.field).to_have_value("쓰던 말")
    visitor.find("take_back_bar").locator("button").click()
    expect(card(visitor)).not_to_contain_text("v2")


@pytest.mark.slow
def test_what_a_slow_model_folds_again_is_told_in_the_panel(
    phone: Visitor, chat: Chat, fake_openai: FakeOpenAI
) -> None:
    gate = threading.Event()

    def summarize(_: Body) -> Reply:
        gate.wait(60)
        return text("서버 이전은 10월 1일, 담당자는 김민수, 예산은 120만 원입니다.")

    fake_openai.script(summarize, kind="summary", to=question(1))
    phone.open(f"?session={chat.session_id}")
    panel, newest = open_panel(phone), card(phone)
    for choice in (STEERING.undo_fold, STEERING.fold_again):
        # Until a run ends, what it has moved also stands where it was.
        newest.locator('[class*="st-key-menu_card_"] button').first.click()
        phone.page.get_by_role("menuitem", name=choice, exact=True).click()
        expect(newest).to_contain_text(STEERING.undone)
    expect(panel.locator(".st-key-change_panel")).to_contain_text(STEERING.undo_fold_done.format(turns="1-3"))
    phone.page.wait_for_timeout(1000)  # longer than a quick model, whose result the press itself tells
    gate.set()
    expect(panel.locator(".st-key-change_panel")).to_contain_text(STEERING.fold_again_done.format(turns="1-3"))
    expect(newest).to_contain_text("예산은 120만 원")
    expect(newest).not_to_contain_text(STEERING.undone)


@pytest.mark.slow
def test_choosing_a_theme_loses_neither_draft_nor_answer(visitor: Visitor, may_answer: threading.Event) -> None:
    visitor.open()
    ask(visitor)
    visitor.field.fill("아직 보내지 않은 말")
    visitor.page.evaluate("window.stays = true")
    visitor.find("theme").get_by_role("radio", name="다크").press("Enter")
    expect(visitor.page.get_by_test_id("stApp")).to_have_css("background-color", BACKGROUNDS["dark"])
    end(visitor, may_answer)
    visitor.wait_for_end(1)
    expect(visitor.field).to_have_value("아직 보내지 않은 말")
    assert visitor.page.evaluate("window.stays")


@pytest.mark.slow
def test_the_last_of_quick_changes_holds_though_each_waits_for_the_database(visitor: Visitor, folder: Path) -> None:
    visitor.open()
    visitor.ask(question(1))
    thumb = visitor.find("rate").get_by_role("slider")
    thumb.focus()
    with closing(sqlite3.connect(folder / "data" / "turnfold.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(4):
            thumb.press("ArrowRight")
            visitor.page.wait_for_timeout(300)  # longer than the page waits before it tells the server
        other.execute("ROLLBACK")
        rates = "SELECT compression_rate FROM session WHERE session_id = ?"
        # The words follow the slider before the server has heard of it.
        for _ in range(100):
            if other.execute(rates, [visitor.session_id]).fetchall() == [(0.5,)]:
                break
            visitor.page.wait_for_timeout(100)
        visitor.page.reload()
        visitor.settle()
        expect(visitor.find("panel").get_by_text("현재 압축률: 0.5")).to_be_visible()
        assert other.execute(rates, [visitor.session_id]).fetchall() == [(0.5,)]


@pytest.mark.slow
def test_quick_moves_of_the_slider_all_count_while_an_answer_is_written_and_folded(
    phone: Visitor, chat: Chat, may_answer: threading.Event
) -> None:
    chat.ask(5, 5)
    phone.open(f"?session={chat.session_id}")
    ask(phone, 6)
    slider = open_panel(phone).get_by_role("slider")
    slider.focus()
    for number, rate in ((4, "0.5"), (2, "0.4")):
        for _ in range(number):
            slider.press("ArrowRight" if rate == "0.5" else "ArrowLeft")
        may_answer.set()  # the second time what it redraws and folds comes meanwhile
        expect(phone.find("panel").get_by_text(f"현재 압축률: {rate}", exact=True)).to_be_visible()
        expect(slider).to_have_value(rate)
    phone.wait_for_end(6)
    chat.wait_for_folds()
    expect(slider).to_have_value("0.4")
    # The slider and the words follow a press at once, the server hears of it a moment later.
    chat.wait_until(lambda: chat.view.compression_rate == 0.4)
    expect(slider).to_have_value("0.4")


@pytest.mark.slow
def test_the_tab_of_the_input_follows_the_next_answer_unless_another_turn_is_chosen(
    visitor: Visitor, chat: Chat
) -> None:
    visitor.open(f"?session={chat.session_id}")
    panel = visitor.find("panel")
    panel.get_by_role("tab", name="모델 입력").click()
    visitor.ask(question(5), first=5)
    expect(panel.get_by_text("5턴의 입력")).to_be_visible()
    chooser = panel.locator('[class*="st-key-input_turn_"]').get_by_role("combobox")
    chooser.scroll_into_view_if_needed()
    visitor.page.wait_for_timeout(300)  # a list closes when what it stands in is scrolled
    chooser.click()
    visitor.page.get_by_role("option", name="4턴의 입력", exact=True).click()
    expect(panel.get_by_text("4턴의 입력")).to_be_visible()
    visitor.ask(question(6), first=6)
    expect(panel.get_by_text("4턴의 입력")).to_be_visible()


@pytest.mark.slow
def test_files_are_kept_while_the_chat_is_busy_and_can_be_taken_off(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    fake_openai.script(hang("여기까지 씁니다. "), to=ASKED)
    is_heard = threading.Event()
    is_heard.set()
    lose_until(visitor, "파일과 함께 기다릴 말", is_heard)
    visitor.open()
    ask(visitor)
    visitor.find("stop").locator("button").wait_for()  # it is drawn after the chat
    attach(visitor, ("a.txt", b"first"), ("b.txt", b"second"), ("c.txt", b"third"))
    visitor.find("icon_detach_2").locator("button").click()
    wait_for_files(visitor, 2)
    visitor.write("파일과 함께 기다릴 말")
    expect(visitor.find("attached")).to_have_count(0)
    back = visitor.page.locator(".waiting button[data-queue='back']")
    expect(visitor.page.locator(".waiting p")).to_have_text("📎 파일과 함께 기다릴 말")
    back.click()
    expect(visitor.field).to_have_value("파일과 함께 기다릴 말")
    visitor.find("icon_detach_0").locator("button").click()
    expect(visitor.find("attached")).not_to_contain_text("a.txt")
    is_heard.clear()
    visitor.field.press("Enter")
    expect(back).to_be_visible()
    choose(visitor, ("later.txt", b"later"))
    wait_for_files(visitor, 2)
    is_heard.set()
    wait_for_files(visitor, 1)
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(2)
    assert sent_with(fake_openai, "파일과 함께 기다릴 말")[1] == [("b.txt", "second")]
    expect(visitor.find("attached")).to_contain_text("later.txt")


@pytest.mark.slow
def test_messages_wait_their_turn_in_order_over_a_reload_and_behind_a_failure(
    visitor: Visitor, fake_openai: FakeOpenAI, may_answer: threading.Event
) -> None:
    first, second, third = (f"{name} 기다리는 말" for name in ("첫째로", "둘째로", "셋째로"))
    fake_openai.script(failure(401), to=first)
    visitor.open()
    ask(visitor)
    for message in (first, second, third):
        visitor.write(message)
    waiting = visitor.page.locator(".waiting")
    expect(waiting.locator("p")).to_have_text([first, second, third])
    waiting.get_by_role("button", name=words_of("ko").queue.edit).nth(1).click()
    waiting.locator("textarea").fill(f"{second}, 고침")
    waiting.get_by_role("button", name=words_of("ko").queue.edit).nth(1).click()
    expect(waiting.locator("textarea")).to_have_value(third)
    visitor.page.keyboard.press("Enter")
    visitor.page.reload()
    expect(waiting.locator("p")).to_have_text([first, f"{second}, 고침", third])
    may_answer.set()
    expect(visitor.turn(2)).to_contain_text(first)
    expect(waiting).to_contain_text(words_of("ko").queue.held)
    expect(waiting.locator("p")).to_have_text([f"{second}, 고침", third])
    waiting.get_by_role("button", name=words_of("ko").queue.send).click()
    visitor.wait_for_end(4)
    expect(visitor.turn(3)).to_contain_text(f"{second}, 고침")
    expect(visitor.turn(4)).to_contain_text(third)
    expect(waiting).to_have_count(0)


@pytest.mark.slow
def test_a_message_that_is_edited_waits_though_the_one_before_it_goes(
    visitor: Visitor, may_answer: threading.Event
) -> None:
    visitor.open()
    ask(visitor)
    visitor.write("첫째로 보낼 말")
    visitor.write("둘째로 보낼")
    waiting = visitor.page.locator(".waiting")
    waiting.get_by_role("button", name=words_of("ko").queue.edit).nth(1).click()
    field = waiting.locator("textarea")
    expect(field).to_be_focused()
    visitor.page.keyboard.type(" 고친")
    field.dispatch_event("focusout")  # somebody looks into another window
    may_answer.set()
    visitor.wait_for_end(2)
    visitor.page.keyboard.type(" 말")
    expect(field).to_have_value("둘째로 보낼 고친 말")
    visitor.page.keyboard.press("Enter")
    visitor.wait_for_end(3)
    expect(visitor.turn(3)).to_contain_text("둘째로 보낼 고친 말")


@pytest.mark.slow
def test_a_message_comes_back_if_the_page_is_left_before_its_file_was_read(visitor: Visitor) -> None:
    lose_until(visitor, "note.txt", threading.Event())
    visitor.open()
    choose(visitor, ("note.txt", b"text"))
    expect(visitor.page.locator("p.reading")).to_be_visible()
    visitor.write("파일과 함께 보낼 말")
    visitor.page.reload()
    visitor.settle()
    expect(visitor.field).to_have_value("파일과 함께 보낼 말")
    expect(visitor.find("notice")).to_contain_text(words_of("ko").attachment.reasons["lost"])


@pytest.mark.slow
def test_a_message_waits_for_the_answer_of_a_chat_that_was_left(
    visitor: Visitor, fake_openai: FakeOpenAI, may_answer: threading.Event
) -> None:
    visitor.open()
    ask(visitor)
    session_id = visitor.session_id
    visitor.write("떠난 뒤에 보낼 말")
    expect(visitor.page.locator(".waiting")).to_be_visible()
    visitor.begin_chat()
    may_answer.set()
    fake_openai.wait_until(lambda endpoint: bool(endpoint.bodies("chat", to="떠난 뒤에 보낼 말")))
    visitor.open(f"?session={session_id}")
    expect(visitor.turn(2)).to_contain_text("떠난 뒤에 보낼 말")


@pytest.mark.slow
@pytest.mark.parametrize("hurry", ["", LATE_TIMERS], ids=["idle", "busy"])
def test_what_is_typed_while_a_file_is_read_stays(visitor: Visitor, fake_openai: FakeOpenAI, hurry: str) -> None:
    visitor.page.add_init_script(hurry)
    visitor.open()
    choose(visitor, ("pages.pdf", pdf_of(*["page"] * 40)))
    visitor.write("먼저 보낸 말")
    visitor.write("곧 보낸 말")
    visitor.field.press_sequentially("다음 말")
    visitor.wait_for_end(2)
    expect(visitor.field).to_have_value("다음 말")
    assert sent_with(fake_openai, "먼저 보낸 말")[1][0].name == "pages.pdf"
    assert sent_with(fake_openai, "곧 보낸 말")[1] == []


@pytest.mark.slow
def test_a_file_needs_no_words(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    visitor.open()
    attach(visitor, ("dropped.md", b"dropped text"))
    visitor.field.fill("아직 쓰는 중")
    visitor.field.evaluate(
        """(field) => field.dispatchEvent(
            new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, isComposing: true }))"""
    )
    assert visitor.field.input_value() == "아직 쓰는 중"
    wait_for_files(visitor, 1)
    visitor.field.fill("")
    visitor.field.press("Enter")
    visitor.wait_for_end(1)
    expect(visitor.turn(1).get_by_test_id("stChatMessage").first.get_by_text("dropped.md")).to_be_visible()
    assert sent_with(fake_openai, "")[1] == [("dropped.md", "dropped text")]


@pytest.mark.slow
def test_a_press_and_a_text_in_the_tab_of_a_project_count_while_an_answer_is_written(
    chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI, may_answer: threading.Event
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    settings = {"PROJECT_ROOTS": str(root)}
    with (
        started(tmp_path, {**scripted_settings(fake_openai), **settings}) as address,
        preparing(tmp_path, fake_openai, **settings) as service,
        staged(chromium, address, WIDE, fake_openai, service, tmp_path) as stage,
    ):
        projects, visitor = service.projects, stage.visitor
        workflow = projects.workflow(str(root))
        workflow.open_plan("배포")
        workflow.open_task("첫째 일")
        workflow.open_task("둘째 일")
        visitor.open()
        visitor.open_settings(stage.words.project.tab)
        visitor.find_choice("project_listed").get_by_role("combobox").click()
        visitor.page.get_by_role("option", name=root.name).first.click()
        expect(visitor.find("project_below")).to_be_visible()
        stage.close_dialog()
        expect(visitor.find("known")).to_be_visible()
        stage.open_tab(stage.words.project.tab)
        visitor.field.fill(ASKED)
        assert press_enter(visitor) == ASKED
        expect(visitor.find("stop")).to_be_visible()
        press(stage, "complete_task_0")
        expect(inside(stage, "tasks")).to_contain_text(stage.words.project.done_tasks.format(count=1))
        assert [task.is_done for task in projects.get(str(root)).plans[0].tasks] == [True, False]
        press(stage, "new_decisions")
        stage.panel.get_by_role("textbox").fill("답이 끝나도 남을 글")
        may_answer.set()
        visitor.wait_for_end(1)
        assert sights(visitor) == {MESSAGE}  # the card of the project goes with the first message
        projects.context(str(root)).edit_summary("다른 곳에서 고친 요약")
        visitor.page.wait_for_timeout(4_000)  # longer than the page waits to look for what others did
        expect(stage.panel.get_by_role("textbox")).to_have_value("답이 끝나도 남을 글")
        press(stage, "confirm")
        expect(inside(stage, "summary")).to_contain_text("다른 곳에서 고친 요약")
        assert [decision.text for decision in projects.get(str(root)).decisions] == ["답이 끝나도 남을 글"]


@pytest.mark.slow
def test_a_title_comes_into_the_list_by_itself(chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI) -> None:
    first, title, gate = "서버를 새 곳으로 옮기려고 합니다.", "서버 이전 계획", threading.Event()

    def answer(_: Body) -> Reply:
        assert gate.wait(60)
        return text(f'"{title}."')

    fake_openai.script(answer, kind="title", to=first)
    settings = {**scripted_settings(fake_openai), "AUTO_TITLES": "true"}
    with started(tmp_path, settings) as address, visiting(chromium, address) as visitor:
        visitor.open()
        visitor.ask(first, "언제가 좋을까요?")
        listed = visitor.find(f"session_{visitor.session_id}").locator("button").first
        expect(listed).to_have_text(first)
        visitor.page.evaluate("() => { window.isSamePage = true; }")
        visitor.field.fill("아직 쓰고 있는 말")
        gate.set()
        expect(listed).to_have_text(title)
        expect(visitor.field).to_have_value("아직 쓰고 있는 말")
        assert visitor.page.evaluate("() => window.isSamePage")


@pytest.mark.slow
def test_the_way_back_from_a_deletion_goes_after_ten_seconds(visitor: Visitor, chat: Chat) -> None:
    visitor.open(f"?session={chat.session_id}")
    visitor.find("icon_select").locator("button").click()
    visitor.find(f"tick_{chat.session_id}").locator("label").click()
    visitor.find("delete_ticked").locator("button").click()
    expect(visitor.find("deleted")).to_be_visible()
    expect(visitor.find("deleted")).to_have_count(0)
    expect(visitor.find(f"session_{chat.session_id}")).to_have_count(0)
