from __future__ import annotations

from playwright.sync_api import WebSocketRoute, expect

from graph.service import ChatService
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat, question


def test_a_chat_that_is_left_and_opened_again_before_the_browser_hears_of_it_is_drawn(
    visitor: Visitor, other_server: ChatService
) -> None:
    chat = Chat(other_server)
    chat.ask(1, 4)
    held: list[str | bytes] | None = None
    browsers: list[WebSocketRoute] = []

    def connect(browser: WebSocketRoute) -> None:
        browsers.append(browser)
        server = browser.connect_to_server()
        server.on_message(lambda sent: browser.send(sent) if held is None else held.append(sent))

    visitor.page.route_web_socket("**/_stcore/stream", connect)
    visitor.open(f"?session={chat.session_id}")
    visitor.ask(question(5), question(6), first=5)
    held = []
    visitor.find("new_chat").locator("button").click()
    visitor.page.wait_for_timeout(1_000)
    visitor.find(f"session_{chat.session_id}").locator("button").click()
    visitor.page.wait_for_timeout(1_000)
    late, held = held, None
    for sent in late:
        browsers[-1].send(sent)
    visitor.settle()
    expect(visitor.turn(6)).to_be_visible()
    visitor.ask(question(7), first=7)
