"""The states of a long list of chats: more of them, a search, and a chat that is renamed, deleted and brought back."""

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
    """Chooses something that is asked about."""
    stage.choose(choice)
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


def line_followed(stage: Stage) -> None:
    stage.visitor.page.locator('[class*="st-key-found_"]').first.get_by_role("button").first.click()
    expect(stage.visitor.turn(2)).to_contain_text(SAID)
    expect(stage.visitor.turn(2).get_by_test_id("stChatMessage").first).to_be_in_viewport()


def questions_listed(stage: Stage) -> None:
    find = stage.visitor.find("find")
    expect(find.locator("input")).to_have_value(SAID)
    find.locator("input").fill("")
    expect(find.locator("button.place").last).to_be_visible()


def find_closed(stage: Stage) -> None:
    stage.visitor.page.keyboard.press("Escape")
    expect(stage.visitor.every("find")).to_have_count(0)
    expect(stage.visitor.turn(2)).to_be_focused()  # which the line led to


def chats_found(stage: Stage) -> None:
    stage.open_sidebar()
    search(stage, TITLE)
    expect(rows(stage).nth(31)).to_be_attached()


def search_cleared(stage: Stage) -> None:
    search(stage, "")
    expect(stage.visitor.page.get_by_text(stage.words.no_match)).to_have_count(0)
    expect(rows(stage).first).to_be_visible()


def chat_opened(stage: Stage) -> None:
    rows(stage).get_by_role("button", name=TITLE, exact=True).first.click()
    expect(stage.visitor.turn(1)).to_be_visible()


def name_missing(stage: Stage) -> None:
    stage.open_sidebar()
    choose(stage, stage.words.rename)
    stage.dialog.get_by_role("textbox").fill("")
    stage.dialog.get_by_role("textbox").press("Enter")
    expect(stage.dialog).to_contain_text(stage.words.title_missing)


def renamed(stage: Stage) -> None:
    title = f"새 이름 {stage.words.language}"
    stage.dialog.get_by_role("textbox").fill(title)
    stage.dialog.get_by_role("textbox").press("Enter")
    expect(stage.dialog).to_have_count(0)
    expect(stage.visitor.open_row).to_contain_text(title)


def deleted(stage: Stage) -> None:
    """Without a question: the chat is gone, and the line below the list says which."""
    stage.choose(stage.words.delete)
    expect(stage.visitor.find("suggestions")).to_be_attached()
    title = stage.words.sessions.deleted_one.format(title=f"새 이름 {stage.words.language}")
    expect(stage.visitor.find("deleted")).to_contain_text(title)


def brought_back(stage: Stage) -> None:
    stage.button("undo_delete").click()
    expect(stage.visitor.open_row).to_contain_text(f"새 이름 {stage.words.language}")
    expect(stage.visitor.find("deleted")).to_have_count(0)
    expect(stage.visitor.turn(1)).to_be_attached()
