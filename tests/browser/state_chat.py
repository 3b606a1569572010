"""The states of the empty page, of its settings, and of answers."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import expect

from component.word import LANGUAGE_NAMES
from tests.browser.stage import Stage
from tests.fake.openai_reply import ScriptedCall, failure, hang, text, tools

BACKGROUNDS: Final = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 23)"}
UNANSWERED: Final = "이번에는 답이 오지 않습니다."
RICH: Final = """# 제목

| 값 | 뜻 |
|---|---|
| 5 | [다섯](https://example.org/) |

```python
def five() -> int:
    return 5  # 다섯
```

식 $a^2 + b^2$ 과 `코드`, ~~지운 말~~

> 옮긴 말

- [x] 한 일
- [ ] 할 일
"""


def empty(stage: Stage) -> None:
    stage.visitor.open()


def settings_open(stage: Stage) -> None:
    stage.open_sidebar()
    stage.visitor.open_settings()
    expect(stage.visitor.find("shortcuts")).to_be_visible()


def shortcuts_open(stage: Stage) -> None:
    stage.button("shortcuts").click()
    expect(stage.visitor.page.get_by_test_id("stPopoverBody").locator("table")).to_be_visible()


def strategies_listed(stage: Stage) -> None:
    stage.visitor.page.keyboard.press("Escape")
    stage.visitor.find("strategy").get_by_role("combobox").click()
    expect(stage.visitor.page.get_by_role("option").first).to_be_visible()


def without_summaries(stage: Stage) -> None:
    stage.visitor.page.get_by_role("option", name=stage.words.strategies["window"]).click()
    expect(stage.visitor.find("compression_rate").get_by_role("slider")).to_be_disabled()


def rich_answer(stage: Stage) -> None:
    stage.visitor.open()
    stage.write("표와 코드와 식을 보여 주세요.", text(RICH))
    stage.visitor.wait_for_end(1)
    expect(stage.visitor.turn(1).locator(".katex").first).to_be_visible()


def steps_open(stage: Stage) -> None:
    calls = [
        ScriptedCall("get_current_time", '{"timezone": "Asia/Seoul"}', "call-1"),
        ScriptedCall("no_such_tool", "{}", "call-2"),
    ]
    stage.write("도구를 두 번 써 주세요.", tools(*calls), text("다 썼습니다."))
    stage.visitor.wait_for_end(2)
    box = stage.visitor.page.locator('[class*="st-key-steps_2_"]')
    box.locator("summary").first.click()
    box.locator("summary").nth(1).click()
    expect(box.get_by_test_id("stCode").first).to_be_visible()


def failed(stage: Stage) -> None:
    stage.write(UNANSWERED, failure(401))
    expect(stage.visitor.find("retry")).to_be_visible()


def retried(stage: Stage) -> None:
    stage.endpoint.script(text("이번에는 답이 왔습니다."), to=UNANSWERED)
    stage.button("retry").click()
    expect(stage.visitor.turn(3)).to_contain_text("이번에는 답이 왔습니다.")
    expect(stage.visitor.find("regenerate")).to_be_visible()


def regenerated(stage: Stage) -> None:
    stage.endpoint.script(text("한 번 더 답합니다."), to=UNANSWERED)
    stage.button("regenerate").click()
    expect(stage.visitor.turn(3)).to_contain_text("한 번 더 답합니다.")
    expect(stage.visitor.find("regenerate")).to_be_visible()


def copied(stage: Stage) -> None:
    stage.visitor.turn(3).get_by_role("button", name=stage.words.copy).click()
    expect(stage.visitor.turn(3).get_by_role("button", name=stage.words.copied)).to_be_visible()


def streaming(stage: Stage) -> None:
    stage.write("천천히 길게 답해 주세요.", hang("첫 문장은 여기까지입니다. "))
    expect(stage.visitor.find("streaming")).to_be_visible()


def refused(stage: Stage) -> None:
    stage.visitor.write("성급한 다음 말")
    expect(stage.visitor.page.get_by_test_id("stToast")).to_be_visible()


def stopped(stage: Stage) -> None:
    stage.button("stop").click()
    expect(stage.visitor.turn(4)).to_contain_text(stage.words.stopped_partial)
    stage.visitor.wait_for_end(4)


def long_message(stage: Stage) -> None:
    stage.visitor.field.fill("")
    stage.visitor.ask("아주 긴 말입니다. " * 900, first=5)


def message_whole(stage: Stage) -> None:
    stage.visitor.turn(5).get_by_role("button", name=stage.words.show_more).click()
    expect(stage.visitor.turn(5).get_by_role("button", name=stage.words.show_less)).to_be_attached()


def message_clamped(stage: Stage) -> None:
    stage.visitor.turn(5).get_by_role("button", name=stage.words.show_less).click()
    expect(stage.visitor.turn(5).get_by_role("button", name=stage.words.show_more)).to_be_attached()


def scrolled_up(stage: Stage) -> None:
    stage.visitor.page.mouse.move(200 if stage.is_narrow else 600, 300)
    stage.visitor.page.mouse.wheel(0, -5_000)
    expect(stage.visitor.page.locator("button.to-end")).to_be_visible()


def back_at_the_end(stage: Stage) -> None:
    stage.visitor.page.locator("button.to-end").click()
    expect(stage.visitor.page.locator("button.to-end")).to_be_hidden()


def tool_running(stage: Stage) -> None:
    asked = "오래 걸리는 도구를 써 주세요."
    call = ScriptedCall("reasoning", '{"material": "", "question": "오래 생각할 물음"}', "call-3")
    stage.endpoint.script(hang(is_silent=True), to="오래 생각할 물음")
    stage.write(asked, tools(call))
    expect(stage.visitor.page.locator("p.phase")).to_have_text(stage.words.phase_tool)


def tool_stopped(stage: Stage) -> None:
    stage.button("stop").click()
    stage.visitor.wait_for_end(6)


def languages_changed(stage: Stage) -> None:
    stage.visitor.page.keyboard.press("Escape")
    own = stage.words.language
    for language in ("ko" if own == "en" else "en", own):
        stage.visitor.find("language").get_by_role("radio", name=LANGUAGE_NAMES[language]).click()
        stage.visitor.expect_language(language)


def themes_changed(stage: Stage) -> None:
    is_dark = stage.visitor.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    own, other = ("dark", "light") if is_dark else ("light", "dark")
    for theme, shown in ((other, other), (own, own), ("system", own)):
        stage.visitor.find("theme").get_by_role("radio", name=stage.words.themes[theme]).click()
        expect(stage.visitor.page.get_by_test_id("stApp")).to_have_css("background-color", BACKGROUNDS[shown])
        stage.visitor.settle()
