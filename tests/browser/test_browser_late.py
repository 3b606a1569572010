from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from component.live import WATCH_SECONDS
from graph.service import ChatService
from tests.browser.visitor import Visitor
from tests.browser.wire import Hold, outdate_timers
from tests.fake.chat import Chat, question


def opened(visitor: Visitor, server: ChatService) -> tuple[Chat, Hold]:
    chat = Chat(server)
    chat.ask(1, 4)
    hold = Hold(visitor)
    visitor.open(f"?session={chat.session_id}")
    return chat, hold


def test_a_chat_that_is_left_and_opened_again_before_the_browser_hears_of_it_is_drawn(
    visitor: Visitor, other_server: ChatService
) -> None:
    chat, hold = opened(visitor, other_server)
    visitor.ask(question(5), question(6), first=5)
    hold.is_holding = True
    visitor.find("new_chat").locator("button").click()
    visitor.page.wait_for_timeout(1_000)
    visitor.find(f"session_{chat.session_id}").locator("button").click()
    visitor.page.wait_for_timeout(1_000)
    hold.let_go()
    visitor.settle()
    expect(visitor.turn(6)).to_be_visible()
    visitor.ask(question(7), first=7)


def test_a_timer_that_had_not_heard_which_chat_is_open_leaves_it_open(
    visitor: Visitor, other_server: ChatService
) -> None:
    chat = Chat(other_server)
    chat.ask(1, 4)
    outdated = outdate_timers(visitor)
    visitor.open(f"?session={chat.session_id}")
    expect(visitor.turn(4)).to_be_visible()
    visitor.page.wait_for_timeout(1_000 * (WATCH_SECONDS + 2))
    assert outdated
    visitor.settle()
    expect(visitor.turn(4)).to_be_visible()
    visitor.ask(question(5), first=5)
    assert visitor.session_id == chat.session_id


def test_a_press_counts_while_the_rest_of_the_page_is_on_its_way(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 1)
    hold = Hold(visitor, 'data-thumb="up"')
    visitor.page.goto(f"{visitor.address}?session={chat.session_id}")
    good = visitor.page.locator('button[data-thumb="up"]')
    good.click()
    visitor.page.wait_for_timeout(500)
    hold.let_go()
    visitor.settle()
    expect(good).to_have_attribute("aria-pressed", "true")


def test_a_press_counts_however_late_the_script_comes_that_hears_it(
    visitor: Visitor, other_server: ChatService
) -> None:
    chat = Chat(other_server)
    chat.ask(1, 1)

    def come_late(script: Route) -> None:
        visitor.page.wait_for_timeout(1_500)
        script.continue_()

    visitor.page.route(re.compile(r"BidiComponent[^/]*\.js"), come_late)
    visitor.page.goto(f"{visitor.address}?session={chat.session_id}")
    good = visitor.page.locator('button[data-thumb="up"]')
    good.click()
    visitor.settle()
    expect(good).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("chosen_by", ["click", "key"])
def test_a_tab_stays_open_though_the_answer_to_the_choice_before_comes_behind_it(
    visitor: Visitor, other_server: ChatService, chosen_by: str
) -> None:
    _, hold = opened(visitor, other_server)
    before, after = (visitor.page.get_by_role("tab", name=name) for name in ("통계", "모델 입력"))
    hold.is_holding = True
    before.click()
    hold.wait()
    late = hold.count
    if chosen_by == "click":
        after.click()
    else:
        before.press("ArrowRight")
    expect(after).to_have_attribute("aria-selected", "true")
    visitor.field.focus()
    hold.let_go(late)
    visitor.page.wait_for_timeout(500)
    expect(after).to_have_attribute("aria-selected", "true")
    expect(visitor.field).to_be_focused()
    hold.let_go()
    visitor.settle()
    expect(after).to_have_attribute("aria-selected", "true")
    expect(visitor.find("panel").locator('[class*="st-key-input_request_"]').first).to_be_visible()


def test_a_box_that_is_closed_again_stays_closed_though_the_answer_to_its_opening_comes_behind_it(
    visitor: Visitor, other_server: ChatService
) -> None:
    _, hold = opened(visitor, other_server)
    fold = visitor.page.locator('[class*="st-key-fold_"]')
    content = fold.get_by_test_id("stExpanderDetails")
    hold.is_holding = True
    fold.locator("summary").click()
    hold.wait()
    late = hold.count
    fold.locator("summary").click()
    expect(content).to_have_attribute("inert", "")
    hold.let_go(late)
    visitor.page.wait_for_timeout(500)
    expect(content).to_have_attribute("inert", "")
    hold.let_go()
    visitor.settle()
    expect(content).to_have_attribute("inert", "")
    fold.locator("summary").click()
    expect(content.get_by_text("대신 보는 글")).to_be_visible()


def test_the_tab_with_the_focus_keeps_it_and_hears_a_key_while_the_tabs_are_drawn(
    visitor: Visitor, other_server: ChatService
) -> None:
    _, hold = opened(visitor, other_server)
    first, second, third = (visitor.page.get_by_role("tab", name=name) for name in ("요약", "통계", "모델 입력"))
    first.focus()
    hold.is_holding = True
    visitor.page.keyboard.press("ArrowRight")
    hold.wait()
    while hold.count and not second.is_disabled():
        hold.let_go(1)
        visitor.page.wait_for_timeout(50)
    expect(second).to_be_disabled()
    expect(second).to_be_focused()
    visitor.page.keyboard.press("ArrowRight")
    hold.let_go()
    visitor.settle()
    expect(third).to_have_attribute("aria-selected", "true")
    expect(third).to_be_focused()
    expect(visitor.find("panel").locator('[class*="st-key-input_request_"]').first).to_be_visible()
