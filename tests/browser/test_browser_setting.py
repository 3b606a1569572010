from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from graph.service import ChatService
from tests.browser.conftest import visiting
from tests.browser.state_chat import BACKGROUNDS
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import Body, Reply, text
from tests.fake.openai_server import FakeOpenAI


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


@pytest.fixture
def forty_chats(other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 1)
    chat.copy(40)


def test_the_open_chat_is_in_view_wherever_it_is_in_the_list(visitor: Visitor, other_server: ChatService) -> None:
    old, many = Chat(other_server), Chat(other_server)
    old.ask(1, 1)
    many.ask(1, 1)
    many.copy(40)
    visitor.open(f"?session={old.session_id}")
    expect(visitor.find("more_sessions")).to_be_attached()
    expect(visitor.open_row).to_be_in_viewport(ratio=1)
    visitor.page.get_by_test_id("stSidebar").hover()
    visitor.page.mouse.wheel(0, 3000)
    expect(visitor.find("more_sessions")).to_be_in_viewport()
    expect(visitor.open_row).to_be_in_viewport(ratio=1)


@pytest.mark.usefixtures("forty_chats")
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1280, 640), (390, 844)])
def test_settings_are_in_view_however_many_chats_there_are(
    chromium: Browser, address: str, width: int, height: int
) -> None:
    with visiting(chromium, address, viewport={"width": width, "height": height}, has_touch=width < 400) as visitor:
        visitor.open()
        if width < 400:
            visitor.page.get_by_test_id("stExpandSidebarButton").click()
        head = visitor.find("settings").locator("summary")
        expect(visitor.find("more_sessions")).to_be_attached()
        expect(head).to_be_in_viewport(ratio=1)
        visitor.open_settings()
        expect(head).to_be_in_viewport(ratio=1)
        expect(visitor.find("compression_rate").first).to_be_in_viewport(ratio=1)
        box = visitor.find("settings").get_by_test_id("stExpanderDetails")
        expect(box).to_be_in_viewport(ratio=1)
        visitor.find("shortcuts").scroll_into_view_if_needed()
        expect(visitor.find("shortcuts")).to_be_in_viewport(ratio=1)
        expect(head).to_be_in_viewport(ratio=1)


def choose_theme(visitor: Visitor, name: str) -> None:
    visitor.open_settings()
    visitor.find("theme").get_by_role("radio", name=name).press("Enter")


def expect_theme(visitor: Visitor, theme: str) -> None:
    expect(visitor.page.get_by_test_id("stApp")).to_have_css("background-color", BACKGROUNDS[theme])


def test_a_chosen_theme_holds_after_a_reload_and_the_system_is_followed_again(chromium: Browser, address: str) -> None:
    with visiting(chromium, address, color_scheme="light") as visitor:
        visitor.open()
        expect_theme(visitor, "light")
        expect(visitor.page.get_by_test_id("stMainMenu")).to_be_hidden()
        choose_theme(visitor, "어둡게")
        expect_theme(visitor, "dark")
        expect(visitor.page.get_by_test_id("stMainMenuPopover")).to_have_count(0)
        visitor.page.reload()
        visitor.settle()
        expect_theme(visitor, "dark")
        visitor.open_settings()
        expect(visitor.find("theme").get_by_role("radio", name="어둡게")).to_be_checked()
        visitor.find("theme").get_by_role("radio", name="시스템").press("Enter")
        expect_theme(visitor, "light")
        visitor.page.emulate_media(color_scheme="dark")
        expect_theme(visitor, "dark")
        visitor.page.emulate_media(color_scheme="light")
        visitor.page.reload()
        visitor.settle()
        expect_theme(visitor, "light")


def test_choosing_a_theme_loses_neither_draft_nor_answer(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    gate = threading.Event()

    def answer(_: Body) -> Reply:
        gate.wait(60)
        return text("끝까지 왔습니다.")

    asked = "색을 바꾸는 동안 답해 주세요."
    fake_openai.script(answer, to=asked)
    visitor.open()
    visitor.write(asked)
    expect(visitor.find("stop")).to_be_visible()
    visitor.field.fill("아직 보내지 않은 말")
    visitor.page.evaluate("window.stays = true")
    choose_theme(visitor, "어둡게")
    expect_theme(visitor, "dark")
    gate.set()
    visitor.wait_for_end(1)
    expect(visitor.turn(1)).to_contain_text("끝까지 왔습니다.")
    expect(visitor.field).to_have_value("아직 보내지 않은 말")
    assert visitor.page.evaluate("window.stays")
