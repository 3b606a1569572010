"""The states of a chat with summaries: its lines, its panel, its commands."""

from __future__ import annotations

from playwright.sync_api import expect

from graph.view import TurnOptions
from tests.browser.stage import Stage
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import ScriptedCall, text, tools

# More than a summary has room for, so that some are missing from it.
MEASURED = ", ".join(f"{7 * number} kg" for number in range(1, 100))
WITH_CODE = """<summary>
배포를 확인하는 코드입니다.

```python
def steps() -> list[str]:  # the order of the move, the longest line of this summary
    return ["replicate the database", "move the traffic", "check", 7] if True else []
```
</summary>"""


def folded(stage: Stage) -> None:
    chat = Chat(stage.service)
    for number in range(1, 14):
        chat.say(question(number) * 4 + (MEASURED if number == 12 else ""))
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


def facts_open(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-more_summary_"] button').first.click()
    expect(stage.panel.locator('[class*="st-key-whole_summary_"]')).to_have_count(0)
    stage.panel.locator('[class*="st-key-facts_"] summary').first.click()
    expect(stage.panel.get_by_text(stage.words.facts_missing, exact=True)).to_be_visible()


def older_rows_open(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-older_"] summary').first.click()
    stage.panel.locator('[class*="st-key-older_"] [class*="st-key-older_"] summary').first.click()
    expect(stage.panel.locator('[class*="st-key-older_"] [class*="st-key-card_"]')).to_be_visible()


def statistics(stage: Stage) -> None:
    stage.panel.get_by_role("tab", name=stage.words.tab_statistics).click()
    expect(stage.panel.locator('[data-testid="stVegaLiteChart"] :is(svg, canvas)').first).to_be_visible()


def input_shown(stage: Stage) -> None:
    stage.panel.get_by_role("tab", name=stage.words.input.tab).click()
    expect(stage.panel.locator(".input-bar[role='img']")).to_be_visible()
    expect(stage.panel.get_by_text(stage.words.input.verified)).to_be_visible()


def input_blocks_open(stage: Stage) -> None:
    stage.visitor.page.get_by_role("option", name=stage.words.input.in_turn.format(turn=5)).click()
    expect(stage.panel.get_by_text(stage.words.input.sent.format(turn=5))).to_be_visible()
    stage.visitor.settle()  # till then the boxes of the other turn stand there
    for kind in ("system", "tools", "records"):
        stage.panel.locator(f'[class*="st-key-input_{kind}_"] summary').first.click()
    stage.panel.locator('[class*="st-key-input_tool_"] summary').first.click()
    expect(stage.panel.locator('[class*="st-key-input_tool_"] [data-testid="stCode"]')).to_be_visible()
    stage.panel.locator('[class*="st-key-input_part_records_"] summary').first.click()
    more = stage.panel.locator('[class*="st-key-input_part_records_"] [class*="st-key-more_input_"] button')
    more.click()
    expect(more).to_contain_text(stage.words.show_less)


def input_turns_listed(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-input_turn_"]').get_by_role("combobox").click()
    expect(stage.visitor.page.get_by_role("option").first).to_be_visible()


def input_history_open(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-input_history_"] summary').first.click()
    # The rows come one by one, the oldest last.
    first = stage.panel.locator(
        '[class*="st-key-input_past_"][class$="_1"], [class*="st-key-input_past_"][class*="_1 "]'
    ).first
    first.locator("summary").click()
    expect(first.get_by_test_id("stText").first).to_be_visible()


def input_request_open(stage: Stage) -> None:
    box = stage.panel.locator('[class*="st-key-input_request_"]').first
    box.locator("summary").click()
    expect(box.get_by_test_id("stCode")).to_contain_text('"messages": [')


def card_followed(stage: Stage) -> None:
    stage.panel.get_by_role("tab", name=stage.words.tab_summaries).click()
    stage.visitor.note_marks()
    stage.panel.locator("button.to-turns").first.click()
    stage.visitor.wait_for_marks(*map(stage.visitor.turn, (10, 11, 12)))


def turns_recalled(stage: Stage) -> None:
    call = ScriptedCall("recall", '{"turns": "2, 5"}', "call-recall")
    stage.write("앞에서 정한 것을 다시 봅시다.", tools(call), text("둘 다 보았습니다."))
    stage.visitor.wait_for_end(14)
    stage.visitor.find("steps_14_1").locator("summary").first.click()
    # The box itself is one of these, and the step in it another.
    expect(stage.visitor.find("steps_14_1").get_by_test_id("stExpander").nth(1)).to_be_visible()
    expect(stage.visitor.turn(14).locator("button.recalled-turn")).to_have_count(2)


def recalled_followed(stage: Stage) -> None:
    stage.visitor.note_marks()
    stage.visitor.turn(14).get_by_role("button", name=stage.words.to_turn.format(turn=5)).click()
    stage.visitor.wait_for_marks(stage.visitor.turn(5))


def menu_open(stage: Stage) -> None:
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


def reset_cancelled(stage: Stage) -> None:
    stage.button("dialog_cancel").click()
    expect(stage.dialog).to_have_count(0)


def reset_done(stage: Stage) -> None:
    stage.visitor.write("/reset")
    stage.button("dialog_confirm").click()
    expect(stage.visitor.page.get_by_text(stage.words.reset_divider)).to_be_visible()


def reset_undone(stage: Stage) -> None:
    stage.button("undo_reset").click()
    expect(stage.visitor.page.get_by_text(stage.words.reset_divider)).to_have_count(0)


def compacted(stage: Stage) -> None:
    chat = Chat(stage.service)
    asked = "코드까지 남길 대화입니다. "
    for _ in range(6):
        chat.say(asked + "배포를 확인하는 코드를 봅니다. " * 30, options=TurnOptions(strategy="compaction"))
    stage.visitor.open(f"?session={chat.session_id}")
    stage.endpoint.script(text(WITH_CODE), text(WITH_CODE), kind="summary", to=asked, may_stay=True)
    stage.visitor.write("/compact")
    expect(stage.visitor.page.get_by_test_id("stToast")).to_be_visible()
    expect(stage.visitor.page.locator('[class*="st-key-fold_"]')).to_be_attached()


def compaction_card(stage: Stage) -> None:
    if stage.is_narrow:
        stage.button("open_panel").click()
    expect(stage.panel.locator('[class*="st-key-restore_"]')).to_be_visible()
    is_dark = stage.visitor.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    word = stage.panel.locator("code .token.keyword").first
    expect(word).to_have_css("color", "rgb(142, 194, 255)" if is_dark else "rgb(11, 79, 168)")


def compacted_again(stage: Stage) -> None:
    chat = Chat(stage.service, stage.visitor.session_id)
    for number in range(7, 12):
        chat.say(question(number) * 3, options=TurnOptions(strategy="compaction"))
    chat.service.folds.compact(chat.session_id)
    stage.visitor.open(f"?session={chat.session_id}")
    if stage.is_narrow:
        stage.button("open_panel").click()
    earlier = stage.panel.locator('[class*="st-key-compactions_"]')
    earlier.locator("summary").click()
    expect(earlier.locator('[class*="st-key-restore_"]')).to_be_visible()
    expect(earlier.locator("pre code")).to_be_visible()  # it comes later than the words around it


def restored(stage: Stage) -> None:
    stage.panel.locator('[class*="st-key-restore_"] button').filter(visible=True).first.click()
    expect(stage.panel.locator('[class*="st-key-compactions_"]')).to_have_count(0)
    expect(stage.panel.locator('[class*="st-key-restore_"]')).to_have_count(1)


def long_chat(stage: Stage) -> None:
    chat = Chat(stage.service)
    chat.ask(1, 31)
    stage.visitor.open(f"?session={chat.session_id}")
    expect(stage.visitor.find("earlier")).to_be_attached()
    expect(stage.visitor.turn(1)).to_have_count(0)


def earlier_shown(stage: Stage) -> None:
    stage.button("earlier").click()
    expect(stage.visitor.turn(1)).to_be_attached()
    expect(stage.visitor.find("earlier")).to_have_count(0)
