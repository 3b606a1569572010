from __future__ import annotations

from playwright.sync_api import Browser, expect

from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI


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
