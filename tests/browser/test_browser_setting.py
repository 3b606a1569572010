from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.fake.chat import question


def test_the_last_of_quick_changes_holds_though_each_waits_for_the_database(visitor: Visitor, folder: Path) -> None:
    visitor.open()
    visitor.ask(question(1))
    visitor.open_settings()
    thumb = visitor.find("compression_rate").get_by_role("slider")
    thumb.focus()
    with closing(sqlite3.connect(folder / "data" / "turnfold.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(4):
            thumb.press("ArrowRight")
            visitor.page.wait_for_timeout(300)  # longer than the page waits before it tells the server
        other.execute("ROLLBACK")
        expect(visitor.find("panel").get_by_text("현재 압축률: 0.5")).to_be_visible()
        visitor.page.reload()
        visitor.settle()
        expect(visitor.find("panel").get_by_text("현재 압축률: 0.5")).to_be_visible()
        rates = other.execute("SELECT compression_rate FROM session WHERE session_id = ?", [visitor.session_id])
        assert rates.fetchall() == [(0.5,)]
