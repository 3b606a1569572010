from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from playwright.sync_api import expect

from graph.service import ChatService
from tests.browser.test_browser_axe import violations
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat

NAME = "editor"


def begun_by_a_program(folder: Path, chat: Chat) -> str:
    chat.ask(1, 1)
    with closing(sqlite3.connect(folder / "data" / "turnfold.db")) as stored, stored:
        stored.execute("UPDATE session SET client = ? WHERE session_id = ?", (NAME, chat.session_id))
        stored.execute("UPDATE turn SET client = ? WHERE session_id = ?", (NAME, chat.session_id))
    return chat.session_id


def test_a_programs_chat_bears_its_name_and_is_gone_on_with_here(
    visitor: Visitor, folder: Path, other_server: ChatService
) -> None:
    session_id = begun_by_a_program(folder, Chat(other_server))
    visitor.open(f"?session={session_id}")
    expect(visitor.find(f"client_{session_id}")).to_have_text(f"terminal 프로그램: {NAME}")
    row, mark = (
        visitor.find(f"open_session_{session_id}").bounding_box(),
        visitor.find(f"client_{session_id}").bounding_box(),
    )
    assert row is not None
    assert mark is not None
    assert 0 <= mark["y"] + mark["height"] - (row["y"] + row["height"]) <= 40
    expect(visitor.find("begun_by")).to_contain_text(f"“{NAME}” 프로그램이 시작한 대화입니다.")
    expect(visitor.turn(1).get_by_text(f"프로그램: {NAME}")).to_be_visible()
    visitor.ask("여기서 이어 갑니다.", first=2)
    expect(visitor.turn(2)).to_be_visible()
    expect(visitor.turn(2).get_by_text("프로그램: ")).to_have_count(0)
    assert violations(visitor.page) == []
