from __future__ import annotations

import pytest
from playwright.sync_api import expect

from graph.service import ChatService
from tests.browser.told import told_chat
from tests.browser.visitor import Visitor
from tests.fake.openai_server import FakeOpenAI


@pytest.fixture(scope="module")
def told_session(other_server: ChatService, endpoint: FakeOpenAI) -> str:
    return told_chat(other_server, endpoint, 36).session_id


def test_a_line_that_was_found_leads_to_its_turn(visitor: Visitor, told_session: str) -> None:
    visitor.open()
    visitor.find("search").locator("input").fill("낙하산")
    line = visitor.find(f"found_{told_session}").get_by_role("button")
    expect(line).to_contain_text("2턴: 암호는 낙하산입니다.")
    line.click()
    expect(visitor.turn(2)).to_be_in_viewport()
    assert visitor.session_id == told_session
    visitor.page.wait_for_timeout(2000)  # longer than a jump holds its place
    expect(visitor.turn(2)).to_be_in_viewport()
    visitor.expect_no_complaint()


def test_a_line_of_the_open_chat_leads_to_its_turn_again_and_again(visitor: Visitor, told_session: str) -> None:
    visitor.open(f"?session={told_session}")
    expect(visitor.turn(36)).to_be_in_viewport()
    visitor.find("search").locator("input").fill("낙하산")
    line = visitor.find(f"found_{told_session}").get_by_role("button")
    line.click()
    expect(visitor.turn(2)).to_be_in_viewport()
    visitor.turn(2).hover()
    visitor.page.mouse.wheel(0, 5_000)
    expect(visitor.turn(2)).not_to_be_in_viewport()
    line.click()
    expect(visitor.turn(2)).to_be_in_viewport()
