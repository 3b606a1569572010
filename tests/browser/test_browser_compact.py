from __future__ import annotations

from playwright.sync_api import expect

from graph.service import ChatService
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI

WORDS = " 압축을 멈출 이야기입니다."


def test_a_compaction_by_hand_is_seen_and_stop_ends_it(
    visitor: Visitor, other_server: ChatService, fake_openai: FakeOpenAI
) -> None:
    chat = Chat(other_server)
    for number in range(1, 7):
        chat.say(question(number) + WORDS)
    # Both blocks are folded by then: what comes next is the compaction.
    chat.wait_for_folds()
    visitor.open(f"?session={chat.session_id}")
    hanging = fake_openai.script(hang(is_silent=True), kind="summary", to=WORDS)
    visitor.write("/compact")
    fake_openai.wait_until(lambda _: hanging.is_asked_for)
    expect(visitor.page.get_by_text("압축하는 중…")).to_be_visible()
    visitor.find("stop").locator("button").click()
    expect(visitor.page.get_by_text("압축을 중지했습니다.")).to_be_visible()
    expect(visitor.find("stop")).to_have_count(0)
    fake_openai.wait_until(lambda _: hanging.exchanges[0].is_closed_early)
    visitor.write("/compact")
    expect(visitor.page.get_by_text("컨텍스트 압축됨")).to_be_attached()
    visitor.ask(question(7), first=7)
