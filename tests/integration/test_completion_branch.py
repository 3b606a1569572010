from __future__ import annotations

import pytest

from graph.error import BusyError
from graph.event import TurnFinished, TurnStopped
from tests.fake.body import content_of, faults, summaries
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.resending import CHAT_ID, assistant, begin, counts, go, user


def test_an_edit_forks_once_and_going_back_returns_to_the_first_branch(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat, hint=CHAT_ID)
    go(program, 1, 8)
    session = program.ask(question(9)).session_id
    kept = list(program.messages)
    program.messages = program.messages[:8]
    edited = program.ask("질문 5번을 고쳤습니다. 서버는 부산에 둡니다. 예산은 얼마입니까?")
    assert (edited.turn, edited.matched) == (5, "fork")
    assert edited.session_id != session
    assert program.ask(question(6)).session_id == edited.session_id
    body = server.bodies("chat")[-1]
    assert summaries(body) == [(1, 3)]
    assert faults(body["messages"]) == []
    program.messages = kept
    back = program.ask(question(10))
    assert (back.session_id, back.turn) == (session, 10)
    assert counts(chat)[0] == 2


def test_the_last_question_again_is_a_new_attempt(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    go(program, 1, 2)
    server.script(text("Another answer."))
    question_again = program.messages[-2]
    program.messages = program.messages[:-1]
    reading = program.take(program.begin())
    assert reading.text == "Another answer."
    assert (reading.turn, program.messages[-2]) == (2, question_again)
    assert counts(chat)[:2] == [1, 2]
    assert program.ask(question(3)).turn == 3
    assert "Another answer." in [content_of(message) for message in server.bodies("chat")[-1]["messages"]]


def test_several_models_in_one_chat_get_branches_of_their_own(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("Half"))
    one = begin(chat, hint=CHAT_ID, model="scripted-model")
    two = begin(chat, hint=CHAT_ID, model="another")
    one.messages = two.messages = [user(question(1))]
    first = one.begin()
    first.wait_for_text()
    second = two.begin()
    assert isinstance(second.last, TurnFinished)
    assert second.session_id != first.session_id
    assert server.bodies("chat")[-1]["model"] == "another"
    first.completion.stop()
    assert isinstance(first.last, TurnStopped)


def test_a_history_that_was_never_seen_is_imported_and_folded(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    for number in range(1, 7):
        program.messages += [user(question(number)), assistant(f"{number}번의 답은 다른 서버가 했습니다. " * 8)]
    first = program.ask(question(7))
    assert (first.turn, first.matched) == (7, "new")
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    Chat(chat.service, first.session_id).wait_for_folds()
    second = program.ask(question(8))
    assert (second.session_id, second.turn, second.matched) == (first.session_id, 8, "history")
    assert summaries(server.bodies("chat")[-1])[:1] == [(1, 3)]
    turns = Chat(chat.service, first.session_id).turns
    assert [turn.user_text for turn in turns] == [question(number) for number in range(1, 9)]


def test_a_question_wrapped_in_found_documents_makes_no_fork(chat: Chat) -> None:
    program = begin(chat)
    program.ask(question(1))
    wrapped = program.ask(f"### Context:\n<source>서버 사양서</source>\n\n{question(2)}")
    program.messages[-2] = user(question(2))
    after = program.ask(question(3))
    assert (after.session_id, after.turn) == (wrapped.session_id, 3)
    assert program.ask(question(4)).turn == 4
    assert counts(chat)[0] == 1


def test_another_models_answer_in_the_middle_forks_there(chat: Chat) -> None:
    program = begin(chat)
    go(program, 1, 3)
    program.messages[3] = assistant("두 번째 답은 다른 모델이 했습니다.")
    reading = program.ask(question(4))
    assert (reading.turn, reading.matched) == (4, "fork")
    answers = [turn.answer_text for turn in Chat(chat.service, reading.session_id).turns]
    assert answers[1] == "두 번째 답은 다른 모델이 했습니다."
    assert program.ask(question(5)).session_id == reading.session_id
    assert counts(chat)[0] == 2


def test_an_image_goes_out_as_it_came_and_needs_no_second_sending(chat: Chat, server: FakeOpenAI) -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    program = begin(chat)
    program.messages = [user("What is this?", url)]
    first = program.take(program.begin())
    part = {"type": "image_url", "image_url": {"url": url}}
    assert part in server.bodies("chat")[-1]["messages"][-1]["content"]
    program.messages[0] = user("What is this?")
    second = program.ask(question(2))
    assert (second.session_id, second.turn) == (first.session_id, 2)


def test_a_refused_edit_leaves_no_fork(open_chat: OpenChat) -> None:
    chat = open_chat(turns_per_minute=4)
    program = begin(chat)
    go(program, 1, 4)
    before = counts(chat)
    program.messages = [*program.messages[:4], user("an edited question")]
    with pytest.raises(BusyError):
        program.begin()
    assert counts(chat) == before
