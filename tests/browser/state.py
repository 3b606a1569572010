"""The states that the page can be in, each reached from the one before it in its walk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from playwright.sync_api import Locator, expect

from component.word import Words
from graph.service import ChatService
from graph.view import TurnOptions
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import Reply, ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI

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


@dataclass(frozen=True)
class Stage:
    """A page in one look, and what its states are prepared with."""

    visitor: Visitor
    words: Words
    is_narrow: bool
    endpoint: FakeOpenAI
    service: ChatService

    def button(self, key: str) -> Locator:
        return self.visitor.find(key).locator("button")

    @property
    def dialog(self) -> Locator:
        return self.visitor.page.get_by_role("dialog")

    @property
    def panel(self) -> Locator:
        return self.dialog if self.is_narrow else self.visitor.find("panel")

    def open_sidebar(self) -> None:
        if self.is_narrow:
            self.visitor.page.get_by_test_id("stExpandSidebarButton").click()
            expect(self.visitor.page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "false")

    def write(self, asked: str, *replies: Reply) -> None:
        """Writes a message that these scripted replies answer."""
        self.endpoint.script(*replies, to=asked)
        self.visitor.write(asked)

    def close_dialog(self) -> None:
        self.visitor.page.keyboard.press("Escape")
        expect(self.dialog).to_have_count(0)


State = Callable[[Stage], None]


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


def folded(stage: Stage) -> None:
    chat = Chat(stage.service)
    for number in range(1, 14):
        chat.say(question(number) * 4)
        chat.wait_for_folds()
    stage.visitor.open(f"?session={chat.session_id}")
    expect(stage.visitor.turn(13)).to_be_visible()


def fold_open(stage: Stage) -> None:
    fold = stage.visitor.page.locator('[class*="st-key-fold_"]').last
    fold.locator("summary").click()
    expect(fold.get_by_text(stage.words.fold_text.format(turns="10–12"))).to_be_visible()


def panel_open(stage: Stage) -> None:
    stage.visitor.page.keyboard.press("Escape")
    if stage.is_narrow:
        stage.button("open_panel").click()
    expect(stage.panel.locator('[class*="st-key-card_"]').first).to_be_visible()


def summary_whole(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-more_summary_"] button').first.click()
    expect(stage.panel.locator('[class*="st-key-whole_summary_"]')).to_be_visible()


def older_rows_open(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-older_"] summary').first.click()
    stage.panel.locator('[class*="st-key-older_"] [class*="st-key-older_"] summary').first.click()
    expect(stage.panel.locator('[class*="st-key-older_"] [class*="st-key-card_"]')).to_be_visible()


def statistics(stage: Stage) -> None:
    stage.panel.get_by_role("tab", name=stage.words.tab_statistics).click()
    expect(stage.panel.locator('[data-testid="stVegaLiteChart"] :is(svg, canvas)').first).to_be_visible()


def menu_open(stage: Stage) -> None:
    if stage.is_narrow:
        stage.close_dialog()
    stage.open_sidebar()
    menu = stage.visitor.find(f"menu_{stage.visitor.session_id}")
    menu.hover()
    menu.locator("button").click()
    expect(stage.visitor.page.get_by_role("menuitem").first).to_be_visible()


def rename_dialog(stage: Stage) -> None:
    stage.visitor.page.get_by_role("menuitem", name=stage.words.rename).click()
    expect(stage.dialog.get_by_role("textbox")).to_be_visible()


def rename_refused(stage: Stage) -> None:
    stage.dialog.get_by_role("textbox").fill("")
    stage.dialog.get_by_role("textbox").press("Enter")
    expect(stage.dialog).to_contain_text(stage.words.title_missing)


def delete_dialog(stage: Stage) -> None:
    stage.button("dialog_cancel").click()
    expect(stage.dialog).to_have_count(0)
    menu = stage.visitor.find(f"menu_{stage.visitor.session_id}")
    menu.hover()
    menu.locator("button").click()
    stage.visitor.page.get_by_role("menuitem", name=stage.words.delete).click()
    expect(stage.button("dialog_confirm")).to_be_visible()


def reset_dialog(stage: Stage) -> None:
    chat = Chat(stage.service)
    chat.ask(1, 4)
    stage.visitor.open(f"?session={chat.session_id}")
    stage.visitor.write("/reset")
    expect(stage.button("dialog_confirm")).to_be_visible()


def reset_done(stage: Stage) -> None:
    stage.button("dialog_confirm").click()
    expect(stage.visitor.page.get_by_text(stage.words.reset_divider)).to_be_visible()


def compacted(stage: Stage) -> None:
    chat = Chat(stage.service)
    for number in range(1, 7):
        chat.say(question(number) * 3, options=TurnOptions(strategy="compaction"))
    stage.visitor.open(f"?session={chat.session_id}")
    stage.visitor.write("/compact")
    expect(stage.visitor.page.locator('[class*="st-key-fold_"]')).to_be_attached()


def compaction_card(stage: Stage) -> None:
    if stage.is_narrow:
        stage.button("open_panel").click()
    expect(stage.panel.locator('[class*="st-key-restore_"]')).to_be_visible()


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
    stage.write("이번에는 답이 오지 않습니다.", failure(401))
    expect(stage.visitor.find("retry")).to_be_visible()


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


WALKS: Final[dict[str, Sequence[State]]] = {
    "empty": (empty, settings_open, shortcuts_open, strategies_listed, without_summaries),
    "folded": (
        folded,
        fold_open,
        panel_open,
        summary_whole,
        older_rows_open,
        statistics,
        menu_open,
        rename_dialog,
        rename_refused,
        delete_dialog,
    ),
    "context": (reset_dialog, reset_done, compacted, compaction_card),
    "answers": (rich_answer, steps_open, failed, streaming, refused, stopped, long_message),
}
