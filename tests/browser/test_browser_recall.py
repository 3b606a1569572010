from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from component.wording import words_of
from graph.service import ChatService
from tests.browser.conftest import visiting
from tests.browser.told import told_chat
from tests.browser.visitor import Visitor
from tests.browser.wire import lose, on_the_way
from tests.fake.openai_reply import ScriptedCall, hang, text, tools
from tests.fake.openai_server import FakeOpenAI

LOOKED_UP = ScriptedCall("recall", '{"query": "낙하산"}', "call-recall")


@pytest.fixture(scope="module")
def told_session(other_server: ChatService, endpoint: FakeOpenAI) -> str:
    """A chat of 36 turns, the last of which looked up the second, which isn't drawn at first."""
    chat = told_chat(other_server, endpoint, 35)
    endpoint.script(tools(LOOKED_UP), text("암호는 낙하산이었습니다."), to="암호를 찾아봅시다.")
    chat.say("암호를 찾아봅시다.")
    chat.wait_for_folds()
    return chat.session_id


@pytest.mark.parametrize("locale", ["ko-KR", "en-US"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_turn_that_was_looked_up_is_gone_to(
    chromium: Browser, address: str, told_session: str, locale: str, width: int
) -> None:
    words = words_of("en" if locale == "en-US" else "ko")
    looks = {"locale": locale, "viewport": {"width": width, "height": 820}, "has_touch": width < 600}
    with visiting(chromium, address, **looks) as visitor:
        visitor.open(f"?session={told_session}")
        turn = words.recalled_turn.format(turn=2)
        line = visitor.turn(36).locator(".recalled")
        expect(line).to_have_text(words.recalled_one.format(turns=turn))
        expect(visitor.turn(2)).to_have_count(0)
        visitor.note_marks()
        line.get_by_role("button", name=words.to_turn.format(turn=2)).click()
        expect(visitor.turn(2)).to_be_in_viewport()
        visitor.wait_for_marks(visitor.turn(2))
        visitor.page.wait_for_timeout(2000)  # longer than a jump holds its place
        expect(visitor.turn(2)).to_be_in_viewport()


def test_while_an_answer_streams_a_turn_that_was_looked_up_is_gone_to(
    chromium: Browser, address: str, told_session: str, fake_openai: FakeOpenAI
) -> None:
    with visiting(chromium, address) as visitor:
        visitor.open(f"?session={told_session}")
        fake_openai.script(tools(LOOKED_UP), hang("그 암호는 "), to="암호를 또 찾아봅시다.")
        visitor.write("암호를 또 찾아봅시다.")
        expect(visitor.find("streaming")).to_contain_text("그 암호는")
        line = visitor.turn(37).locator(".recalled")
        expect(line).to_have_text("기억 찾기: 2턴, 36턴")
        line.get_by_role("button", name="2턴으로 가기", exact=True).click()
        expect(visitor.turn(2)).to_be_in_viewport()
        visitor.find("stop").locator("button").click()
        visitor.wait_for_end(37)
        expect(line).to_have_text("기억 찾기: 2턴, 36턴")


def test_a_turn_is_gone_to_though_the_request_for_it_is_lost(visitor: Visitor, told_session: str) -> None:
    on_the_way(visitor, '"turns"', lose)
    visitor.open(f"?session={told_session}")
    visitor.turn(36).get_by_role("button", name="2턴으로 가기").click()
    expect(visitor.turn(2)).to_be_in_viewport()


def test_a_turn_is_gone_to_though_the_page_finds_a_change_at_that_moment(
    visitor: Visitor, told_session: str, fake_openai: FakeOpenAI
) -> None:
    fake_openai.script(hang("여기까지 씁니다. "), to="그동안 오래 걸리는 답")
    visitor.open(f"?session={told_session}")
    visitor.write("그동안 오래 걸리는 답")
    answering = visitor.page.locator('[class*="st-key-turn_"]').last
    expect(answering).to_contain_text("여기까지 씁니다.")
    visitor.page.evaluate(
        """() => {
            const found = Object.assign(document.createElement("i"), { className: "redraw", hidden: true });
            found.dataset.mark = "1000000";
            document.querySelector(".st-key-turn_36 .recalled-turn").click();
            document.querySelector("[data-testid='stMain']").append(found);
        }"""
    )
    expect(visitor.turn(2)).to_be_in_viewport()
    visitor.find("stop").locator("button").click()
    expect(answering).to_contain_text("중지했습니다.")
