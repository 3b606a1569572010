"""A program that resends its whole chat: sessions, branches, retries and Stop, over a real service."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from graph.core.text import estimate_tokens, title_of
from graph.recognise.decide import Decision, DecisionKind
from graph.value.client import ClientMessage, Hint
from graph.value.error import BusyError, InputError, NotFoundError, ServerBusyError
from graph.value.event import AnswerRestarted, ClientCall, LeftOut, TurnFailed, TurnFinished, TurnStopped
from graph.value.view import TurnOptions
from tests.fake import resending
from tests.fake.body import content_of, faults, shape, summaries, system_prompt, tool_names
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import chunk, failure, hang, raw, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import tool
from tests.fake.resending import CHAT_ID, Program, Reading, assistant, counts, go, result, user

Grown = Callable[[], list[int]]


@pytest.fixture
def grown(chat: Chat) -> Grown:
    """How many sessions, turns and messages have come since the test began."""
    before = counts(chat)
    return lambda: [now - then for now, then in zip(counts(chat)[:3], before, strict=False)]


def begin(chat: Chat, **fields: object) -> Program:
    """A program in a new chat of an end user whom no other test has."""
    return resending.begin(chat, **{"user": chat.session_id, **fields})


def test_a_chat_that_is_resent_is_folded_like_the_pages(chat: Chat, server: FakeOpenAI, grown: Grown) -> None:
    chat.ask(1, 8)
    page = server.bodies("chat")
    program = begin(chat)
    first = program.ask(question(1))
    go(program, 2, 8)
    bodies = server.bodies("chat")[8:]
    assert [body["messages"] for body in bodies] == [body["messages"] for body in page]
    assert [body.get("tools") for body in bodies] == [body.get("tools") for body in page]
    assert shape(bodies[-1]) == [(1, 3), (4, 6), 7, 8]
    assert grown() == [2, 16, 32]
    # The answers name session and turn.
    program.messages = program.messages[-6:]
    cut = program.ask(question(9))
    assert (cut.session_id, cut.turn, cut.matched) == (first.session_id, 9, "tail")
    assert shape(server.bodies("chat")[-1]) == [(1, 3), (4, 6), 7, 8, 9]
    assert (first.turn, first.matched) == (1, "new")
    assert first.completion.id != cut.completion.id


def test_a_conversation_that_is_held_twice_is_two_sessions_and_two_owners_share_none(chat: Chat) -> None:
    one, two = begin(chat), begin(chat)
    theirs = Program(chat.service.for_owner("bob"), fields=one.fields)
    for number in (1, 2):
        readings = [program.ask(question(number)) for program in (one, two, theirs)]
        assert [reading.turn for reading in readings] == [number] * 3
    assert one.messages == two.messages == theirs.messages
    assert len({reading.session_id for reading in readings}) == 3
    before = counts(chat)
    for program, name in ((theirs, readings[0].session_id), (one, "nobody")):
        with pytest.raises(NotFoundError):
            program.ask(question(4), session=name)
    assert counts(chat)[:3] == before[:3]


def test_questions_in_a_row_that_nobody_answered_are_one(chat: Chat, server: FakeOpenAI, grown: Grown) -> None:
    program = begin(chat)
    program.messages = [user("what is the capital city of ontario?"), user("And the lake?")]
    first = program.ask("and tell me about its history.")
    said = "what is the capital city of ontario?\n\nAnd the lake?\n\nand tell me about its history."
    assert (first.turn, first.matched, grown()) == (1, "new", [1, 1, 2])
    assert [content_of(message) for message in server.bodies("chat")[-1]["messages"][1:]] == [said]
    assert chat.service.turns.transcript(first.session_id).turns[0].user_text == said
    # The program sends them as they were, before an answer and behind one.
    program.messages.append(user(question(2)))
    second = program.ask(question(3))
    third = program.ask(question(4))
    assert [(reading.session_id, reading.turn) for reading in (second, third)] == [
        (first.session_id, 2),
        (first.session_id, 3),
    ]
    assert second.matched == third.matched == "history"
    assert shape(server.bodies("chat")[-1])[-2:] == [2, 4]
    assert f"{question(2)}\n\n{question(3)}" in content_of(server.bodies("chat")[-1]["messages"][-3])
    # Asked again as a whole they are the same turn; one that failed here stays a turn of its own.
    program.messages.pop()
    again = program.take(program.begin())
    assert (again.session_id, again.turn) == (first.session_id, 3)
    server.script(failure(400), to="질문 5번")
    program.messages.append(user(question(5)))
    assert isinstance(program.begin().last, TurnFailed)
    assert program.ask(question(6)).turn == 5
    assert content_of(server.bodies("chat")[-1]["messages"][-1]) == question(6)
    assert grown() == [1, 5, 11]


def test_a_foreign_history_is_imported_without_its_open_questions(chat: Chat, server: FakeOpenAI, grown: Grown) -> None:
    program = begin(chat)
    picture = "data:image/png;base64,iVBORw0KGgo="
    program.messages = [user("Hi"), assistant("Hello!"), user("What is this?", picture), user("And that?", picture)]
    reading = program.ask("Tell me both.")
    assert (reading.turn, grown()[:2]) == (2, [1, 2])
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    last = server.bodies("chat")[-1]["messages"][-1]["content"]
    assert [part["type"] for part in last] == ["text", "image_url", "image_url"]
    assert last[0]["text"] == "What is this?\n\nAnd that?\n\nTell me both."


def test_a_title_request_leaves_no_trace(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat, hint=CHAT_ID)
    first = program.ask(question(1))
    before = counts(chat), chat.service.folds.statistics(first.session_id)
    title = "### Task:\nGenerate a concise title.\n<chat_history>\nUSER: Hi\n</chat_history>"
    for fields in ({"task": "title_generation"}, {"is_plain": True}, {}):
        reading = begin(chat, hint=CHAT_ID).ask(title, **fields)
        assert (reading.matched, reading.session_id) == ("aside", "")
        assert (counts(chat), chat.service.folds.statistics(first.session_id)) == before
        assert [message["role"] for message in server.bodies()[-1]["messages"]] == ["user"]
    second = program.ask(question(2))
    assert (second.session_id, second.turn, second.matched) == (first.session_id, 2, "hint")
    temporary = begin(chat, hint=Hint(CHAT_ID.name, "local:tab"))
    temporary.ask(question(3))
    assert temporary.ask(question(4)).matched == "history"


def test_what_a_program_puts_before_the_known_history_is_sent_and_not_stored(
    chat: Chat, server: FakeOpenAI, grown: Grown
) -> None:
    program = begin(chat)
    go(program, 1, 4)
    server.script(text("그 예산으로 충분합니다."))
    program.messages = [user("Earlier: the budget is 77 won."), assistant("Noted."), *program.messages[-4:]]
    reading = program.ask(question(5))
    assert (reading.turn, reading.matched) == (5, "tail")
    body = server.bodies("chat")[-1]
    told = [content_of(message) for message in body["messages"][-3:]]
    assert told == ["Earlier: the budget is 77 won.", "Noted.", question(5)]
    assert faults(body["messages"]) == []
    assert grown() == [1, 5, 10]
    program.messages = program.messages[2:]
    assert program.ask(question(6)).turn == 6
    assert "77 won" not in "".join(map(content_of, server.bodies("chat")[-1]["messages"]))


def test_a_system_prompt_with_the_time_in_it_and_documents_around_a_question_make_no_fork(
    chat: Chat, server: FakeOpenAI, grown: Grown
) -> None:
    program = begin(chat)
    for number in (1, 2, 3):
        program.options = {"system": f"Answer briefly. It is 12:0{number}."}
        asked = f"### Context:\n<source>서버 사양서</source>\n\n{question(number)}"
        reading = program.ask(asked)
        assert reading.turn == number
        assert f"It is 12:0{number}." in system_prompt(server.bodies("chat")[-1])
        program.messages[-2] = user(question(number))
    figures = reading.end.figures
    assert figures["system_changes"] == 2
    assert figures["lost_tokens_estimate"] > 0
    assert grown()[:2] == [1, 3]


def test_a_restart_between_two_requests_changes_nothing(open_chat: OpenChat, server: FakeOpenAI) -> None:
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


def test_a_session_that_is_named_goes_on_without_its_history_and_keeps_all_that_is_said_at_once(
    chat: Chat, server: FakeOpenAI
) -> None:
    program = begin(chat, session=begin(chat).ask(question(1)).session_id)
    program.messages = [user(question(2)), user(question(3))]
    reading = program.take(program.begin())
    assert (reading.session_id, reading.matched) == (program.fields["session"], "header")
    page = Chat(chat.service, reading.session_id)
    assert isinstance(page.say(question(4))[-1], TurnFinished)
    at_once = f"{question(2)}\n\n{question(3)}"
    assert [turn.user_text for turn in page.turns] == [question(1), at_once, question(4)]
    body = server.bodies("chat")[-2]
    assert sum(question(2) in content_of(message) for message in body["messages"]) == 1
    assert faults(body["messages"]) == []


def test_sessions_and_turns_of_a_program_have_its_name(chat: Chat) -> None:
    program = Program(chat.service, name="notes", fields={"user": chat.session_id})
    program.messages = [user(question(1)), assistant("다른 서버의 답입니다.")]
    session = program.ask(question(2)).session_id
    program.messages = [*program.messages[:2], user("고친 질문입니다. 예산은 얼마입니까?")]
    fork = program.take(program.begin()).session_id
    assert fork != session
    for identifier in (session, fork):
        view = chat.service.sessions.get(identifier)
        assert (view.client, view.turn_count, view.title) == ("notes", 2, title_of(question(1)))
        assert [turn.client for turn in Chat(chat.service, identifier).turns] == ["notes", "notes"]


def test_a_programs_session_is_titled_by_what_a_person_says(chat: Chat) -> None:
    place = user("<environment_context>\n  <cwd>/src</cwd>\n</environment_context>")
    summary = user("Here is a summary of the conversation to date:\n\nA server moves.")
    for messages in (
        [place],
        [user("Task:"), place],
        [summary, assistant("Fine.")],
        [summary, assistant("Fine."), place],
    ):
        program = begin(chat, user=uuid.uuid4().hex)
        program.messages = messages
        session_id = program.ask(f"New task:\n{question(1)}").session_id
        assert chat.service.sessions.get(session_id).title == title_of(question(1))


def test_an_edit_forks_once_and_going_back_returns_to_the_first_branch(
    chat: Chat, server: FakeOpenAI, grown: Grown
) -> None:
    program = begin(chat, hint=CHAT_ID)
    go(program, 1, 5)
    session = program.ask(question(6)).session_id
    retained = list(program.messages)
    program.messages = program.messages[:8]
    edited = program.ask("질문 5번을 고쳤습니다. 서버는 부산에 둡니다. 예산은 얼마입니까?")
    assert (edited.turn, edited.matched) == (5, "fork")
    assert edited.session_id != session
    assert program.ask(question(6)).session_id == edited.session_id
    body = server.bodies("chat")[-1]
    assert summaries(body) == [(1, 3)]
    assert faults(body["messages"]) == []
    program.messages = retained
    back = program.ask(question(7))
    assert (back.session_id, back.turn) == (session, 7)
    # Another model's answer in the middle forks there, and is kept.
    program.messages[3] = assistant("두 번째 답은 다른 모델이 했습니다.")
    foreign = program.ask(question(8))
    assert (foreign.turn, foreign.matched) == (8, "fork")
    answers = [turn.answer_text for turn in Chat(chat.service, foreign.session_id).turns]
    assert answers[1] == "두 번째 답은 다른 모델이 했습니다."
    assert program.ask(question(9)).session_id == foreign.session_id
    assert grown()[0] == 3


def test_an_edited_chat_is_found_though_its_program_moves_files_behind_the_history(chat: Chat) -> None:
    program = begin(chat)
    go(program, 1, 2)
    files = [user("The files: a.py"), assistant("Ok.")]
    retained, edited, readings = list(program.messages), list[ClientMessage](), []
    for number in (3, 4, 5, 6):
        program.messages = [*retained, *edited, *files]
        readings.append(program.ask(question(number)))
        edited += program.messages[-2:] if number > 3 else []  # the third is asked anew
    # The files are no turns of the branch either.
    assert [reading.turn for reading in readings] == [3, 3, 4, 5]
    assert len({reading.session_id for reading in readings}) == 2


def test_the_last_question_again_is_a_new_attempt(chat: Chat, server: FakeOpenAI, grown: Grown) -> None:
    program = begin(chat)
    go(program, 1, 2)
    server.script(text("Another answer."))
    question_again = program.messages[-2]
    program.messages = program.messages[:-1]
    reading = program.take(program.begin())
    assert reading.text == "Another answer."
    assert (reading.turn, program.messages[-2]) == (2, question_again)
    assert grown()[:2] == [1, 2]
    assert program.ask(question(3)).turn == 3
    assert "Another answer." in [content_of(message) for message in server.bodies("chat")[-1]["messages"]]


def test_a_history_that_was_never_seen_is_imported_and_sent_as_it_came(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    for number in range(1, 7):
        program.messages += [user(question(number)), assistant(f"{number}번의 답은 다른 서버가 했습니다. " * 8)]
    first = program.ask(question(7))
    assert (first.turn, first.matched) == (7, "new")
    assert shape(server.bodies("chat")[-1]) == [1, 2, 3, 4, 5, 6, 7]
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    Chat(chat.service, first.session_id).wait_for_folds()
    second = program.ask(question(8))
    assert (second.session_id, second.turn, second.matched) == (first.session_id, 8, "history")
    turns = Chat(chat.service, first.session_id).turns
    assert [turn.user_text for turn in turns] == [question(number) for number in range(1, 9)]
    # Two blocks of own turns later it is folded like any.
    go(program, 9, 13)
    assert [shape(body) for body in server.bodies("chat")[-2:]] == [
        [*range(1, 13)],
        [(1, 3), (4, 6), (7, 9), (10, 12), 13],
    ]


def test_examples_before_the_first_question_go_to_the_model_word_for_word(chat: Chat, server: FakeOpenAI) -> None:
    examples = [
        user("[[ ## question ## ]]\n  Wie spät?"),
        assistant("[[ ## answer ## ]]\n  12:00\n\n[[ ## completed ## ]]"),
        user("분류: 배송이 늦어요"),
        assistant('{"label": "배송"}', ClientCall("a", "look", '{"q": 1}')),
        result("a", "found"),
        assistant('{"label": "배송"}'),
        user("분류: 환불해 주세요"),
        assistant('{"label": "환불"}'),
        user("What is it?", "data:image/png;base64,AAAA"),
        assistant("A cat."),
    ]
    for number in (1, 2):
        program = begin(chat)
        program.messages = list(examples)
        reading = program.ask(question(number))
        assert (reading.turn, reading.matched) == (5, "new")
        body = server.bodies("chat")[-1]
        said = [message for message in body["messages"] if message["role"] != "system"]
        assert [message["role"] for message in said] == [message.role for message in program.messages[:-1]]
        assert [content_of(message) for message in said] == [message.text for message in program.messages[:-1]]
        assert said[8]["content"][-1]["image_url"]["url"] == "data:image/png;base64,AAAA"
        Chat(chat.service, reading.session_id).wait_for_folds()
    assert server.bodies("summary") == []


def code(version: int) -> str:
    return f"def total(a, b):\n    return a {'+-*/'[version % 4]} b  # version {version}\n"


def files(version: int) -> list[ClientMessage]:
    return [
        user(f"I have *added these files to the chat*:\n\ncalc.py\n```\n{code(version)}```"),
        assistant("Ok, any changes."),
    ]


def test_an_editor_that_sends_its_files_with_each_question_has_one_session(
    chat: Chat, server: FakeOpenAI, grown: Grown
) -> None:
    """As aider: examples in front, the files behind the history once an edit is applied."""
    examples = [
        user("Use math.factorial"),
        assistant(code(99)),
        user("I switched to a new code base."),
        assistant("Ok."),
    ]
    editor, done, current = begin(chat), list[ClientMessage](), list[ClientMessage]()
    version = 0
    for number in range(1, 11):
        editor.messages = [*examples, *done, *files(version), *current]
        reading = editor.ask(question(number))
        body = server.bodies("chat")[-1]
        assert faults(body["messages"]) == []
        assert reading.turn == number + 3
        assert reading.matched in ({"tail", "history"} if number > 1 else {"new"})
        told = [content_of(message) for message in body["messages"]]
        assert files(version)[0].text in (told[-3:-2] if version else told)
        current += editor.messages[-2:]
        if number % 3:  # the edit is applied
            version = number
            done, current = [*done, *current, user("I updated the files."), assistant("Ok.")], []
        Chat(chat.service, reading.session_id).wait_for_folds()
        if number < 6:
            assert server.bodies("summary") == []
            assert [message.text for message in examples] == told[1:5]
    # Six own turns behind what was imported, memory begins.
    assert [summaries(body) for body in server.bodies("chat")[-4:]] == [
        [(1, 3), (4, 6), (7, 9)],
        [(1, 3), (4, 6), (7, 9)],
        [(1, 3), (4, 6), (7, 9)],
        [(1, 3), (4, 6), (7, 9), (10, 12)],
    ]
    assert grown()[:2] == [1, 13]
    turns = Chat(chat.service, reading.session_id).turns
    assert [turn.user_text for turn in turns[3:]] == [question(number) for number in range(1, 11)]
    calls = [call for number in range(4, 14) for call in chat.service.inputs.of_turn(reading.session_id, number)]
    assert all(call.is_verified for call in calls)
    # The same question again, by the program and on the page, has the same files before it.
    again = replace(editor, messages=editor.messages[:-1])
    assert again.take(again.begin()).turn == 13
    Chat(chat.service, reading.session_id).regenerate()
    sent = [body["messages"] for body in server.bodies("chat")[-3:]]
    assert sent[0] == sent[1] == sent[2]


def test_messages_of_its_own_that_have_no_room_are_imported(open_chat: OpenChat) -> None:
    chat = open_chat(model_window_tokens=6_000)
    program = resending.begin(chat)
    program.ask(question(1))
    program.messages += [user("길게 " * 3_000), assistant("Ok.")]
    second = program.ask(question(2))
    assert (second.turn, second.matched) == (3, "history")
    assert program.ask(question(3)).turn == 4


@pytest.mark.parametrize("fields", [{}, {"is_retry": True}, {"idempotency_key": "once"}], ids=["anew", "retry", "key"])
def test_the_same_words_about_another_image_are_another_question_but_an_image_needs_no_second_sending(
    chat: Chat, server: FakeOpenAI, fields: dict[str, object]
) -> None:
    urls = [f"data:image/png;base64,{name * 4}" for name in "AB"]
    program = begin(chat, hint=CHAT_ID)
    first = program.ask(question(1))
    program.messages.append(user("What is this?", urls[0]))
    assert program.take(program.begin(**fields)).session_id == first.session_id
    assert server.bodies("chat")[-1]["messages"][-1]["content"][-1]["image_url"] == {"url": urls[0]}
    program.messages[-2:] = [user("What is this?", urls[1])]
    edited = program.take(program.begin(**fields))
    assert (edited.turn, edited.matched) == (2, "fork")
    assert server.bodies("chat")[-1]["messages"][-1]["content"][-1]["image_url"] == {"url": urls[1]}
    again = Program(chat.service, messages=program.messages[:-1], fields=program.fields)
    again.take(again.begin(idempotency_key="another"))
    again.messages[-2] = user("What is this?")
    after = again.ask(question(3))
    assert (after.session_id, after.turn) == (edited.session_id, 3)


def test_a_retry_of_a_running_turn_gets_that_turn(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("Half"))
    program = begin(chat)
    program.messages = [user(question(1))]
    first = program.begin()
    first.wait_for_text()
    second = program.begin(is_retry=True)
    assert second.matched == "retry"
    assert (second.completion.id, second.completion.created) == (first.completion.id, first.completion.created)
    second.wait_for_text()
    assert second.text == "Half"
    second.completion.stop()
    assert isinstance(first.last, TurnStopped)
    assert isinstance(second.last, TurnStopped)
    assert len(server.bodies("chat")) == 1


def test_a_retry_of_an_answered_request_gets_the_stored_answer(open_chat: OpenChat, server: FakeOpenAI) -> None:
    with open_chat() as chat:
        first = resending.begin(chat).ask(question(1), idempotency_key="once")
        end = first.end
    with open_chat() as chat:
        for how in ({"is_retry": True}, {"idempotency_key": "once"}):
            second = resending.begin(chat).ask(question(1), **how)
            assert (second.text, second.matched) == (first.text, "retry")
            told = (second.completion.id, second.completion.created)
            assert told == (first.completion.id, first.completion.created)
            assert (second.end.usage, second.end.finish_reason) == (end.usage, end.finish_reason)
        assert counts(chat)[:2] == [1, 1]
    assert len(server.bodies("chat")) == 1


@pytest.mark.parametrize("rule", ["Name each file by its path. ", "파일은 경로로 부르세요. "], ids=["en", "ko"])
def test_a_program_whose_chat_has_no_room_is_told_so(open_chat: OpenChat, server: FakeOpenAI, rule: str) -> None:
    """Such as a coding agent whose tools and instructions fill the window that is assumed of an unknown model."""
    rules, described = (rule * (tokens // estimate_tokens(rule)) for tokens in (2_000, 4_600))
    options = {"system": rules, "tools": (tool("read", path={"description": described}),)}
    with open_chat(model_window_tokens=None) as chat:
        program = resending.begin(chat)
        program.options = options
        told = []
        for number in range(1, 6):
            reading = program.ask(question(number))
            told.append(reading.end.figures["left_out"])
            assert [event.parts for event in reading.events if isinstance(event, LeftOut)] == [tuple(told[-1])]
            Chat(chat.service, reading.session_id).wait_for_folds()
        assert told[:3] == [["server_tools"], ["server_tools", "turns"], ["server_tools", "turns"]]
        assert told[3:] == [["server_tools", "records"], ["server_tools", "records", "turns"]]
        # Whether a window that isn't known has room for a question, its server knows.
        long = question(6) * 200
        assert Program(chat.service).ask(long).matched == "new"
        assert content_of(server.bodies("chat")[-1]["messages"][-1]) == long
    for number, body in enumerate(server.bodies("chat")[:5], 1):
        assert (shape(body), tool_names(body)) == ([number], ["read"])
        assert rules.strip() in system_prompt(body)
    with open_chat(model_window_tokens=None) as chat:
        again = Program(chat.service, messages=program.messages[:-1], options=options).begin(is_retry=True)
        assert (again.matched, again.end.figures["left_out"]) == ("retry", told[-1])
        assert again.events[0] == LeftOut(tuple(told[-1]))


def test_retries_of_a_failed_request_make_one_turn(chat: Chat, server: FakeOpenAI, grown: Grown) -> None:
    server.script(failure(503), failure(503))
    program = begin(chat)
    program.messages = [user(question(1))]
    assert isinstance(program.begin().last, TurnFailed)
    assert isinstance(program.begin(is_retry=True).last, TurnFailed)
    assert program.take(program.begin(is_retry=True)).turn == 1
    assert grown()[:2] == [1, 1]
    assert program.ask(question(2)).turn == 2


@pytest.mark.parametrize("is_stopped", [True, False], ids=["by Stop", "without a word"])
def test_a_program_that_left_in_the_middle_of_an_answer_goes_on_in_its_session(
    chat: Chat, server: FakeOpenAI, grown: Grown, *, is_stopped: bool
) -> None:
    program = begin(chat)
    program.ask(question(1))
    server.script(hang("The migration ", "is on the 10th"))
    program.messages.append(user(question(2)))
    reading = program.begin()
    reading.wait_for_text()
    if is_stopped:
        reading.completion.stop()
    program.messages.append(assistant("The migr"))
    after = program.ask(question(3))
    assert (after.session_id, after.turn) == (reading.session_id, 3)
    assert isinstance(reading.last, TurnStopped)
    assert grown()[:2] == [1, 3]


def test_beside_a_running_turn_another_question_is_a_fork_and_a_refused_one_stops_nothing(
    chat: Chat, server: FakeOpenAI
) -> None:
    program = begin(chat)
    program.ask(question(1))
    retained = list(program.messages)
    server.script(hang("The migration ", "is on the 10th"))
    program.messages.append(user(question(2)))
    reading = program.begin()
    reading.wait_for_text()
    before = counts(chat)
    too_long = "x" * (chat.service.settings.message_chars + 1)
    program.messages = [*retained, user(question(2)), assistant("The migr"), user(too_long)]
    with pytest.raises(InputError):
        program.begin()
    assert counts(chat) == before
    program.messages = [*retained, user(question(3))]
    for fields in ({}, {"session": reading.session_id}):
        beside = program.begin(**fields)
        assert isinstance(beside.last, TurnFinished)
        assert (beside.matched, beside.turn, beside.session_id != reading.session_id) == ("fork", 2, True)
    query = "SELECT status, stop_requested FROM turn WHERE session_id = ? AND number = 2"
    assert chat.rows(query, reading.session_id) == [("running", 0)]
    reading.completion.stop()
    assert isinstance(reading.last, TurnStopped)


def test_a_chat_has_the_id_that_comes_with_its_whole_history(chat: Chat) -> None:
    program = begin(chat)
    session_id = [program.ask(question(number)).session_id for number in (1, 2)][-1]
    program.fields = {**program.fields, "hint": CHAT_ID}
    assert program.ask(question(3)).session_id == session_id
    # Without a beginning it is found by its id, and by no other one.
    program.messages = program.messages[-2:]
    assert program.ask(question(4)).session_id == session_id
    other = program.request(*program.messages[-2:], user(question(5)), hint=CHAT_ID._replace(value="another"))
    reading = Reading(chat.service.completions.begin(other))
    assert isinstance(reading.last, TurnFinished)
    assert reading.session_id != session_id


@pytest.mark.parametrize("is_personal", [True, False])
def test_what_was_said_of_a_session_beside_its_history_is_its_persons(
    chat: Chat, server: FakeOpenAI, *, is_personal: bool
) -> None:
    hers = Program(chat.service.for_owner(chat.session_id), fields={"is_personal": is_personal})
    session_id = hers.ask(question(1)).session_id
    hers.service.sessions.update_context(session_id, {"selection": "0417"})
    assert hers.ask(question(2)).session_id == session_id
    assert ("0417" in str(server.bodies("chat")[-1])) is is_personal


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


def test_a_refused_request_stores_nothing(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(concurrent_turns=1)
    program = resending.begin(chat)
    go(program, 1, 3)
    server.script(hang("Half"))
    busy = resending.begin(chat)
    busy.messages = [user("Hi")]
    reading = busy.begin()
    reading.wait_for_text()
    before = counts(chat)
    foreign = [user(question(1)), assistant("답"), user("another question")]
    for messages in ([user("another question")], foreign, [*program.messages[:4], user("an edited question")]):
        with pytest.raises(ServerBusyError):
            Program(chat.service, messages=messages).begin()
    assert counts(chat) == before
    reading.completion.stop()
    assert isinstance(reading.last, TurnStopped)


@pytest.mark.parametrize(
    ("code", "message"), [(503, "overloaded"), ("context_length_exceeded", "maximum context length exceeded")]
)
def test_what_was_said_is_never_taken_back(
    open_chat: OpenChat, server: FakeOpenAI, code: int | str, message: str
) -> None:
    chat = open_chat(model_attempts=3)
    program = resending.begin(chat)
    for number in range(1, 4):
        program.ask(question(number))
    error = f'{{"error": {{"message": "{message}", "code": "{code}"}}}}'
    server.script(failure(503), raw(chunk({"content": "lost"}), error))
    program.messages.append(user(question(4)))
    reading = program.begin()
    assert isinstance(reading.last, TurnFailed)
    assert reading.text == "lost"
    assert not any(isinstance(event, AnswerRestarted) for event in reading.events)
    assert len(server.bodies("chat")) == 5


def test_of_many_programs_at_one_place_one_goes_on_and_the_others_are_refused(open_chat: OpenChat) -> None:
    chat = open_chat(concurrent_turns=32)
    program = resending.begin(chat)
    session = program.ask(question(1)).session_id
    together = threading.Barrier(8)

    def ask(number: int) -> str:
        one = Program(chat.service, messages=[*program.messages, user(f"{number}번째 프로그램의 질문입니다.")])
        together.wait()
        try:
            reading = one.begin()
        except BusyError:
            return "refused"
        assert isinstance(reading.last, TurnFinished)
        return "forked" if reading.session_id != session else f"turn {reading.turn}"

    def ask_once(_: int) -> str:
        one = Program(chat.service, messages=[user("한 번만 묻습니다.")])
        together.wait()
        reading = one.begin(idempotency_key="once")
        assert isinstance(reading.last, TurnFinished)
        return reading.completion.id

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(ask, range(8)))
        assert outcomes.count("turn 2") == 1
        assert not any(outcome.startswith("turn") and outcome != "turn 2" for outcome in outcomes)
        before = counts(chat)
        assert before[0] == 1 + outcomes.count("forked")
        assert len(set(pool.map(ask_once, range(8)))) == 1
    assert counts(chat)[:2] == [before[0] + 1, before[1] + 1]


@pytest.mark.parametrize("kind", ["append", "regenerate"])
def test_an_attempt_that_the_page_began_since_the_request_was_recognised_is_seen(
    chat: Chat, kind: DecisionKind
) -> None:
    session = begin(chat).ask(question(1)).session_id
    decision = Decision(kind, "history", session, turn=1, attempt=1)
    Chat(chat.service, session).regenerate()
    before = counts(chat)
    turns, options = chat.service.turns, TurnOptions()
    goes_on = {
        "append": lambda: turns.send(session, question(2), decision=decision),
        "regenerate": lambda: turns.regenerate_answer(session, options=options, decision=decision),
    }
    with pytest.raises(BusyError):
        goes_on[kind]()
    assert counts(chat) == before
    assert [turn.attempt for turn in Chat(chat.service, session).turns] == [2]


@pytest.mark.parametrize(
    ("system", "messages", "languages"),
    [
        ("", ['"Say hello to Ann, please."', "서버는 언제 옮기나요?"], ["en", "ko"]),
        ("", ["https://example.org/a", "1200", "When do we move the server?"], ["en", "en", "en"]),
        ("", ["“안녕하세요”", "When do we move the server?"], ["en", "en"]),
        ("Answer briefly.", ["서버는 언제 옮기나요?"], ["en"]),
        ("짧게 답하세요.", ["When do we move the server?", "2+2?"], ["ko", "ko"]),
        ("```\nDo it.\n```", ["서버는 언제 옮기나요?"], ["ko"]),
    ],
)
def test_a_programs_chat_is_in_the_language_of_its_system_message_or_of_its_first_words(
    chat: Chat, server: FakeOpenAI, system: str, messages: list[str], languages: list[str]
) -> None:
    program = Program(chat.service, fields={"user": chat.session_id}, options={"system": system})
    for message in messages:
        program.ask(message)
    prompts = [body["messages"][0]["content"] for body in server.bodies("chat")[-len(messages) :]]
    assert ["ko" if "대화가 길어지면" in prompt else "en" for prompt in prompts] == languages


@pytest.mark.parametrize(("setting", "language"), [("auto", "en"), ("ko", "ko"), ("en", "en")])
def test_a_programs_chat_without_words_is_in_the_servers_language(
    open_chat: OpenChat, server: FakeOpenAI, setting: str, language: str
) -> None:
    chat = open_chat(turnfold_language=setting)
    Program(chat.service).ask('{"a": 1}')
    assert ("대화가 길어지면" in server.bodies("chat")[-1]["messages"][0]["content"]) is (language == "ko")


def test_chats_of_the_same_words_are_told_apart_by_their_system_messages(chat: Chat, server: FakeOpenAI) -> None:
    server.script(*(text("Ahoy! What can I do for you?") for _ in range(2)), to="Hello")
    programs = [
        Program(chat.service, fields={"user": chat.session_id}, options={"system": system})
        for system in ("Talk like a pirate.", "Talk like a lawyer.")
    ]
    first = [program.ask("Hello").session_id for program in programs]
    second = [program.ask("Where is the contract?").session_id for program in programs]
    assert second == first
    assert len({*first}) == 2


def test_the_last_question_again_is_a_new_attempt_by_the_sessions_own_model(chat: Chat, server: FakeOpenAI) -> None:
    program = Program(chat.service, fields={"user": chat.session_id})
    program.ask(question(1))
    first = program.ask(question(2))
    chat.service.sessions.configure(first.session_id, model="another-model")
    program.ask(question(3))
    program.messages.pop()
    again = program.take(program.begin())
    assert (again.session_id, again.turn) == (first.session_id, 3)
    assert server.bodies("chat")[-1]["model"] == "another-model"
