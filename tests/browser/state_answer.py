"""The states of answers: what comes, fails, is stopped, and is found again after a reload."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import expect

from tests.browser.stage import Stage
from tests.fake.openai_reply import ScriptedCall, failure, hang, slowed, text, tools

UNANSWERED: Final = "이번에는 답이 오지 않습니다."
AGAIN: Final = '한 번 더 답합니다.\n\n| 값 | 뜻 |\n|---|---|\n| "5" | **다섯** & <여섯> |'
SLOW: Final = "천천히 길게 답해 주세요."
FONT_SIZE: Final = "element => parseFloat(getComputedStyle(element).fontSize)"
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

각주[^1]입니다.

[^1]: 7쪽
"""


def rich_answer(stage: Stage) -> None:
    stage.visitor.open()
    stage.write("표와 코드와 식을 보여 주세요.", text(RICH))
    stage.visitor.wait_for_end(1)
    expect(stage.visitor.turn(1).locator(".katex").first).to_be_visible()
    heads = ("제목", stage.words.footnotes)
    large, small = (stage.visitor.turn(1).get_by_role("heading", name=name, exact=True) for name in heads)
    assert small.evaluate(FONT_SIZE) < large.evaluate(FONT_SIZE)


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


def _reason(stage: Stage) -> str:
    return stage.words.errors["authentication"].replace("`", "")


def failed(stage: Stage) -> None:
    stage.write(UNANSWERED, failure(401))
    expect(stage.visitor.turn(3)).to_contain_text(_reason(stage))
    expect(stage.visitor.find("retry")).to_be_visible()


def retried(stage: Stage) -> None:
    stage.endpoint.script(text("이번에는 답이 왔습니다."), to=UNANSWERED)
    stage.button("retry").click()
    expect(stage.visitor.turn(3)).to_contain_text("이번에는 답이 왔습니다.")
    expect(stage.visitor.find("regenerate")).to_be_visible()
    expect(stage.visitor.turn(3).get_by_text(_reason(stage))).to_have_count(0)


def regenerated(stage: Stage) -> None:
    stage.endpoint.script(text(AGAIN), to=UNANSWERED)
    stage.button("regenerate").click()
    expect(stage.visitor.turn(3)).to_contain_text("한 번 더")
    expect(stage.visitor.turn(3).get_by_text("이번에는 답이 왔습니다.")).to_have_count(0)
    expect(stage.visitor.find("regenerate")).to_be_visible()


def copied(stage: Stage) -> None:
    """What is copied is the answer as it was written."""
    copy = stage.visitor.turn(3).locator("button.copy")
    assert stage.copied(copy) == AGAIN
    expect(stage.visitor.turn(3).get_by_role("button", name=stage.words.copied)).to_be_visible()


def streaming(stage: Stage) -> None:
    stage.write(SLOW, hang("첫 문장은 여기까지입니다. "))
    expect(stage.visitor.find("streaming")).to_be_visible()
    stop = stage.button("stop")
    expect(stop).to_be_visible()
    if not stage.is_narrow:  # it ends where the field does
        ends = [
            part.evaluate("part => part.getBoundingClientRect().right") for part in (stop, stage.visitor.find("ask"))
        ]
        assert abs(ends[0] - ends[1]) < 1
    if stage.is_narrow:  # beside it stands the share of the context
        stage.visitor.page.wait_for_function(
            """(stop) => document.querySelector(".gauge b").getBoundingClientRect().right
                <= stop.getBoundingClientRect().left""",
            arg=stop.element_handle(),
        )


def queued(stage: Stage) -> None:
    stage.visitor.write("기다리는 다음 말")
    expect(stage.visitor.page.locator(".waiting")).to_contain_text(stage.words.queue.waits)
    expect(stage.visitor.page.locator(".waiting p")).to_have_text("기다리는 다음 말")


def queued_edited(stage: Stage) -> None:
    stage.visitor.page.locator(".waiting").get_by_role("button", name=stage.words.queue.edit).click()
    edited = stage.visitor.page.locator(".waiting textarea")
    expect(edited).to_be_focused()
    edited.fill("고쳤다가 말 말")
    edited.press("Escape")
    expect(stage.visitor.page.locator(".waiting p")).to_have_text("기다리는 다음 말")
    expect(stage.button("stop")).to_be_visible()


def queued_taken_back(stage: Stage) -> None:
    stage.visitor.field.fill("쓰던 말")
    stage.visitor.page.locator(".waiting").get_by_role("button", name=stage.words.queue.back).click()
    expect(stage.visitor.page.locator(".waiting")).to_have_count(0)
    expect(stage.visitor.field).to_have_value("기다리는 다음 말\n쓰던 말")


def stopped(stage: Stage) -> None:
    """Escape stops it; what was said and what is typed stays."""
    stage.visitor.page.keyboard.press("Escape")
    expect(stage.visitor.turn(4)).to_contain_text(stage.words.stopped_partial)
    expect(stage.visitor.turn(4)).to_contain_text("첫 문장은 여기까지입니다.")
    stage.visitor.wait_for_end(4)
    expect(stage.visitor.field).to_have_value("기다리는 다음 말\n쓰던 말")


def stopped_before_a_word(stage: Stage) -> None:
    """The call to the model ends, and the question can be asked again."""
    asked = f"답이 오지 않을 질문입니다 ({stage.words.language})."
    hanging = stage.endpoint.script(hang(is_silent=True), to=asked)
    stage.visitor.write(asked)
    stage.endpoint.wait_until(lambda _: hanging.is_asked_for)
    stage.button("stop").click()
    stage.visitor.wait_for_end(5)
    expect(stage.visitor.turn(5)).to_contain_text(stage.words.stopped_empty)
    stage.endpoint.wait_until(lambda _: hanging.exchanges[0].is_closed_early)
    stage.endpoint.script(text("이제 답합니다."), to=asked)
    stage.button("retry").click()
    expect(stage.visitor.turn(5)).to_contain_text("이제 답합니다.")
    expect(stage.visitor.find("regenerate")).to_be_visible()


def reloaded_in_the_middle(stage: Stage) -> None:
    """The answer goes on, and is asked for once."""
    asked = f"새로 고쳐도 이어지는지 보여 주세요 ({stage.words.language})."
    stage.write(asked, slowed(text(" ".join(f"낱말{number}" for number in range(60))), 0.06))
    expect(stage.visitor.turn(6)).to_contain_text("낱말5")
    stage.visitor.page.reload()
    stage.visitor.settle()
    expect(stage.visitor.turn(6)).to_contain_text("낱말10")
    stage.visitor.wait_for_end(6)
    expect(stage.visitor.turn(6)).to_contain_text("낱말59")
    assert len(stage.endpoint.bodies("chat", to=asked)) == 1
    expect(stage.visitor.page.locator('[class*="st-key-turn_"]')).to_have_count(6)


def long_message(stage: Stage) -> None:
    stage.visitor.field.fill("")
    stage.visitor.ask("아주 긴 말입니다. " * 900, first=7)
    box = stage.visitor.turn(7).locator('[class*="_question_"]').first
    line = stage.visitor.turn(7).get_by_test_id("stText").first
    height = line.evaluate("element => parseFloat(getComputedStyle(element.firstElementChild ?? element).lineHeight)")
    assert 11.5 < box.evaluate("element => element.clientHeight") / height < 12.5


def message_whole(stage: Stage) -> None:
    stage.visitor.turn(7).get_by_role("button", name=stage.words.show_more).click()
    expect(stage.visitor.turn(7).get_by_role("button", name=stage.words.show_less)).to_be_attached()


def message_clamped(stage: Stage) -> None:
    stage.visitor.turn(7).get_by_role("button", name=stage.words.show_less).click()
    expect(stage.visitor.turn(7).get_by_role("button", name=stage.words.show_more)).to_be_attached()


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
    thinking = stage.endpoint.script(hang(is_silent=True), to="오래 생각할 물음")
    stage.write(asked, tools(call))
    expect(stage.visitor.page.locator("p.phase")).to_contain_text(stage.words.phase_tool)
    stage.endpoint.wait_until(lambda _: thinking.is_asked_for)


def tool_stopped(stage: Stage) -> None:
    stage.button("stop").click()
    stage.visitor.wait_for_end(8)
