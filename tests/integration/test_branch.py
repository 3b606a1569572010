from __future__ import annotations

import pytest

from graph.core.text import title_of
from graph.error import InputError, NotFoundError, TurnRateError
from graph.event import TurnFinished, TurnStopped
from graph.view import BegunTurn
from tests.fake.body import content_of, shape
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI

PNG, WEB = "data:image/png;base64,iVBORw0K", "https://example.org/floor.png"
TABLES = ("session", "turn", "message", "record", "context_reset", "context_block", "model_call", "image")
OTHER = "서버를 11월 20일에 옮기면 무엇이 달라지는지 설명해 주세요."


def rows_of(chat: Chat) -> list[object]:
    return [chat.rows(f"SELECT * FROM {table} WHERE session_id = ?", chat.session_id) for table in TABLES]  # noqa: S608  # names of our own


def ended(chat: Chat, session_id: str) -> Chat:
    """The branch, once its turn has its answer."""
    branch = Chat(chat.service, session_id)
    assert isinstance(branch.events()[-1], TurnFinished)
    return branch


def test_an_edited_question_is_asked_in_a_branch_and_the_session_stays(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 6)
    before = rows_of(chat)
    branch = ended(chat, chat.service.turns.edit(chat.session_id, 5, OTHER))
    assert content_of(server.bodies("chat")[-1]["messages"][-1]).endswith(OTHER)
    assert shape(server.bodies("chat")[-1])[:2] == [(1, 3), 4]
    assert [turn.user_text for turn in branch.turns] == [*map(question, range(1, 5)), OTHER]
    assert (branch.view.forked_from, branch.view.forked_after) == (chat.session_id, 4)
    assert rows_of(chat) == before


def test_an_earlier_answer_is_made_again_in_a_branch_with_the_images_of_its_question(
    chat: Chat, server: FakeOpenAI
) -> None:
    chat.ask(1, 1)
    chat.service.turns.send(chat.session_id, question(2), images=[PNG, WEB])
    assert isinstance(chat.events()[-1], TurnFinished)
    chat.ask(3, 3)
    before = rows_of(chat)
    server.script(text("다른 답입니다."))
    session_id, number = chat.service.turns.regenerate(chat.session_id, turn=2)
    branch = ended(chat, session_id)
    assert (number, branch.last_turn.answer_text, branch.last_turn.attempt) == (2, "다른 답입니다.", 1)
    sent = server.bodies("chat")[-1]["messages"][-1]["content"]
    assert [part["image_url"]["url"] for part in sent if "image_url" in part] == [PNG, WEB]
    assert branch.last_turn.user_text == chat.turns[1].user_text
    assert rows_of(chat) == before
    again = ended(chat, chat.service.turns.edit(chat.session_id, 2, ""))
    assert again.last_turn.user_text == "[image]\n[image]"


def test_a_question_with_images_that_is_edited_as_it_is_shown_says_nothing_of_them(
    chat: Chat, server: FakeOpenAI
) -> None:
    chat.service.turns.send(chat.session_id, question(1), images=[PNG, WEB])
    chat.events()
    shown = chat.last_turn.user_text
    branch = ended(chat, chat.service.turns.edit(chat.session_id, 1, shown.replace("질문", "물음", 1)))
    words, *images = server.bodies("chat")[-1]["messages"][-1]["content"]
    assert words["text"].endswith(question(1).replace("질문", "물음", 1))
    assert len(images) == 2
    assert branch.last_turn.user_text == shown.replace("질문", "물음", 1)


def test_the_last_answer_is_made_again_in_its_place(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    server.script(text("다른 답입니다."))
    assert chat.service.turns.regenerate(chat.session_id, turn=2) == BegunTurn(chat.session_id, 2)
    chat.events()
    assert (chat.last_turn.answer_text, chat.last_turn.attempt) == ("다른 답입니다.", 2)
    assert len(chat.service.sessions.list()) == 1


@pytest.mark.parametrize("turn", [0, -1, 3])
def test_a_turn_that_there_is_not_is_neither_edited_nor_answered_again(chat: Chat, turn: int) -> None:
    chat.ask(1, 2)
    with pytest.raises(NotFoundError):
        chat.service.turns.edit(chat.session_id, turn, OTHER)
    with pytest.raises(NotFoundError):
        chat.service.turns.regenerate(chat.session_id, turn=turn)
    assert chat.rows("SELECT count(*) FROM session") == [(1,)]


def test_a_refused_edit_leaves_no_branch(open_chat: OpenChat) -> None:
    chat = open_chat(turns_per_minute=2, message_chars=1_000)
    chat.ask(1, 2)
    for refused in ("", " \n", "가" * 1_001):
        with pytest.raises(InputError):
            chat.service.turns.edit(chat.session_id, 2, refused)
    with pytest.raises(TurnRateError):
        chat.service.turns.edit(chat.session_id, 1, OTHER)
    assert chat.rows("SELECT count(*) FROM session") == [(1,)]
    assert chat.rows("SELECT count(*) FROM lease WHERE session_id <> ?", chat.session_id) == [(0,)]


def test_a_question_is_edited_while_its_answer_is_written(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    server.script(hang(), to=question(3))
    chat.start(question(3))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    branch = ended(chat, chat.service.turns.edit(chat.session_id, 3, OTHER))
    assert shape(server.bodies("chat")[-1])[:2] == [1, 2]
    assert branch.view.turn_count == 3
    chat.service.turns.stop(chat.session_id)
    assert isinstance(chat.events()[-1], TurnStopped)


def test_another_first_question_gives_the_branch_its_title_unless_the_user_did(chat: Chat) -> None:
    chat.ask(1, 2)
    first = ended(chat, chat.service.turns.edit(chat.session_id, 1, OTHER))
    assert first.view.title == title_of(OTHER)
    assert (first.view.turn_count, first.view.forked_from) == (1, chat.session_id)
    chat.service.sessions.rename(chat.session_id, "서버 이전")
    second = ended(chat, chat.service.turns.edit(chat.session_id, 1, OTHER))
    assert second.view.title == "서버 이전"
    third = ended(chat, chat.service.turns.edit(chat.session_id, 2, OTHER))
    assert third.view.title == "서버 이전"


def test_where_a_branch_comes_from_is_told_while_that_is_there(chat: Chat) -> None:
    chat.ask(1, 2)
    branch = Chat(chat.service, chat.service.sessions.fork(chat.session_id, after_turn=1))
    assert (branch.view.forked_from, branch.view.forked_after) == (chat.session_id, 1)
    chat.service.sessions.delete(chat.session_id)
    assert (branch.view.forked_from, branch.view.forked_after) == ("", 0)


def test_a_rating_is_kept_until_the_turn_runs_again(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    turns = chat.service.turns
    turns.rate(chat.session_id, 1, -1)
    turns.rate(chat.session_id, 3, 1)
    assert [turn.rating for turn in chat.turns] == [-1, 0, 1]
    branch = Chat(chat.service, chat.service.sessions.fork(chat.session_id, after_turn=2))
    assert [turn.rating for turn in branch.turns] == [-1, 0]
    server.script(hang(), to=question(3))
    turns.regenerate(chat.session_id)
    server.wait_until(lambda fake: fake.hanging_count == 1)
    with pytest.raises(NotFoundError):
        turns.rate(chat.session_id, 3, 1)
    turns.rate(chat.session_id, 1, 0)
    turns.stop(chat.session_id)
    chat.events()
    assert [turn.rating for turn in chat.turns] == [0, 0, 0]
    turns.rate(chat.session_id, 3, 1, attempt=1)
    assert [turn.rating for turn in chat.turns] == [0, 0, 0]
    turns.rate(chat.session_id, 3, 1, attempt=2)
    assert [turn.rating for turn in chat.turns] == [0, 0, 1]
    with pytest.raises(NotFoundError):
        turns.rate(chat.session_id, 4, 1)
