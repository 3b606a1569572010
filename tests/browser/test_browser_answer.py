"""What is done with an answer: the tab tells of its end."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI

# All tabs of a browser without windows are seen.
HIDE: Final = """isHidden => {
    Object.defineProperty(document, "hidden", { get: () => isHidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_the_tabs_title_tells_of_an_answer_that_ended_behind_until_it_is_looked_at(
    visitor: Visitor, fake_openai: FakeOpenAI
) -> None:
    visitor.open()
    visitor.ask("앞에서 끝나는 답입니다.")
    visitor.settle()
    assert not visitor.page.title().startswith("●")
    asked = "뒤에서 끝나는 답입니다."
    fake_openai.script(text("한참 걸리는 답 " * 20, pause_seconds=0.05), to=asked)
    visitor.write(asked)
    expect(visitor.turn(2).locator("p.phase")).to_have_count(1)
    visitor.page.evaluate(HIDE, arg=True)
    assert not visitor.page.title().startswith("●")
    visitor.wait_for_end(2)
    visitor.page.wait_for_function("() => document.title.startsWith('● ') && document.title.endsWith('Turnfold')")
    visitor.page.evaluate(HIDE, arg=False)
    visitor.page.wait_for_function("() => !document.title.includes('●')")
