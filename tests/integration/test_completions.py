from __future__ import annotations

from pathlib import Path

import pytest

from graph.client import Hint
from graph.core.text import title_of
from graph.error import NotFoundError
from graph.event import TurnFinished, TurnStopped
from tests.fake.body import content_of, faults, shape, system_prompt
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.resending import CHAT_ID, Program, assistant, begin, counts, go, user
from tests.fake.store import leave_behind


def test_a_chat_that_is_resent_is_folded_like_the_pages(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(turns_per_minute=10_000)
    chat.ask(1, 50)
    page = server.bodies("chat")
    program = begin(chat)
    go(program, 1, 50)
    bodies = server.bodies("chat")[50:]
    assert [body["messages"] for body in bodies] == [body["messages"] for body in page]
    assert [body.get("tools") for body in bodies] == [body.get("tools") for body in page]
    assert shape(bodies[-1]) == [*((first, first + 2) for first in range(1, 48, 3)), 49, 50]
    assert counts(chat) == [2, 100, 200, 32]


def test_each_answer_names_its_session_and_turn(chat: Chat) -> None:
    program = begin(chat)
    first, second = program.ask(question(1)), program.ask(question(2))
    assert first.session_id == second.session_id
    assert [(reading.turn, reading.matched) for reading in (first, second)] == [(1, "new"), (2, "history")]
    assert first.completion.id != second.completion.id
    assert chat.service.sessions.get(first.session_id).turn_count == 2


@pytest.mark.parametrize("greeting", ["Hi", "안녕"])
def test_two_chats_that_begin_alike_stay_two(chat: Chat, server: FakeOpenAI, greeting: str) -> None:
    one, two = begin(chat), begin(chat)
    server.script(text("The first answer."), text("The second answer."))
    first, second = one.ask(greeting), two.ask(greeting)
    assert first.session_id != second.session_id
    assert two.ask(question(2)).session_id == second.session_id
    assert one.ask(question(2)).session_id == first.session_id
    assert counts(chat)[:2] == [2, 4]


def test_two_chats_with_equal_words_so_far_go_their_own_ways(chat: Chat, server: FakeOpenAI) -> None:
    one, two = begin(chat), begin(chat)
    server.script(text("Hello!"), text("Hello!"))
    sessions = {one.ask("Hi").session_id, two.ask("Hi").session_id}
    assert len(sessions) == 2
    first, second = one.ask(question(1)), two.ask(question(2))
    assert {first.session_id, second.session_id} == sessions
    assert one.ask(question(3)).session_id == first.session_id
    assert two.ask(question(4)).session_id == second.session_id


def test_a_conversation_that_is_held_twice_is_two_sessions(chat: Chat) -> None:
    one, two = begin(chat), begin(chat)
    for number in (1, 2, 3):
        first = one.ask(question(number))
    for number in (1, 2, 3):
        second = two.ask(question(number))
    assert one.messages == two.messages
    assert (second.turn, second.session_id == first.session_id) == (3, False)
    assert counts(chat)[:2] == [2, 6]
    assert chat.rows("SELECT max(attempt) FROM turn") == [(1,)]


def test_two_owners_with_equal_histories_share_nothing(chat: Chat) -> None:
    ours = begin(chat)
    theirs = Program(chat.service.for_owner("bob"))
    first = ours.ask(question(1))
    second = theirs.ask(question(1))
    assert ours.messages == theirs.messages
    assert first.session_id != second.session_id
    assert theirs.ask(question(2)).session_id == second.session_id
    assert ours.ask(question(2)).session_id == first.session_id
    with pytest.raises(NotFoundError):
        theirs.ask(question(3), session=first.session_id)


@pytest.mark.parametrize(
    "fields", [{"task": "title_generation"}, {"is_plain": True}, {}], ids=["header", "plain model", "template"]
)
def test_a_title_request_leaves_no_trace(chat: Chat, server: FakeOpenAI, fields: dict[str, object]) -> None:
    program = begin(chat, hint=CHAT_ID)
    first = program.ask(question(1))
    before = counts(chat), chat.service.folds.statistics(first.session_id)
    title = "### Task:\nGenerate a concise title.\n<chat_history>\nUSER: Hi\n</chat_history>"
    asking = begin(chat, hint=CHAT_ID)
    reading = asking.ask(title, **fields)
    assert (reading.matched, reading.session_id) == ("aside", "")
    assert (counts(chat), chat.service.folds.statistics(first.session_id)) == before
    assert [message["role"] for message in server.bodies()[-1]["messages"]] == ["user"]
    assert program.ask(question(2)).turn == 2


def test_a_history_cut_in_front_lands_in_its_session_with_its_summaries(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    go(program, 1, 8)
    whole = program.ask(question(9))
    Chat(chat.service, whole.session_id).wait_for_folds()
    program.messages = program.messages[-6:]
    cut = program.ask(question(10))
    assert (cut.session_id, cut.turn, cut.matched) == (whole.session_id, 10, "tail")
    assert shape(server.bodies("chat")[-1]) == [(1, 3), (4, 6), (7, 9), 10]


def test_what_a_program_puts_before_the_known_history_is_sent_and_not_stored(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    go(program, 1, 4)
    stored = counts(chat)[2]
    server.script(text("그 예산으로 충분합니다."))
    program.messages = [user("Earlier: the budget is 77 won."), assistant("Noted."), *program.messages[-4:]]
    reading = program.ask(question(5))
    assert (reading.turn, reading.matched) == (5, "tail")
    body = server.bodies("chat")[-1]
    assert "사용자: Earlier: the budget is 77 won.\nAI: Noted.\n" in content_of(body["messages"][-1])
    assert faults(body["messages"]) == []
    assert counts(chat)[2] == stored + 2
    program.messages = program.messages[2:]
    assert program.ask(question(6)).turn == 6
    assert "77 won" not in "".join(map(content_of, server.bodies("chat")[-1]["messages"]))


def test_a_system_prompt_with_the_time_in_it_makes_no_fork(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    for minute in range(4):
        program.options = {"system": f"Answer briefly. It is 12:0{minute}."}
        reading = program.ask(question(minute + 1))
        assert reading.turn == minute + 1
        assert f"It is 12:0{minute}." in system_prompt(server.bodies("chat")[-1])
    figures = reading.end.figures
    assert figures["system_changes"] == 3
    assert figures["lost_tokens_estimate"] > 0
    assert counts(chat)[0] == 1


def test_a_restart_between_any_two_requests_changes_nothing(open_chat: OpenChat, server: FakeOpenAI) -> None:
    program = Program(open_chat().service)
    sessions = set()
    for number in range(1, 6):
        with open_chat() as chat:
            program.service = chat.service
            reading = program.ask(question(number))
            assert reading.turn == number
            sessions.add(reading.session_id)
            Chat(chat.service, reading.session_id).wait_for_folds()
    assert len(sessions) == 1
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5]


def test_a_session_that_is_named_goes_on_without_its_history(chat: Chat, server: FakeOpenAI) -> None:
    first = begin(chat).ask(question(1))
    second = begin(chat, session=first.session_id).ask(question(2))
    assert (second.session_id, second.turn, second.matched) == (first.session_id, 2, "header")
    assert shape(server.bodies("chat")[-1]) == [1, 2]


def test_all_that_is_said_at_once_to_a_named_session_is_kept(chat: Chat, server: FakeOpenAI) -> None:
    first = begin(chat).ask(question(1))
    program = begin(chat, session=first.session_id)
    program.messages = [user(question(2)), user(question(3))]
    reading = program.take(program.begin())
    assert (reading.session_id, reading.matched) == (first.session_id, "header")
    asked = [turn.user_text for turn in Chat(chat.service, first.session_id).turns]
    assert asked == [question(1), question(2), question(3)]
    sent = [content_of(message) for message in server.bodies("chat")[-1]["messages"]]
    assert sum(question(2) in text for text in sent) == 1
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_a_name_that_nobody_has_is_not_found(chat: Chat) -> None:
    before = counts(chat)
    with pytest.raises(NotFoundError):
        begin(chat, session="nobody").ask(question(1))
    assert counts(chat) == before


def test_page_and_program_go_on_with_one_session(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    session = program.ask(question(1)).session_id
    page = Chat(chat.service, session)
    assert isinstance(page.say(question(2))[-1], TurnFinished)
    reading = program.ask(question(3))
    assert (reading.session_id, reading.turn) == (session, 3)
    assert shape(server.bodies("chat")[-1]) == [1, 2, 3]
    assert [turn.user_text for turn in page.turns] == [question(number) for number in (1, 2, 3)]


def test_a_chat_id_of_the_client_finds_its_session_and_one_of_a_temporary_chat_does_not_count(chat: Chat) -> None:
    for hint, matched in ((CHAT_ID, "hint"), (Hint(CHAT_ID.name, "local:tab"), "history")):
        program = begin(chat, hint=hint)
        first, second = program.ask(question(1)), program.ask(question(2))
        assert (second.session_id, second.matched) == (first.session_id, matched)


def test_sessions_and_turns_of_a_program_have_its_name(chat: Chat) -> None:
    program = Program(chat.service, name="notes")
    program.messages = [user(question(1)), assistant("다른 서버의 답입니다.")]
    session = program.ask(question(2)).session_id
    program.messages = [*program.messages[:2], user("고친 질문입니다. 예산은 얼마입니까?")]
    fork = program.take(program.begin()).session_id
    assert fork != session
    for identifier in (session, fork):
        view = chat.service.sessions.get(identifier)
        assert (view.client, view.turn_count, view.title) == ("notes", 2, title_of(question(1)))
        assert [turn.client for turn in Chat(chat.service, identifier).turns] == ["notes", "notes"]


def test_a_killed_server_costs_no_session(open_chat: OpenChat, server: FakeOpenAI, tmp_path: Path) -> None:
    chat = open_chat()
    program = begin(chat)
    program.ask(question(1))
    server.script(hang("The migration ", "is on the 10th"))
    program.messages.append(user(question(2)))
    reading = program.begin()
    chat.wait_until(lambda: chat.rows("SELECT partial_text FROM turn")[-1] == ("The migration is on the 10th",))
    leave_behind(chat.service.settings, tmp_path / "left")
    reading.completion.stop()
    assert isinstance(reading.last, TurnStopped)
    program.service = open_chat(turnfold_data_dir=tmp_path / "left").service
    program.messages.append(assistant("The migration is"))
    after = program.ask(question(3))
    assert (after.session_id, after.turn) == (reading.session_id, 3)
