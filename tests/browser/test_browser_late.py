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


def test_a_press_counts_while_the_rest_of_the_page_is_on_its_way(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 1)
    is_held = False
    held: list[str | bytes] = []
    browsers: list[WebSocketRoute] = []

    def connect(browser: WebSocketRoute) -> None:
        browsers.append(browser)

        def pass_on(sent: str | bytes) -> None:
            nonlocal is_held
            if is_held:
                held.append(sent)
                return
            browser.send(sent)
            data = sent if isinstance(sent, bytes) else sent.encode()
            is_held = not held and b'data-thumb="up"' in data

        browser.connect_to_server().on_message(pass_on)

    visitor.page.route_web_socket("**/_stcore/stream", connect)
    visitor.page.goto(f"{visitor.address}?session={chat.session_id}")
    good = visitor.page.locator('button[data-thumb="up"]')
    good.click()
    visitor.page.wait_for_timeout(500)
    is_held = False
    for sent in held:
        browsers[-1].send(sent)
    visitor.settle()
    expect(good).to_have_attribute("aria-pressed", "true")
