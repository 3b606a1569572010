from __future__ import annotations

import threading

import pytest
from playwright.sync_api import Locator, expect

from component.wording import words_of
from graph.service import ChatService
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import Body, Reply, hang, text
from tests.fake.openai_server import FakeOpenAI

EDITED = "예산을 두 배로 고쳐 쓴 요약입니다."


@pytest.fixture
def chat(other_server: ChatService) -> Chat:
    made = Chat(other_server)
    for number in range(1, 5):
        made.say(question(number) * 3)
        made.wait_for_folds()
    return made


def card(visitor: Visitor) -> Locator:
    return visitor.find("panel").locator('[class*="st-key-card_rail_"]').first


def pick(visitor: Visitor, choice: str) -> None:
    card(visitor).locator('[class*="st-key-menu_card_"] button').click()
    visitor.page.get_by_role("menuitem", name=choice).click()


def edit(visitor: Visitor, typed: str) -> None:
    pick(visitor, "고치기")
    visitor.page.get_by_role("dialog").get_by_role("textbox").fill(typed)
    visitor.find("dialog_confirm").locator("button").click()
    expect(visitor.page.get_by_role("dialog")).to_have_count(0)


def test_an_edited_summary_is_sent_and_survives_a_reload(visitor: Visitor, chat: Chat, fake_openai: FakeOpenAI) -> None:
    visitor.open(f"?session={chat.session_id}")
    edit(visitor, EDITED)
    expect(card(visitor)).to_contain_text(EDITED)
    visitor.page.reload()
    visitor.settle()
    expect(card(visitor)).to_contain_text("고침")
    sent: list[Body] = []

    def answer(body: Body) -> Reply:
        sent.append(body)
        return text("고친 요약으로 답합니다.")

    asked = "고친 뒤에 묻습니다."
    fake_openai.script(answer, to=asked)
    visitor.ask(asked, first=5)
    assert EDITED in str(sent[0]["messages"][0])


def test_a_summary_is_edited_while_an_answer_is_written(visitor: Visitor, chat: Chat, fake_openai: FakeOpenAI) -> None:
    asked, gate = "답이 오래 걸리는 말입니다.", threading.Event()

    def answer(_: Body) -> Reply:
        gate.wait(60)
        return text("드디어 답합니다.")

    fake_openai.script(answer, to=asked)
    visitor.open(f"?session={chat.session_id}")
    visitor.write(asked)
    expect(visitor.turn(5)).to_be_visible()
    edit(visitor, EDITED)
    expect(card(visitor)).to_contain_text(EDITED)
    gate.set()
    visitor.wait_for_end(5)
    expect(visitor.turn(5)).to_contain_text("드디어 답합니다.")
    expect(card(visitor)).to_contain_text(EDITED)


def test_what_is_being_typed_survives_the_end_of_an_answer(
    visitor: Visitor, chat: Chat, fake_openai: FakeOpenAI
) -> None:
    asked, gate = "고치는 동안 끝날 말입니다.", threading.Event()

    def answer(_: Body) -> Reply:
        gate.wait(60)
        return text("이제 끝났습니다.")

    fake_openai.script(answer, to=asked)
    visitor.open(f"?session={chat.session_id}")
    visitor.write(asked)
    expect(visitor.turn(5)).to_be_visible()
    pick(visitor, "고치기")
    field = visitor.page.get_by_role("dialog").get_by_role("textbox")
    field.fill(EDITED)
    gate.set()
    expect(visitor.turn(5)).to_contain_text("이제 끝났습니다.")
    expect(visitor.turn(5).get_by_role("status")).to_have_count(0)
    expect(field).to_have_value(EDITED)
    visitor.find("dialog_confirm").locator("button").click()
    expect(card(visitor)).to_contain_text(EDITED)


def test_a_dismissed_dialog_changes_nothing_and_stays_away(visitor: Visitor, chat: Chat) -> None:
    visitor.open(f"?session={chat.session_id}")
    pick(visitor, "고치기")
    visitor.page.get_by_role("dialog").get_by_role("textbox").fill(EDITED)
    visitor.page.keyboard.press("Escape")
    expect(visitor.page.get_by_role("dialog")).to_have_count(0)
    pick(visitor, "버전 비교")
    expect(visitor.page.get_by_role("dialog")).to_contain_text("아직 다른 버전이 없습니다.")


def test_a_summary_that_was_changed_elsewhere_meanwhile_is_not_overwritten(visitor: Visitor, chat: Chat) -> None:
    visitor.open(f"?session={chat.session_id}")
    pick(visitor, "고치기")
    field = visitor.page.get_by_role("dialog").get_by_role("textbox")
    field.fill(EDITED)
    chat.service.folds.reset(chat.session_id)
    visitor.find("dialog_confirm").locator("button").click()
    expect(visitor.page.get_by_role("dialog").get_by_test_id("stAlert")).to_contain_text("다른 요약으로 바뀌었습니다.")
    expect(field).to_have_value(EDITED)


@pytest.mark.parametrize("way", ["Edit", "Versions"])
def test_the_dialogs_read_english(english: Visitor, chat: Chat, way: str) -> None:
    english.open(f"?session={chat.session_id}")
    pick(english, way)
    titles: dict[str, str] = {"Edit": "Edit this summary", "Versions": "Versions of this summary"}
    expect(english.page.get_by_role("dialog")).to_contain_text(titles[way])


def pin_of(visitor: Visitor, turn: int, who: int) -> Locator:
    """The button of a turn's question (0) or answer (1)."""
    return visitor.turn(turn).get_by_role("button", name="이 메시지 고정").nth(who)


def test_a_pinned_message_is_sent_word_for_word_and_survives_a_reload(
    visitor: Visitor, chat: Chat, fake_openai: FakeOpenAI
) -> None:
    visitor.open(f"?session={chat.session_id}")
    visitor.turn(1).hover()
    pin_of(visitor, 1, 0).click()
    expect(pin_of(visitor, 1, 0)).to_have_attribute("aria-pressed", "true")
    visitor.page.reload()
    visitor.settle()
    expect(pin_of(visitor, 1, 0)).to_have_attribute("aria-pressed", "true")
    expect(visitor.find("panel").locator('[class*="st-key-pins_"]')).to_contain_text("고정한 메시지 1개")
    sent: list[Body] = []

    def answer(body: Body) -> Reply:
        sent.append(body)
        return text("고정한 말을 보고 답합니다.")

    asked = "고정한 뒤에 묻습니다."
    fake_openai.script(answer, to=asked)
    visitor.ask(asked, first=5)
    assert (question(1) * 3) in str(sent[0]["messages"][0]["content"])


def test_a_message_is_pinned_while_an_answer_is_written(visitor: Visitor, chat: Chat, fake_openai: FakeOpenAI) -> None:
    asked = "천천히 길게 답해 주세요, 그동안 고정합니다."
    fake_openai.script(hang("첫 문장은 여기까지입니다. "), to=asked)
    visitor.open(f"?session={chat.session_id}")
    visitor.write(asked)
    expect(visitor.turn(5)).to_contain_text("첫 문장은 여기까지입니다.")
    visitor.turn(4).hover()
    pin_of(visitor, 4, 1).click()
    expect(pin_of(visitor, 4, 1)).to_have_attribute("aria-pressed", "true")
    pin_of(visitor, 4, 1).click()
    expect(pin_of(visitor, 4, 1)).to_have_attribute("aria-pressed", "false")
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(5)


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
    pick(visitor, "새로 만들기…")
    visitor.page.get_by_role("dialog").get_by_role("textbox").fill("예산을 빠짐없이")
    visitor.find("dialog_confirm").locator("button").click()
    expect(visitor.page.get_by_text("1-3턴 요약을 새로 만드는 중…")).to_be_visible()
    expect(visitor.find("stop")).to_have_count(0)
    visitor.field.fill("쓰던 말")
    gate.set()
    expect(visitor.find("change_bar")).to_contain_text("새로 만들었습니다")
    expect(card(visitor)).to_contain_text("v2")
    expect(visitor.field).to_have_value("쓰던 말")
    visitor.find("take_back_bar").locator("button").click()
    expect(card(visitor)).not_to_contain_text("v2")


def test_what_a_slow_model_folds_again_is_told_in_the_drawer(
    phone: Visitor, chat: Chat, fake_openai: FakeOpenAI
) -> None:
    said, gate = words_of("ko").steering, threading.Event()

    def summarize(_: Body) -> Reply:
        gate.wait(60)
        return text("서버 이전은 10월 1일, 담당자는 김민수, 예산은 120만 원입니다.")

    fake_openai.script(summarize, kind="summary", to=question(1))
    phone.open(f"?session={chat.session_id}")
    phone.find("open_panel").locator("button").click()
    drawer = phone.page.get_by_role("dialog")
    newest = drawer.locator('[class*="st-key-card_drawer_"]').first
    for choice in (said.undo_fold, said.fold_again):
        # Until a run ends, what it has moved also stands where it was.
        newest.locator('[class*="st-key-menu_card_"] button').first.click()
        phone.page.get_by_role("menuitem", name=choice, exact=True).click()
        expect(newest).to_contain_text(said.undone)
    expect(drawer.locator(".st-key-change_drawer")).to_contain_text(said.undo_fold_done.format(turns="1-3"))
    phone.page.wait_for_timeout(1000)  # longer than a quick model, whose result the press itself tells
    gate.set()
    expect(drawer.locator(".st-key-change_drawer")).to_contain_text(said.fold_again_done.format(turns="1-3"))
    expect(newest).to_contain_text("예산은 120만 원")
    expect(newest).not_to_contain_text(said.undone)
