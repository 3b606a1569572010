"""The states of the list of chats, and of the empty page's own ways into one."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Locator, expect

from tests.browser.stage import Stage
from tests.fake.chat import Chat

SAID: Final = "너구리"
TITLE: Final = "목록에서 찾을 이야기를 하나 둡니다."


def rows(stage: Stage) -> Locator:
    return stage.visitor.page.locator('[class*="st-key-row_session_"], [class*="st-key-open_session_"]')


def search(stage: Stage, words: str) -> None:
    stage.visitor.find("search").get_by_role("searchbox").fill(words)


def choose(stage: Stage, choice: str) -> None:
    menu = stage.visitor.find(f"menu_{stage.visitor.session_id}")
    menu.hover()
    menu.locator("button").click()
    stage.visitor.page.get_by_role("menuitem", name=choice).click()
    expect(stage.dialog).to_be_visible()


def many_chats(stage: Stage) -> None:
    chat = Chat(stage.service)
    chat.say(TITLE)
    chat.say(f"제목에는 없는 말로 {SAID} 이야기도 합니다.")
    chat.copy(31)
    stage.visitor.open()
    stage.open_sidebar()
    expect(rows(stage)).to_have_count(30)


def more_chats(stage: Stage) -> None:
    stage.button("more_sessions").click()
    expect(rows(stage).nth(31)).to_be_attached()


def no_chat_found(stage: Stage) -> None:
    search(stage, "천산갑")
    expect(stage.visitor.page.get_by_text(stage.words.no_match)).to_be_visible()


def lines_found(stage: Stage) -> None:
    search(stage, SAID)
    lines = stage.visitor.page.locator('[class*="st-key-found_"]')
    expect(lines.first).to_contain_text(SAID)


def chats_found(stage: Stage) -> None:
    search(stage, TITLE)
    expect(rows(stage).nth(31)).to_be_attached()


def search_cleared(stage: Stage) -> None:
    search(stage, "")
    expect(stage.visitor.page.get_by_text(stage.words.no_match)).to_have_count(0)
    expect(rows(stage).first).to_be_visible()


def chat_opened(stage: Stage) -> None:
    rows(stage).get_by_role("button", name=TITLE, exact=True).first.click()
    expect(stage.visitor.turn(1)).to_be_visible()


def renamed(stage: Stage) -> None:
    stage.open_sidebar()
    choose(stage, stage.words.rename)
    title = f"새 이름 {stage.words.language}"
    stage.dialog.get_by_role("textbox").fill(title)
    stage.button("dialog_confirm").click()
    expect(stage.dialog).to_have_count(0)
    expect(stage.visitor.open_row).to_contain_text(title)


def not_deleted(stage: Stage) -> None:
    choose(stage, stage.words.delete)
    stage.button("dialog_cancel").click()
    expect(stage.dialog).to_have_count(0)


def deleted(stage: Stage) -> None:
    choose(stage, stage.words.delete)
    stage.button("dialog_confirm").click()
    expect(stage.dialog).to_have_count(0)
    expect(stage.visitor.find("suggestions")).to_be_visible()


def suggestion_sent(stage: Stage) -> None:
    stage.close_sidebar()
    stage.button("suggestion_0").click()
    stage.visitor.wait_for_end(1)


def new_chat(stage: Stage) -> None:
    stage.open_sidebar()
    stage.button("new_chat").click()
    expect(stage.visitor.find("suggestions")).to_be_visible()


def example_open(stage: Stage) -> None:
    stage.button("open_example").click()
    expect(stage.visitor.turn(7)).to_be_visible()
