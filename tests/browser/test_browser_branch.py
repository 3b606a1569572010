from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from component.word import Words
from graph.service import ChatService
from tests.browser.conftest import visiting
from tests.browser.stage import LOOKS, words_in
from tests.browser.visitor import Visitor
from tests.fake.chat import Chat
from tests.fake.openai_reply import Body, Reply, text
from tests.fake.openai_server import FakeOpenAI


@pytest.fixture(params=LOOKS)
def look(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def words(look: str) -> Words:
    return words_in(look)


@pytest.fixture
def chat(other_server: ChatService) -> Chat:
    chat = Chat(other_server)
    chat.ask(1, 4)
    return chat


@pytest.fixture
def looking(look: str, chromium: Browser, address: str, chat: Chat) -> Iterator[Visitor]:
    with visiting(chromium, address, **LOOKS[look]) as visitor:
        yield visitor.open(f"?session={chat.session_id}")


def press(visitor: Visitor, turn: int, name: str) -> None:
    button = visitor.turn(turn).get_by_role("button", name=name, exact=False)
    button.scroll_into_view_if_needed()
    button.click()


def field_of(visitor: Visitor, turn: int) -> Locator:
    return visitor.turn(turn).get_by_role("textbox")


def test_a_rating_is_kept_and_can_be_taken_back(looking: Visitor, words: Words, chat: Chat) -> None:
    for turn in (2, 4):
        press(looking, turn, words.sessions.good)
        expect(looking.turn(turn).get_by_role("button", name=words.sessions.good, pressed=True)).to_be_attached()
    assert [turn.rating for turn in chat.turns] == [0, 1, 0, 1]
    looking.page.reload()
    looking.settle()
    press(looking, 2, words.sessions.bad)
    expect(looking.turn(2).get_by_role("button", name=words.sessions.bad, pressed=True)).to_be_attached()
    press(looking, 4, words.sessions.good)
    expect(looking.turn(4).get_by_role("button", name=words.sessions.good, pressed=False)).to_be_attached()
    assert [turn.rating for turn in chat.turns] == [0, -1, 0, 0]


def test_an_edited_question_is_asked_in_a_branch_that_leads_back(
    looking: Visitor, words: Words, chat: Chat, fake_openai: FakeOpenAI
) -> None:
    asked = "두 번째 질문을 다르게 묻습니다."
    fake_openai.script(text("다른 답입니다."), to=asked)
    press(looking, 2, words.sessions.edit)
    expect(field_of(looking, 2)).to_be_focused()
    expect(field_of(looking, 2)).to_have_value(chat.turns[1].user_text)
    field_of(looking, 2).fill(asked)
    press(looking, 2, words.sessions.ask_in_branch)
    expect(looking.turn(2)).to_contain_text("다른 답입니다.")
    looking.wait_for_end(2)
    expect(looking.turn(3)).to_have_count(0)
    line = looking.find("branch_of")
    expect(line).to_contain_text(words.sessions.branch_of.format(title=chat.view.title, turn=1))
    line.get_by_role("button").click()
    expect(looking.turn(4)).to_be_visible()
    expect(looking.turn(2)).to_contain_text(chat.turns[1].user_text)
    assert looking.session_id == chat.session_id


def test_a_cancelled_edit_leaves_the_question_as_it_was(looking: Visitor, words: Words, chat: Chat) -> None:
    press(looking, 3, words.sessions.edit)
    field_of(looking, 3).fill("버릴 말")
    press(looking, 3, words.cancel)
    expect(field_of(looking, 3)).to_have_count(0)
    expect(looking.turn(3)).to_contain_text(chat.turns[2].user_text)
    press(looking, 3, words.sessions.edit)
    expect(field_of(looking, 3)).to_have_value(chat.turns[2].user_text)


def test_an_earlier_answer_is_made_again_in_a_branch(looking: Visitor, words: Words, chat: Chat) -> None:
    press(looking, 1, words.sessions.regenerate)
    line = looking.find("branch_of")
    expect(line).to_contain_text(words.sessions.branch_of_all.format(title=chat.view.title))
    looking.wait_for_end(1)
    assert looking.session_id != chat.session_id
    assert [turn.attempt for turn in chat.turns] == [1, 1, 1, 1]


def test_what_is_being_edited_survives_the_end_of_an_answer(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked, may_answer = "고치는 동안 끝날 답을 주세요.", threading.Event()

    def answer(_: Body) -> Reply:
        may_answer.wait(60)
        return text("이제 끝났습니다.")

    fake_openai.script(answer, to=asked)
    visitor.open()
    visitor.ask("먼저 짧은 물음을 하나 드립니다.")
    visitor.write(asked)
    expect(visitor.turn(2).get_by_role("status")).to_be_visible()
    press(visitor, 1, "질문 고치기")
    field_of(visitor, 1).press_sequentially(" 다시 묻습니다.")
    may_answer.set()
    visitor.wait_for_end(2)
    expect(field_of(visitor, 1)).to_have_value("먼저 짧은 물음을 하나 드립니다. 다시 묻습니다.")
    expect(field_of(visitor, 1)).to_be_focused()
