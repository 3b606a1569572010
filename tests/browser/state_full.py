"""The states of a chat that comes to the limit of its context, on a server that has a narrow one."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.browser.stage import Stage
from tests.fake.chat import Chat, question


def nearly_full(stage: Stage) -> None:
    """Of a chat whose context has a narrow limit."""
    chat = Chat(stage.service)
    _fill(stage, chat, "nearly_full")
    stage.visitor.open(f"?session={chat.session_id}")
    expect(_alert(stage)).to_contain_text(stage.words.nearly_full.replace("`", ""))


def full(stage: Stage) -> None:
    _fill(stage, Chat(stage.service, stage.visitor.session_id), "full")
    stage.visitor.open(f"?session={stage.visitor.session_id}")
    expect(_alert(stage)).to_contain_text(stage.words.full.replace("`", ""))


def some_unsent(stage: Stage) -> None:
    stage.service.sessions.configure(stage.visitor.session_id, strategy="rolling")
    stage.visitor.open(f"?session={stage.visitor.session_id}")
    sentence = stage.words.unsent.format(count=Chat(stage.service, stage.visitor.session_id).view.unsent_messages)
    expect(stage.visitor.find("chat").get_by_text(sentence)).to_be_visible()


def _fill(stage: Stage, chat: Chat, notice: str) -> None:
    while not stage.service.sessions.list() or chat.view.context_notice != notice:
        chat.say(question(1))


def _alert(stage: Stage) -> Locator:
    return stage.visitor.find("chat").get_by_test_id("stAlert")
