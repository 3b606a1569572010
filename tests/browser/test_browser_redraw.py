from __future__ import annotations

import pytest
from playwright.sync_api import expect

from component.live import WATCH_SECONDS
from component.slots import TURNS_AFTER, TURNS_BEFORE
from graph.service import ChatService
from tests.browser.runs import Runs
from tests.browser.visitor import Visitor
from tests.browser.wire import lose, on_the_way, together, without_timers
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import hang, slowed, text
from tests.fake.openai_server import FakeOpenAI

REQUEST = '{"event":"changed"'
MAIN, CHAT = 0, 1  # the script that hears presses stands before it


@pytest.fixture
def chat(other_server: ChatService) -> Chat:
    chat = Chat(other_server)
    chat.ask(1, 8)
    return chat


def test_a_message_and_its_answer_draw_nothing_else(visitor: Visitor, chat: Chat, fake_openai: FakeOpenAI) -> None:
    asked = "이 말과 그 답만 그립니다."
    fake_openai.script(slowed(text(" ".join(f"낱말{number}" for number in range(40))), 0.02), to=asked)
    runs = Runs(visitor.page)
    visitor.open(f"?session={chat.session_id}")
    visitor.page.wait_for_timeout(500)
    runs.clear()
    visitor.ask(asked, first=9)
    expect(visitor.find("stop")).to_have_count(0)
    assert runs.whole_count == 0
    places = {path[:3] for path in runs.paths if path[:2] == (MAIN, CHAT)}
    assert len(places) == 2  # the turn before, which can't be answered anew any more, and this one


def test_a_page_at_rest_is_left_as_it_is(visitor: Visitor, chat: Chat) -> None:
    runs = Runs(visitor.page)
    visitor.open(f"?session={chat.session_id}")
    panel = visitor.open_statistics()
    visitor.ask(question(9), question(10), first=9)
    expect(panel.get_by_text("총 요약: 3개 (9턴 압축)")).to_be_visible()
    expect(visitor.find("stop")).to_have_count(0)  # the bar is drawn after the turn and the panel
    visitor.settle()
    visitor.page.wait_for_timeout(1_000)
    runs.clear()
    visitor.page.wait_for_timeout(1_000 * (2 * WATCH_SECONDS + 1))
    assert runs.whole_count == 0
    assert not visitor.page.locator("i.redraw").count()
    watched = {path[:3] for path in runs.paths}
    assert len(watched) == 1
    assert watched.pop()[:2] == (MAIN, CHAT)


def test_a_fold_is_shown_with_the_answer_that_made_it(visitor: Visitor, chat: Chat) -> None:
    runs = Runs(visitor.page)
    visitor.open(f"?session={chat.session_id}")
    visitor.page.wait_for_timeout(500)
    runs.clear()
    visitor.ask(question(9), question(10), first=9)
    expect(visitor.find("panel").get_by_text("[7-9턴 요약]")).to_be_visible()
    expect(visitor.turn(9).locator('[class*="st-key-fold_"]')).to_be_visible()
    assert runs.whole_count == 0


def test_a_long_visit_draws_the_page_anew_when_its_places_are_used_up(
    visitor: Visitor, other_server: ChatService
) -> None:
    chat = Chat(other_server)
    chat.ask(1, TURNS_BEFORE + 1)
    visitor.open(f"?session={chat.session_id}")
    last = TURNS_BEFORE + 1 + TURNS_AFTER + 2
    visitor.ask(*map(question, range(TURNS_BEFORE + 2, last + 1)), first=TURNS_BEFORE + 2)
    turns = visitor.page.locator('[class*="st-key-turn_"]')
    expect(turns).to_have_count(last)
    for number in range(1, last + 1):
        expect(turns.nth(number - 1)).to_have_attribute("data-turn", str(number))
    expect(visitor.every("regenerate")).to_have_count(1)


@pytest.mark.parametrize("last", [24, 25, 26])
def test_a_long_chat_goes_on_without_a_drawing_of_the_whole_page(
    visitor: Visitor, other_server: ChatService, last: int
) -> None:
    chat = Chat(other_server)
    chat.ask(1, last)
    chat.wait_for_folds()
    runs = Runs(visitor.page)
    visitor.open(f"?session={chat.session_id}")
    visitor.ask(question(last + 1), first=last + 1)
    runs.clear()
    visitor.ask(*map(question, range(last + 2, last + 9)), first=last + 2)
    expect(visitor.find("panel").get_by_text("[28-30턴 요약]")).to_be_visible()
    assert runs.whole_count == 0


def test_a_lost_request_for_what_has_changed_is_made_again(visitor: Visitor, chat: Chat) -> None:
    on_the_way(visitor, REQUEST, lose)
    runs = Runs(visitor.page)
    visitor.open(f"?session={chat.session_id}")
    runs.clear()
    visitor.ask(question(9), question(10), first=9)
    expect(visitor.find("panel").get_by_text("[7-9턴 요약]")).to_be_visible()
    assert runs.whole_count == 0


def test_a_press_that_meets_a_request_for_what_has_changed_draws_no_whole_page(
    visitor: Visitor, chat: Chat, fake_openai: FakeOpenAI
) -> None:
    fake_openai.script(hang("여기까지 말합니다. "), to="오래 걸리는 말")
    together(visitor, "-tabs_rail", REQUEST)
    runs = Runs(visitor.page)
    visitor.open(f"?session={chat.session_id}")
    visitor.write("오래 걸리는 말")
    expect(visitor.turn(9)).to_contain_text("여기까지 말합니다.")
    runs.clear()
    visitor.find("panel").get_by_role("tab", name="통계").click()
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(9)
    expect(visitor.find("panel").get_by_text("📊 요약 통계")).to_be_visible()
    assert runs.whole_count == 0


def test_an_answer_is_shown_as_it_comes_though_no_clock_of_the_page_asks(
    visitor: Visitor, chat: Chat, fake_openai: FakeOpenAI
) -> None:
    asked = "시계 없이 기다리는 말"
    fake_openai.script(hang("여기까지 ", "말합니다. "), to=asked)
    without_timers(visitor)
    visitor.open(f"?session={chat.session_id}")
    visitor.write(asked)
    expect(visitor.turn(9)).to_contain_text("여기까지 말합니다.")
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(9)


def test_a_fold_far_above_is_shown_without_a_reload(visitor: Visitor, chat: Chat) -> None:
    chat.ask(9, 12)
    visitor.open(f"?session={chat.session_id}")
    first = visitor.turn(3).locator('[class*="st-key-fold_"]')
    expect(first).to_have_count(1)
    chat.service.folds.reset(chat.session_id)
    expect(visitor.turn(3).locator('[class*="st-key-past_"]')).to_have_count(1)


def test_refusals_and_stop_draw_no_whole_page(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "말이 끊긴 답을 바로 멈춥니다."
    fake_openai.script(hang("여기까지 말합니다. "), to=asked)
    runs = Runs(visitor.page)
    visitor.open()
    visitor.write(asked)
    expect(visitor.turn(1)).to_contain_text("여기까지 말합니다.")
    for number in range(3):
        visitor.write(f"성급한 말 {number}")
        expect(visitor.field).to_have_value(f"성급한 말 {number}")
    runs.clear()
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(1)
    assert runs.whole_count == 0
