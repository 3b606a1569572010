from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from component.word import Words
from graph.service import ChatService
from tests.browser.conftest import visiting
from tests.browser.stage import LOOKS, Stage, words_in
from tests.fake.chat import Chat
from tests.fake.openai_server import FakeOpenAI


@pytest.fixture
def chats(other_server: ChatService) -> list[Chat]:
    for item in other_server.sessions.list():  # of a page that sent its message as its test ended
        other_server.sessions.delete(item.session_id)
    chats = [Chat(other_server) for _ in range(3)]
    for chat, title in zip(chats, ("하나", "둘", "셋"), strict=True):
        chat.ask(1, 1)
        other_server.sessions.rename(chat.session_id, title)
    return chats


@pytest.fixture(params=LOOKS)
def stage(
    request: pytest.FixtureRequest,
    chromium: Browser,
    address: str,
    fake_openai: FakeOpenAI,
    other_server: ChatService,
    chats: list[Chat],
) -> Iterator[Stage]:
    look = str(request.param)
    with visiting(chromium, address, **LOOKS[look]) as visitor:
        visitor.open(f"?session={chats[0].session_id}")
        narrow = "viewport" in LOOKS[look]
        stage = Stage(visitor, words_in(look), is_narrow=narrow, endpoint=fake_openai, service=other_server)
        stage.open_sidebar()
        yield stage


def titles(stage: Stage) -> Locator:
    return stage.visitor.page.locator('[class*="st-key-session_"] button')


def choose(stage: Stage, chat: Chat, choice: str) -> None:
    menu = stage.visitor.find(f"menu_{chat.session_id}")
    menu.hover()
    menu.locator("button").click()
    stage.visitor.page.get_by_role("menuitem", name=choice, exact=True).click()


def tick(stage: Stage, *chats: Chat, words: Words) -> None:
    stage.button("icon_select").click()
    for number, chat in enumerate(chats, start=1):
        stage.visitor.find(f"tick_{chat.session_id}").locator("label").click()
        expect(stage.button("delete_ticked")).to_have_text(words.sessions.delete_ticked.format(count=number))


def test_a_pinned_chat_stands_first_until_it_is_unpinned(stage: Stage, chats: list[Chat]) -> None:
    said = stage.words.sessions
    expect(titles(stage)).to_have_text(["셋", "둘", "하나"])
    choose(stage, chats[0], said.pin)
    expect(titles(stage)).to_have_text(["하나", "셋", "둘"])
    expect(stage.visitor.find("sessions").get_by_text(said.pinned, exact=True)).to_be_visible()
    choose(stage, chats[0], said.unpin)
    expect(titles(stage)).to_have_text(["셋", "둘", "하나"])
    expect(stage.visitor.find("sessions").get_by_text(said.pinned, exact=True)).to_have_count(0)


def test_ticked_chats_are_deleted_and_brought_back(stage: Stage, chats: list[Chat]) -> None:
    tick(stage, chats[0], chats[2], words=stage.words)
    stage.button("delete_ticked").click()
    expect(titles(stage)).to_have_text(["둘"])
    expect(stage.visitor.find("suggestions")).to_be_attached()
    expect(stage.visitor.find("deleted")).to_contain_text(stage.words.sessions.deleted.format(count=2))
    stage.button("undo_delete").click()
    expect(titles(stage)).to_have_text(["셋", "둘", "하나"])
    expect(stage.visitor.turn(1)).to_be_attached()
    expect(stage.visitor.find("deleted")).to_have_count(0)


def test_the_way_back_goes_after_ten_seconds(stage: Stage, chats: list[Chat]) -> None:
    tick(stage, chats[1], words=stage.words)
    stage.button("delete_ticked").click()
    expect(stage.visitor.find("deleted")).to_be_visible()
    expect(stage.visitor.find("deleted")).to_have_count(0)
    expect(titles(stage)).to_have_text(["셋", "하나"])


def test_a_left_selection_deletes_nothing(stage: Stage, chats: list[Chat]) -> None:
    tick(stage, chats[0], words=stage.words)
    stage.button("cancel_selection").click()
    expect(titles(stage)).to_have_text(["셋", "둘", "하나"])


def save(stage: Stage, key: str) -> tuple[str, str]:
    with stage.visitor.page.expect_download() as saving:
        stage.button(key).click()
    return saving.value.suggested_filename, Path(saving.value.path()).read_text()


def test_a_chat_is_saved_as_a_file_of_either_kind(stage: Stage, chats: list[Chat]) -> None:
    choose(stage, chats[1], stage.words.sessions.export)
    sessions, identifier = stage.service.sessions, chats[1].session_id
    assert save(stage, "export_json") == ("둘.jsonl", "\n".join(sessions.export(identifier)))
    assert save(stage, "export_markdown") == ("둘.md", sessions.export_markdown(identifier))


def test_a_branch_of_a_whole_chat_is_made_in_the_list(stage: Stage, chats: list[Chat]) -> None:
    choose(stage, chats[1], stage.words.sessions.fork)
    expect(stage.visitor.find("branch_of")).to_contain_text(stage.words.sessions.branch_of.format(title="둘", turn=1))
    if stage.is_narrow:
        expect(stage.visitor.page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
