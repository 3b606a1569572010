from __future__ import annotations

from playwright.sync_api import expect

from graph.service import ChatService
from tests.browser.visitor import Visitor
from tests.fake.body import raw_turns, shape
from tests.fake.chat import Chat, question
from tests.fake.openai_server import FakeOpenAI

DIVIDER = "여기부터 모델은 앞의 대화를 모릅니다."


def test_a_reset_is_asked_about_shown_and_undone(
    visitor: Visitor, other_server: ChatService, fake_openai: FakeOpenAI
) -> None:
    chat = Chat(other_server)
    chat.ask(1, 4)
    visitor.open(f"?session={chat.session_id}")
    visitor.write("/reset")
    visitor.find("dialog_cancel").locator("button").click()
    expect(visitor.find("dialog_cancel")).to_have_count(0)
    expect(visitor.page.get_by_text(DIVIDER)).to_have_count(0)

    visitor.write("/reset")
    visitor.find("dialog_confirm").locator("button").click()
    expect(visitor.page.get_by_text(DIVIDER)).to_be_visible()
    past = visitor.page.locator("[class*=st-key-past_]")
    expect(past).to_contain_text("1–3턴을 요약했던 곳")
    expect(past).to_have_css("opacity", "0.75")
    visitor.find("undo_reset").locator("button").click()
    expect(visitor.page.get_by_text(DIVIDER)).to_have_count(0)
    expect(visitor.page.get_by_text("위 1–3턴은 요약으로 기억합니다")).to_be_visible()
    visitor.ask(question(5), first=5)
    assert shape(fake_openai.bodies("chat")[-1]) == [(1, 3), 4, 5]

    visitor.write("/reset")
    visitor.find("dialog_confirm").locator("button").click()
    expect(visitor.find("undo_reset")).to_be_visible()
    visitor.ask(question(6), first=6)
    assert raw_turns(fake_openai.bodies("chat")[-1]) == [6]
    expect(visitor.page.get_by_text(DIVIDER)).to_be_visible()
    expect(visitor.find("undo_reset")).to_have_count(0)
