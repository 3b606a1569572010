"""What is done with an answer: the tab tells of its end."""

from __future__ import annotations

from pathlib import Path
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


def test_code_wraps_and_is_saved_under_its_languages_name_by_keys_too(
    visitor: Visitor, fake_openai: FakeOpenAI
) -> None:
    asked, code = "긴 줄을 보여 주세요.", f"print('{'아주 긴 줄 ' * 60}')\nx = 1\n"
    fake_openai.script(text(f"```python\n{code}```\n\n```\n표시 없음\n```\n\n```rust\nfn main() {{}}\n```"), to=asked)
    visitor.open()
    visitor.ask(asked)
    blocks = visitor.turn(1).get_by_test_id("stCode")
    first, wrap = blocks.first.locator("pre"), blocks.first.get_by_role("button", name="줄 바꿈")
    assert first.evaluate("pre => pre.scrollWidth > pre.clientWidth")
    for pressed in ("true", "false", "true"):
        wrap.press("Enter")
        expect(wrap).to_have_attribute("aria-pressed", pressed)
        assert first.evaluate("pre => pre.scrollWidth > pre.clientWidth") == (pressed == "false")
    for block, name, written in zip(
        blocks.all(), ("code.py", "code.txt", "code.rs"), (code, "표시 없음", "fn main() {}"), strict=True
    ):
        save = block.get_by_role("button", name="코드 내려받기")
        with visitor.page.expect_download() as saving:
            save.press("Enter")
        assert saving.value.suggested_filename == name
        assert Path(saving.value.path()).read_text(encoding="utf-8").strip() == written.strip()
