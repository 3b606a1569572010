from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from graph.client import ClientOptions
from graph.event import TurnFinished
from graph.view import TurnOptions
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, close_early, failure, hang, refusal, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.titled import asked_count, source_of, tries, wait_for_others, wait_for_tries

TITLE = "서버 이전 계획"
EDITOR = TurnOptions(client=ClientOptions("editor"))


@pytest.mark.parametrize("auto_titles", [True, False])
def test_without_the_setting_or_an_endpoint_nothing_is_asked(
    open_chat: OpenChat,
    server: FakeOpenAI,
    auto_titles: bool,  # noqa: FBT001  # a case
) -> None:
    nowhere = {"openai_api_key": None, "openai_base_url": None, "chat_model": None}
    chat = open_chat(auto_titles=auto_titles, **(nowhere if auto_titles else {}))
    for number in (1, 2, 3):
        chat.say(question(number))
    title = chat.view.title
    chat.close()
    again = open_chat(chat.session_id, auto_titles=False)
    assert (again.view.title, tries(again), asked_count(server)) == (title, [], 0)


def test_a_chat_that_its_user_has_named_keeps_the_name(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(auto_titles=True)
    chat.ask(1, 1)
    chat.service.sessions.rename(chat.session_id, "내 이름")
    chat.ask(2, 3)
    wait_for_others(chat)
    assert (chat.view.title, source_of(chat), tries(chat)) == ("내 이름", "user", [])
    assert asked_count(server, question(1)) == 0


def test_a_name_that_is_given_while_the_model_is_asked_wins(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(auto_titles=True)

    def rename(_: Body) -> Reply:
        chat.service.sessions.rename(chat.session_id, "내 이름")
        return text(TITLE)

    server.script(rename, kind="title")
    chat.ask(1, 2)
    wait_for_tries(chat, 1)
    chat.ask(3, 3)
    wait_for_others(chat)
    assert (chat.view.title, source_of(chat), tries(chat)) == ("내 이름", "user", [(20, "")])


def test_a_chat_that_is_deleted_while_the_model_is_asked_leaves_nothing(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(auto_titles=True)

    def delete(_: Body) -> Reply:
        chat.service.sessions.delete(chat.session_id)
        return text(TITLE)

    server.script(delete, kind="title")
    for number in (1, 2):
        chat.say(question(number))
    chat.wait_until(lambda: chat.rows("SELECT count(*) FROM session") == [(0,)])
    wait_for_others(chat)
    assert tries(chat) == []


UNUSABLE: Final[dict[str, tuple[list[Reply], dict[str, float]]]] = {
    "failing": ([failure(500), failure(401)], {}),
    "hanging": ([hang(is_silent=True), hang("서버")], {"fold_deadline_seconds": 2}),
    "cut": ([close_early("서버"), close_early()], {}),
    "empty": ([text(""), text(" \n```\n```")], {}),
    "refusing": ([refusal("안 됩니다"), text("죄송하지만 " + "도와드릴 수 없습니다. " * 10)], {}),
    "saying nothing": ([text('"".'), text("제목:")], {}),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_gives_no_title_is_tried_once_more_and_never_again(
    open_chat: OpenChat, server: FakeOpenAI, name: str
) -> None:
    replies, settings = UNUSABLE[name]
    chat = open_chat(auto_titles=True, **settings)
    server.script(*replies, kind="title")
    chat.say(question(1))
    title = chat.view.title
    for number in (2, 3):
        assert isinstance(chat.say(question(number))[-1], TurnFinished)
        wait_for_tries(chat, number - 1)
    for number in (4, 5):
        assert isinstance(chat.say(question(number))[-1], TurnFinished)
    wait_for_others(chat)
    assert (chat.view.title, source_of(chat), len(tries(chat))) == (title, "", 2)


def by_a_program(chat: Chat) -> None:
    for number in (1, 2, 3):
        chat.say(question(number), options=EDITOR)


def as_the_example(chat: Chat) -> None:
    chat.session_id = chat.service.sessions.open_example("ko")
    chat.say(question(1))


def of_old(chat: Chat) -> None:
    chat.ask(1, 1)
    chat.change("UPDATE session SET title = 'named before that was noted'")
    chat.ask(2, 3)


@pytest.mark.parametrize("begin", [by_a_program, as_the_example, of_old])
def test_what_is_not_titled_by_its_first_words_of_the_page_is_left(
    open_chat: OpenChat, server: FakeOpenAI, begin: Callable[[Chat], None]
) -> None:
    chat = open_chat(auto_titles=True)
    begin(chat)
    title = chat.view.title
    wait_for_others(chat)
    assert (chat.view.title, source_of(chat), tries(chat)) == (title, "", [])
    assert asked_count(server) == 1


def test_a_day_that_is_used_up_has_no_title_made(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(auto_titles=True, user_tokens_per_day=10**9)

    def use_up(_: Body) -> Reply:
        chat.change("UPDATE owner_use SET tokens = 1000000000 WHERE owner = 'local'")
        return text("네.")

    chat.ask(1, 1)
    server.script(use_up, to=question(2))
    chat.say(question(2))
    wait_for_others(chat, owner="second")
    assert tries(chat) == []
    assert asked_count(server, question(1)) == 0
