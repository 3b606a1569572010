"""The states of a reset, of compactions, and of a chat whose beginning isn't drawn."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Locator, expect

from graph.value.view import TurnOptions
from tests.browser.stage import Stage
from tests.fake.body import raw_turns, shape
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import text

# Where the number of a turn begins and ends, from the left edge of what the chat scrolls in.
NUMBER: Final = """(turn) => {
    const style = getComputedStyle(turn, "::before");
    const left = turn.getBoundingClientRect().left - document.querySelector("#stMain").getBoundingClientRect().left;
    const moved = new DOMMatrix(style.transform).m41;
    return [left + parseFloat(style.left) + moved, parseFloat(style.width)];
}"""
FONT_SIZE: Final = "element => parseFloat(getComputedStyle(element).fontSize)"
STRUCTURED: Final = """<summary>
1. **Task Overview**
   배포를 확인하는 코드입니다.
2. **Current State**
   - [문서](https://example.com/a_b)와 https://example.com/c, kim@example.com 참고
   - ![그림](https://example.com/x.png)

## Next Steps

```python
def steps() -> list[str]:  # the order of the move, the longest line of this summary
    return ["replicate the database", "move the traffic", "check", 7] if True else []
```
</summary>"""


def reset_done(stage: Stage) -> None:
    chat = Chat(stage.service)
    chat.ask(1, 4)
    stage.visitor.open(f"?session={chat.session_id}")
    stage.visitor.write("/reset")
    expect(stage.visitor.page.get_by_text(stage.words.reset_divider)).to_be_visible()
    past = stage.visitor.page.locator("[class*=st-key-past_]")
    expect(past).to_contain_text(stage.words.fold_divider_past.partition("·")[0].format(turns="1-3"))
    expect(past).to_have_css("opacity", "0.75")


def reset_undone(stage: Stage) -> None:
    """The model knows the summary again."""
    stage.button("undo_reset").press("Enter")
    expect(stage.visitor.page.get_by_text(stage.words.reset_divider)).to_have_count(0)
    if not stage.is_narrow:  # there a keyboard would open
        expect(stage.visitor.field).to_be_focused()
    divider = stage.words.fold_divider.partition("·")[0].format(turns="1-3")
    expect(stage.visitor.page.get_by_text(divider)).to_be_visible()
    stage.visitor.ask(question(5), first=5)
    assert shape(stage.endpoint.bodies("chat")[-1]) == [(1, 3), 4, 5]


def reset_holds(stage: Stage) -> None:
    """With the next message there is no way back, and the model knows nothing of before."""
    stage.visitor.write("/reset")
    expect(stage.visitor.find("undo_reset")).to_be_visible()
    stage.visitor.ask(question(6), first=6)
    assert raw_turns(stage.endpoint.bodies("chat")[-1]) == [6]
    expect(stage.visitor.page.get_by_text(stage.words.reset_divider)).to_be_visible()
    expect(stage.visitor.find("undo_reset")).to_have_count(0)


def compacted(stage: Stage) -> None:
    chat = Chat(stage.service)
    asked = "코드까지 남길 대화입니다. "
    # What the summary names has been said.
    links = "https://example.com/a_b https://example.com/c https://example.com/x.png kim@example.com "
    for _ in range(6):
        chat.say(asked + links + "배포를 확인하는 코드를 봅니다. " * 30, options=TurnOptions(strategy="compaction"))
    stage.visitor.open(f"?session={chat.session_id}")
    stage.endpoint.script(text(STRUCTURED), text(STRUCTURED), kind="summary", to=asked, may_stay=True)
    stage.visitor.write("/compact")
    expect(stage.visitor.find("change_bar")).to_contain_text(stage.words.undo)
    fold = stage.visitor.page.locator('[class*="st-key-fold_"]')
    fold.locator("summary").click()
    expect_structured(fold)


def expect_structured(box: Locator) -> None:
    """A summary is shown as Markdown, but leads nowhere and loads nothing."""
    expect(box.locator("ol > li strong")).to_have_text(["Task Overview", "Current State"])
    expect(box.locator("a, img")).to_have_count(0)
    said = "[문서](https://example.com/a_b)와 https://example.com/c, kim@example.com 참고"
    expect(box.locator("ul > li").first).to_have_text(said)
    assert box.locator("h2").evaluate(FONT_SIZE) <= box.locator("ol > li").first.evaluate(FONT_SIZE)


def compaction_card(stage: Stage) -> None:
    stage.open_panel()
    expect(stage.panel.locator('[class*="st-key-restore_"]')).to_be_visible()
    word = stage.panel.locator("code .token.keyword").first
    expect(word).to_have_css("color", "rgb(142, 194, 255)" if stage.is_dark else "rgb(11, 79, 168)")
    card = stage.panel.locator('[class*="st-key-card_"]').first
    expect_structured(card)
    code = card.locator("pre")
    expect(code).to_have_attribute("tabindex", "0")
    code.focus()
    stage.visitor.page.keyboard.press("ArrowRight")
    stage.visitor.page.wait_for_function("code => code.scrollLeft > 0", arg=code.element_handle())


def compacted_again(stage: Stage) -> None:
    chat = Chat(stage.service, stage.visitor.session_id)
    for number in range(7, 12):
        chat.say(question(number) * 3, options=TurnOptions(strategy="compaction"))
    chat.service.folds.compact(chat.session_id)
    stage.visitor.open(f"?session={chat.session_id}")
    stage.open_panel()
    earlier = stage.panel.locator(".st-key-compactions")
    earlier.locator("summary").click()
    expect(earlier.locator('[class*="st-key-restore_"]')).to_be_visible()
    expect(earlier.locator("pre code")).to_be_visible()  # it comes later than the words around it


def restored(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-restore_"] button').filter(visible=True).first.click()
    expect(stage.panel.locator(".st-key-compactions")).to_have_count(0)
    expect(stage.panel.locator('[class*="st-key-restore_"]')).to_have_count(1)


def long_chat(stage: Stage) -> None:
    chat = Chat(stage.service)
    chat.ask(1, 31)
    stage.visitor.open(f"?session={chat.session_id}")
    expect(stage.visitor.find("earlier")).to_be_attached()
    expect(stage.visitor.turn(1)).to_have_count(0)
    last = stage.visitor.turn(31)
    expect(last).to_have_attribute("data-turn", "31")
    last.evaluate("(turn) => (turn.dataset.turn = '1000')")  # four digits are in view, too
    left, width = last.evaluate(NUMBER)
    assert left >= 0
    assert 15 < width < 30


def earlier_shown(stage: Stage) -> None:
    stage.button("earlier").click()
    expect(stage.visitor.turn(1)).to_be_attached()
    expect(stage.visitor.find("earlier")).to_have_count(0)
