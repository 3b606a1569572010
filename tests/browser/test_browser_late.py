from __future__ import annotations

import re

from playwright.sync_api import Route, expect

from component.live import WATCH_SECONDS
from graph.service import ChatService
from tests.browser.visitor import Visitor
from tests.browser.wire import Hold, outdate_timers
from tests.fake.chat import Chat, question


def test_a_chat_that_is_left_and_opened_again_before_the_browser_hears_of_it_is_drawn(
    visitor: Visitor, other_server: ChatService
) -> None:
    chat = Chat(other_server)
    chat.ask(1, 4)
    hold = Hold(visitor)
    visitor.open(f"?session={chat.session_id}")
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
