from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from graph.core.recognise import Decision, DecisionKind
from graph.error import BusyError, InputError, ServerBusyError
from graph.event import AnswerRestarted, TurnFailed, TurnFinished, TurnStopped
from graph.view import TurnOptions
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import chunk, failure, hang, raw
from tests.fake.openai_server import FakeOpenAI
from tests.fake.resending import Program, assistant, begin, counts, user


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


@pytest.mark.parametrize("how", [{"is_retry": True}, {"idempotency_key": "once"}])
def test_a_retry_of_an_answered_request_gets_the_stored_answer(
    open_chat: OpenChat, server: FakeOpenAI, how: dict[str, object]
) -> None:
    fields = {name: value for name, value in how.items() if name == "idempotency_key"}
    with open_chat() as chat:
        first = begin(chat).ask(question(1), **fields)
        end = first.end
    with open_chat() as chat:
        second = begin(chat).ask(question(1), **how)
        assert second.text == first.text
        assert second.matched == "retry"
        assert (second.completion.id, second.completion.created) == (first.completion.id, first.completion.created)
        assert (second.end.usage, second.end.finish_reason) == (end.usage, end.finish_reason)
        assert counts(chat)[:2] == [1, 1]
    assert len(server.bodies("chat")) == 1


def test_retries_of_a_failed_request_make_one_turn(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(503), failure(503))
    program = begin(chat)
    program.messages = [user(question(1))]
    assert isinstance(program.begin().last, TurnFailed)
    assert isinstance(program.begin(is_retry=True).last, TurnFailed)
    reading = program.take(program.begin(is_retry=True))
    assert reading.turn == 1
    assert counts(chat)[:2] == [1, 1]
    assert program.ask(question(2)).turn == 2


def test_a_program_that_stops_goes_on_in_its_session(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    program.ask(question(1))
    server.script(hang("The migration ", "is on the 10th"))
    program.messages.append(user(question(2)))
    reading = program.begin()
    reading.wait_for_text()
    reading.detach()
    reading.completion.stop()
    program.messages.append(assistant("The migr"))
    after = program.ask(question(3))
    assert (after.session_id, after.turn) == (reading.session_id, 3)
    assert counts(chat)[:2] == [1, 3]


def test_a_program_that_left_without_a_word_has_its_turn_stopped_by_the_next_one(
    chat: Chat, server: FakeOpenAI
) -> None:
    program = begin(chat)
    program.ask(question(1))
    server.script(hang("The migration ", "is on the 10th"))
    program.messages.append(user(question(2)))
    reading = program.begin()
    reading.wait_for_text()
    program.messages.append(assistant("The migr"))
    after = program.ask(question(3))
    assert (after.session_id, after.turn) == (reading.session_id, 3)
    assert isinstance(reading.last, TurnStopped)


def test_a_refused_message_stops_nothing(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    server.script(hang("The migration ", "is on the 10th"))
    program.messages = [user(question(1))]
    reading = program.begin()
    reading.wait_for_text()
    too_long = "x" * (chat.service.settings.message_chars + 1)
    program.messages += [assistant("The migr"), user(too_long)]
    with pytest.raises(InputError):
        program.begin()
    assert chat.rows("SELECT status, stop_requested FROM turn") == [("running", 0)]
    reading.completion.stop()
    assert isinstance(reading.last, TurnStopped)


def test_a_busy_session_refuses_another_question_and_stores_nothing(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    first = program.ask(question(1))
    server.script(hang("Half"))
    kept = list(program.messages)
    program.messages.append(user(question(2)))
    reading = program.begin()
    reading.wait_for_text()
    before = counts(chat)
    program.messages = [*kept, user(question(3))]
    with pytest.raises(BusyError):
        program.begin()
    assert counts(chat) == before
    reading.completion.stop()
    assert isinstance(reading.last, TurnStopped)
    assert first.session_id == reading.session_id


@pytest.mark.parametrize("history", [0, 3])
def test_a_refused_request_stores_nothing(open_chat: OpenChat, server: FakeOpenAI, history: int) -> None:
    chat = open_chat(concurrent_turns=1)
    server.script(hang("Half"))
    busy = begin(chat)
    busy.messages = [user(question(1))]
    reading = busy.begin()
    reading.wait_for_text()
    before = counts(chat)
    program = begin(chat)
    for number in range(history):
        program.messages += [user(question(number)), assistant(f"답 {number}")]
    program.messages.append(user("another question"))
    with pytest.raises(ServerBusyError):
        program.begin()
    assert counts(chat) == before
    reading.completion.stop()
    assert isinstance(reading.last, TurnStopped)


def test_what_was_said_is_never_taken_back(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(model_attempts=3)
    lost = raw(chunk({"content": "lost"}), '{"error": {"message": "overloaded", "code": 503}}')
    server.script(failure(503), lost)
    program = begin(chat)
    program.messages = [user(question(1))]
    reading = program.begin()
    assert isinstance(reading.last, TurnFailed)
    assert not any(isinstance(event, AnswerRestarted) for event in reading.events)
    assert len(server.bodies("chat")) == 2


def test_of_many_programs_at_one_place_one_goes_on_and_the_others_are_refused(open_chat: OpenChat) -> None:
    chat = open_chat(concurrent_turns=32)
    program = begin(chat)
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

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(ask, range(8)))
    assert outcomes.count("turn 2") == 1
    assert not any(outcome.startswith("turn") and outcome != "turn 2" for outcome in outcomes)
    assert counts(chat)[0] == 1 + outcomes.count("forked")


@pytest.mark.parametrize("kind", ["append", "regenerate"])
def test_an_attempt_that_the_page_began_since_the_request_was_recognised_is_seen(
    chat: Chat, kind: DecisionKind
) -> None:
    program = begin(chat)
    session = program.ask(question(1)).session_id
    decision = Decision(kind, "history", session, turn=1, attempt=1)
    Chat(chat.service, session).regenerate()
    before = counts(chat), chat.rows("SELECT attempt FROM turn")
    turns, options = chat.service.turns, TurnOptions()
    goes_on = {
        "append": lambda: turns.send(session, question(2), decision=decision),
        "regenerate": lambda: turns.answer_anew(session, options=options, decision=decision),
    }
    with pytest.raises(BusyError):
        goes_on[kind]()
    assert (counts(chat), chat.rows("SELECT attempt FROM turn")) == before


def test_of_tries_that_come_at_once_one_begins_the_turn(open_chat: OpenChat) -> None:
    chat = open_chat(concurrent_turns=32)
    together = threading.Barrier(8)

    def ask(_: int) -> str:
        one = Program(chat.service, messages=[user(question(1))])
        together.wait()
        reading = one.begin(idempotency_key="once")
        assert isinstance(reading.last, TurnFinished)
        return reading.completion.id

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
    assert counts(chat)[:2] == [1, 1]


def test_an_input_that_is_found_too_long_after_words_were_sent_is_no_new_answer(chat: Chat, server: FakeOpenAI) -> None:
    too_long = '{"error": {"message": "maximum context length exceeded", "code": "context_length_exceeded"}}'
    program = begin(chat)
    for number in range(1, 4):
        program.ask(question(number))
    server.script(raw(chunk({"content": "lost"}), too_long))
    program.messages.append(user(question(4)))
    reading = program.begin()
    assert isinstance(reading.last, TurnFailed)
    assert reading.text == "lost"
