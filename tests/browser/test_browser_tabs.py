"""A chat in another tab, in the browser's history, and in another language."""

from __future__ import annotations

import re
from typing import Final

import pytest
from playwright.sync_api import Browser, WebSocketRoute, expect

from graph.service import ChatService
from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI

SEEN_MILLISECONDS: Final = 10_000  # told within 1.5 s, and drawn, where nothing else runs


@pytest.mark.slow
def test_another_tab_follows_by_itself(
    visitor: Visitor, chromium: Browser, address: str, fake_openai: FakeOpenAI
) -> None:
    visitor.open()
    visitor.ask("두 탭에서 볼 대화입니다.")
    with visiting(chromium, address) as other:
        other.open(f"?session={visitor.session_id}")
        expect(other.turn(1)).to_be_visible()
        visitor.ask("첫 탭에서 하는 둘째 말입니다.", first=2)
        other.wait_for_end(2)
        expect(other.turn(2)).to_contain_text("첫 탭에서 하는 둘째 말입니다.")
        fake_openai.script(text("이것은 다시 쓴 답입니다."), to="첫 탭에서 하는 둘째 말입니다.")
        visitor.find("regenerate").locator("button").click()
        expect(other.turn(2)).to_contain_text("이것은 다시 쓴 답입니다.")


@pytest.mark.slow
def test_a_tab_at_rest_sees_at_once_what_another_server_changes(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.say("여기서 볼 대화입니다.")
    visitor.open(f"?session={chat.session_id}")
    expect(visitor.turn(1)).to_be_visible()
    visitor.page.wait_for_timeout(3_000)
    for number, title in enumerate(("새 이름", "더 새 이름"), start=2):
        other_server.sessions.rename(chat.session_id, title)
        expect(visitor.find("chat_title")).to_have_text(title, timeout=SEEN_MILLISECONDS)
        chat.say("다른 서버에서 하는 말입니다.")
        expect(visitor.turn(number)).to_contain_text("다른 서버에서 하는 말입니다.", timeout=SEEN_MILLISECONDS)
        visitor.wait_for_end(number)
        visitor.page.wait_for_timeout(2_000)


@pytest.mark.slow
def test_a_tab_that_was_without_a_connection_sees_what_changed_meanwhile(
    visitor: Visitor, other_server: ChatService
) -> None:
    chat = Chat(other_server)
    chat.say("연결이 끊길 대화입니다.")
    connections: list[WebSocketRoute] = []

    def connect(browser: WebSocketRoute) -> None:
        browser.connect_to_server()
        connections.append(browser)

    visitor.page.route_web_socket(re.compile("/_stcore/stream"), connect)
    visitor.open(f"?session={chat.session_id}")
    expect(visitor.turn(1)).to_be_visible()
    visitor.page.wait_for_timeout(3_000)
    connections[-1].close()
    chat.say("끊긴 동안 한 말입니다.")
    expect(visitor.turn(2)).to_contain_text("끊긴 동안 한 말입니다.")
    other_server.sessions.rename(chat.session_id, "다시 이어진 뒤의 이름")
    expect(visitor.find("chat_title")).to_have_text("다시 이어진 뒤의 이름")
    assert len(connections) > 1
    visitor.complaints.clear()  # of the connection that was cut


@pytest.mark.slow
def test_a_setting_that_was_changed_elsewhere_during_an_answer_is_followed(
    visitor: Visitor, other_server: ChatService, fake_openai: FakeOpenAI
) -> None:
    fake_openai.script(hang("아직 쓰는 답입니다. "), to="그동안 설정을 바꿀 말입니다.")
    visitor.open()
    visitor.ask("먼저 하는 말입니다.")
    visitor.write("그동안 설정을 바꿀 말입니다.")
    expect(visitor.turn(2)).to_contain_text("아직 쓰는 답입니다.")
    other_server.sessions.configure(visitor.session_id, strategy="window")
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(2)
    expect(visitor.find("panel")).to_contain_text("최근 10턴만 보냅니다.")


def test_back_and_forth_open_what_the_address_names(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask("뒤로 가서 다시 볼 대화입니다.")
    first = visitor.session_id
    visitor.begin_chat()
    visitor.ask("앞으로 가서 다시 볼 대화입니다.")
    second = visitor.session_id
    visitor.page.go_back()
    expect(visitor.find("empty")).to_be_visible()
    visitor.page.go_back()
    expect(visitor.turn(1)).to_contain_text("뒤로 가서")
    assert visitor.session_id == first
    visitor.ask("여기서 이어 갑니다.", first=2)
    visitor.page.go_forward()
    expect(visitor.find("empty")).to_be_visible()
    visitor.page.go_forward()
    expect(visitor.turn(1)).to_contain_text("앞으로 가서")
    assert visitor.session_id == second


@pytest.mark.slow
def test_copy_has_its_own_name_again_in_whatever_language_the_page_is(english: Visitor) -> None:
    english.open()
    english.ask("A question in the one language before the page turns to the other.")
    english.find("language").get_by_role("radio", name="한국어").press("Enter")
    english.expect_language("ko")
    english.turn(1).get_by_role("button", name="답변 복사").click()
    expect(english.turn(1).get_by_role("button", name="복사했습니다")).to_be_visible()
    expect(english.turn(1).get_by_role("button", name="답변 복사")).to_be_visible()
