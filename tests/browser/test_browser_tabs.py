from __future__ import annotations

from playwright.sync_api import Browser, expect

from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor


def test_another_tab_follows_by_itself(visitor: Visitor, chromium: Browser, address: str) -> None:
    visitor.open()
    visitor.ask("두 탭에서 볼 대화입니다.")
    with visiting(chromium, address) as other:
        other.open(f"?session={visitor.session_id}")
        expect(other.turn(1)).to_be_visible()
        visitor.ask("첫 탭에서 하는 둘째 말입니다.", first=2)
        other.wait_for_end(2)
        expect(other.turn(2)).to_contain_text("첫 탭에서 하는 둘째 말입니다.")
        answer = other.turn(2).get_by_test_id("stChatMessage").last.inner_text()
        visitor.find("regenerate").locator("button").click()
        expect(other.turn(2).get_by_test_id("stChatMessage").last).not_to_have_text(answer)
