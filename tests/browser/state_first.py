"""The states of a first visit to a server without a key: a suggestion, a new chat, the example that goes on."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.stage import Stage


def open_example(stage: Stage) -> str:
    stage.button("open_example").click()
    stage.visitor.page.wait_for_url("**session=*")  # a turn 7 of the chat before may still stand there
    expect(stage.visitor.turn(7)).to_be_visible()
    stage.visitor.settle()  # until the run ends the empty page's sample of a card stands in the panel too
    return stage.visitor.session_id


def _new_chat(stage: Stage) -> None:
    stage.open_sidebar()
    stage.visitor.begin_chat()
    if stage.is_narrow:
        expect(stage.visitor.page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    else:
        expect(stage.visitor.field).to_be_focused()


def empty(stage: Stage) -> None:
    stage.visitor.open()
    expect(stage.visitor.find("empty").get_by_role("heading")).to_be_in_viewport()
    expect(stage.visitor.find("empty")).to_contain_text(stage.words.offline_note.partition(".")[0])
    stage.expect_nothing_sticks_out()


def commands_listed(stage: Stage) -> None:
    stage.visitor.field.fill("/")
    expect(stage.visitor.page.get_by_role("listbox")).to_be_visible()


def help_shown(stage: Stage) -> None:
    stage.visitor.field.press("ArrowUp")
    stage.visitor.field.press("Enter")
    expect(stage.visitor.field).to_have_value("/help")
    stage.visitor.field.press("Enter")
    expect(stage.dialog.locator("table")).to_be_visible()


def suggestion_answered(stage: Stage) -> None:
    stage.close_dialog()
    stage.button("suggestion_1").click()
    stage.visitor.wait_for_end(1)
    expect(stage.visitor.turn(1)).to_contain_text(stage.words.tool_used_once)
    expect(stage.visitor.turn(1)).to_contain_text(re.compile(r"20\d\d"))


def answer_told(stage: Stage) -> None:
    about = stage.visitor.turn(1).locator("details.about")
    about.locator("summary").click()
    expect(about.locator("time")).to_be_in_viewport()
    expect(about).to_contain_text("offline-mini")


def example_open(stage: Stage) -> None:
    _new_chat(stage)
    open_example(stage)
    expect(stage.visitor.turn(1)).to_contain_text("12,400")
    expect(
        stage.visitor.page.get_by_text(stage.words.fold_divider.partition("·")[0].format(turns="1-3"))
    ).to_be_attached()
    stage.expect_nothing_sticks_out()
    if stage.is_narrow:
        expect(stage.visitor.find("open_panel")).to_contain_text(stage.words.open_panel.format(count=2))


def example_folds(stage: Stage) -> None:
    panel = stage.open_panel()
    for turns in ("1-3", "4-6"):
        expect(panel.get_by_text(stage.words.card_title.format(turns=turns))).to_be_visible()
    free = stage.words.card_free.format(model=stage.words.summarisers["example"])
    panel.locator('[class*="st-key-details_"] summary').first.click()
    expect(panel.get_by_text(free).first).to_be_visible()


def example_statistics(stage: Stage) -> None:
    stage.panel.get_by_role("tab", name=stage.words.tab_statistics).click()
    expect(stage.panel).to_contain_text(stage.words.stat_count.format(count=2, turns=6))
    expect(stage.panel).to_contain_text(stage.words.prepared)
    expect(stage.panel.locator('[data-testid="stVegaLiteChart"] :is(svg, canvas)').first).to_be_visible()


def example_input(stage: Stage) -> None:
    stage.panel.get_by_role("tab", name=stage.words.input.tab).click()
    expect(stage.panel.locator(".input-bar[role='img']")).to_be_visible()
    stage.close_panel()


def example_goes_on(stage: Stage) -> None:
    """It answers from what was said, and is opened again, not made twice."""
    first = stage.visitor.session_id
    asked, known = {
        "ko": ("예산이 월 얼마라고 했지?", "45만 원"),
        "en": ("What did I say the monthly budget is?", "budget"),
    }[stage.words.language]
    stage.visitor.ask(asked, first=8)
    expect(stage.visitor.turn(8).get_by_test_id("stChatMessage").last).to_contain_text(known)
    expect(stage.button("model_menu")).to_contain_text("offline-mini")
    _new_chat(stage)
    assert open_example(stage) == first
    expect(stage.visitor.turn(8)).to_be_visible()
    rows = stage.visitor.find("sessions").locator(f'[class*="st-key-session_{first}"]')
    expect(rows).to_have_count(1)
