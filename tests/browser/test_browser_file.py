from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from component.word import Words
from graph.service import ChatService
from tests.browser.conftest import visiting
from tests.browser.stage import LOOKS, words_in
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat


@pytest.fixture(params=LOOKS)
def look(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def words(look: str) -> Words:
    return words_in(look)


@pytest.fixture
def visitor(look: str, chromium: Browser, address: str) -> Iterator[Visitor]:
    with visiting(chromium, address, **LOOKS[look]) as visitor:
        visitor.open()
        if "viewport" in LOOKS[look]:
            visitor.page.get_by_test_id("stExpandSidebarButton").click()
        visitor.open_settings()
        yield visitor


def open_file(visitor: Visitor, words: Words, path: Path) -> None:
    with visitor.page.expect_file_chooser() as choosing:
        visitor.page.get_by_role("button", name=words.sessions.open_file).click()
    choosing.value.set_files(path)


def test_a_saved_chat_is_opened_from_its_file(
    visitor: Visitor, words: Words, other_server: ChatService, tmp_path: Path
) -> None:
    chat = Chat(other_server)
    chat.ask(1, 4)
    other_server.turns.rate(chat.session_id, 2, -1)
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join(other_server.sessions.export(chat.session_id)))
    open_file(visitor, words, path)
    expect(visitor.turn(4)).to_be_attached()
    expect(visitor.page.get_by_text(words.sessions.opened.format(count=1))).to_be_attached()
    copy = Chat(other_server, visitor.session_id)
    assert copy.session_id != chat.session_id
    assert [(turn.user_text, turn.answer_text, turn.rating) for turn in copy.turns] == [
        (turn.user_text, turn.answer_text, turn.rating) for turn in chat.turns
    ]
    assert copy.covered == chat.covered == [(1, 2, 3)]


def test_another_file_is_refused(visitor: Visitor, words: Words, tmp_path: Path) -> None:
    path = tmp_path / "letter.jsonl"
    path.write_text("안녕하세요")
    open_file(visitor, words, path)
    expect(visitor.page.get_by_text(words.input_reasons["not_an_export"])).to_be_attached()
    expect(visitor.find("suggestions")).to_be_attached()


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(visitor: Visitor, words: Words, tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    path.write_bytes(b" " * (10 * 2**20 + 1))
    open_file(visitor, words, path)
    expect(visitor.page.get_by_text(words.input_reasons["import_too_large"])).to_be_attached()
