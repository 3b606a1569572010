"""The states of answers that are rated, of questions that are edited, of branches, and of the list's own actions."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.stage import Stage
from tests.browser.state_session import rows
from tests.fake.chat import Chat


def _press(stage: Stage, turn: int, name: str) -> None:
    button = stage.visitor.turn(turn).get_by_role("button", name=name)
    button.scroll_into_view_if_needed()
    button.click()


def _choose(stage: Stage, choice: str) -> None:
    menu = stage.visitor.find(f"menu_{stage.visitor.session_id}")
    menu.hover()
    menu.locator("button").click()
    stage.visitor.page.get_by_role("menuitem", name=choice).click()


def rated(stage: Stage) -> None:
    chat = Chat(stage.service)
    chat.ask(1, 3)
    stage.visitor.open(f"?session={chat.session_id}")
    _press(stage, 2, stage.words.sessions.good)
    expect(stage.visitor.turn(2).get_by_role("button", name=stage.words.sessions.good, pressed=True)).to_be_attached()
    stage.visitor.turn(2).hover()


def edit_open(stage: Stage) -> None:
    _press(stage, 2, stage.words.sessions.edit)
    expect(stage.visitor.turn(2).get_by_role("textbox")).to_be_focused()


def edit_refused(stage: Stage) -> None:
    stage.visitor.turn(2).get_by_role("textbox").fill(" ")
    _press(stage, 2, stage.words.sessions.ask_in_branch)
    expect(stage.visitor.page.get_by_text(stage.words.input_reasons["empty"])).to_be_visible()


def branch_made(stage: Stage) -> None:
    stage.visitor.turn(2).get_by_role("textbox").fill("다르게 묻는 말입니다.")
    _press(stage, 2, stage.words.sessions.ask_in_branch)
    expect(stage.visitor.find("branch_of")).to_be_attached()
    stage.visitor.wait_for_end(2)
    # It says that this is a branch, over what it says this of.
    expect(stage.visitor.page.get_by_test_id("stToast")).to_have_count(0)


def origin_open(stage: Stage) -> None:
    stage.button("to_origin").click()
    expect(stage.visitor.turn(3)).to_be_attached()


def pinned(stage: Stage) -> None:
    stage.open_sidebar()
    _choose(stage, stage.words.sessions.pin)
    expect(stage.visitor.find("sessions").get_by_text(stage.words.sessions.pinned, exact=True)).to_be_visible()


def file_offered(stage: Stage) -> None:
    _choose(stage, stage.words.sessions.export)
    expect(stage.button("export_json")).to_be_visible()


def ticked(stage: Stage) -> None:
    stage.close_dialog()
    stage.button("icon_select").click()
    stage.visitor.page.locator('[class*="st-key-tick_"] label').first.click()
    expect(stage.button("delete_ticked")).to_be_enabled()


def many_deleted(stage: Stage) -> None:
    stage.button("delete_ticked").click()
    expect(stage.visitor.find("deleted")).to_be_visible()


def brought_back(stage: Stage) -> None:
    count = rows(stage).count()
    stage.button("undo_delete").click()
    expect(rows(stage)).to_have_count(count + 1)
