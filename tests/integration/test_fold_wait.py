from __future__ import annotations

import threading
import time
from collections.abc import Callable

from graph.event import Event, Folded, TurnFinished
from tests.fake.body import shape
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, failure, hang
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.integration.test_distribution import statements

TOO_LONG = failure(400, "maximum context length exceeded", code="context_length_exceeded")
# Far from both what is right (a second or two) and what is wrong (the deadline below).
SOON_SECONDS = 15
DEADLINE_SECONDS = 60
HASTY = {"fold_wait_seconds": 0.2, "fold_deadline_seconds": DEADLINE_SECONDS}


def hang_summaries(body: Body) -> Reply:
    return hang(is_silent=True) if kind_of(body) == "summary" else answer_body(body)


def say_timed(chat: Chat, number: int) -> tuple[list[Event], float]:
    began = time.monotonic()
    events = chat.say(question(number))
    assert isinstance(events[-1], TurnFinished), events[-1]
    return events, time.monotonic() - began


def adopted_models(chat: Chat) -> list[tuple[str]]:
    query = "SELECT model FROM record WHERE session_id = ? AND adopted_at IS NOT NULL ORDER BY sequence"
    return chat.rows(query, chat.session_id)


def test_a_turn_has_one_wait_for_its_block_and_the_guard_together(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**HASTY)
    server.respond_with(hang_summaries)
    for number in (1, 2, 3):
        chat.say(question(number))
    server.script(TOO_LONG)
    events, seconds = say_timed(chat, 4)
    assert names(events).count("FoldWaiting") == 1
    assert [event.turns for event in events if isinstance(event, Folded)] == [(1, 2, 3)]
    assert adopted_models(chat) == [("extractive",)]
    assert seconds < SOON_SECONDS


def test_a_turn_that_waits_asks_the_database_a_few_times_a_second(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(fold_wait_seconds=2.0, fold_deadline_seconds=DEADLINE_SECONDS)
    server.respond_with(hang_summaries)
    for number in (1, 2, 3):
        chat.say(question(number))
    with statements() as found:
        chat.say(question(4))
    asked = [statement for statement in found if "FROM record" in statement and "source_key = ?" in statement]
    assert 6 < len(asked) < 30


def test_a_summariser_that_hangs_costs_one_turns_wait_whatever_waits_for_it(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(**HASTY)
    server.respond_with(hang_summaries)
    events: list[Event] = []
    for number in range(1, 9):
        if number in (5, 8):
            server.script(TOO_LONG)
        events += say_timed(chat, number)[0]
    assert names(events).count("FoldWaiting") == 1
    assert adopted_models(chat)[-1] == ("extractive",)


def test_turns_wait_again_once_the_summariser_delivers(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**HASTY)
    gates = [threading.Event(), threading.Event()]

    def open_gate(gate: threading.Event) -> Callable[[Body], Reply]:
        return lambda body: answer_body(body) if gate.wait(DEADLINE_SECONDS) else failure(500)

    server.script(*map(open_gate, gates), kind="summary")
    waits = []
    for number in range(1, 8):
        waits.append(names(say_timed(chat, number)[0]).count("FoldWaiting"))
        if number == 5:
            gates[0].set()
            chat.wait_for_folds()
    gates[1].set()
    assert waits == [0, 0, 0, 1, 0, 0, 1]
    chat.wait_for_folds()
    chat.say(question(8))
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]


def test_hanging_folds_of_other_sessions_hold_up_neither_folds_nor_the_guard(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(fold_wait_seconds=4, fold_deadline_seconds=DEADLINE_SECONDS)
    server.respond_with(hang_summaries)
    for _ in range(6):
        stuck = Chat(chat.service)
        for number in (1, 2, 3):
            stuck.say(question(number))
    server.wait_until(lambda fake: len(fake.bodies("summary")) >= 4)
    server.respond_with(answer_body)
    for number in (1, 2, 3):
        chat.say(question(number))
    server.script(TOO_LONG)
    events, seconds = say_timed(chat, 4)
    assert next(event.turns for event in events if isinstance(event, Folded)) == (1, 2, 3)
    assert adopted_models(chat)[0] == ("scripted-model",)
    assert seconds < SOON_SECONDS
    server.respond_with(hang_summaries)
    for number in (5, 6):
        chat.say(question(number))
    server.script(TOO_LONG)
    events, seconds = say_timed(chat, 7)
    assert adopted_models(chat)[-1] == ("extractive",)
    assert seconds < SOON_SECONDS


def wait_for_blocks(chat: Chat, answered: int) -> None:
    """Waits until each block of three answered turns has its summary, whatever else is being made."""
    query = "SELECT count(*) FROM record WHERE status = 'COMPLETED' AND kind = 'interval'"
    chat.wait_until(lambda: chat.rows(query) == [(answered // 3,)])


def test_a_hanging_merge_does_not_hold_up_the_blocks_of_its_session(open_chat: OpenChat, server: FakeOpenAI) -> None:
    def respond(body: Body) -> Reply:
        is_merge = kind_of(body) == "summary" and "이어지는 요약들이" in str(body)
        return hang(is_silent=True) if is_merge else answer_body(body)

    server.respond_with(respond)
    early = {"records_budget_tokens": 500, "merged_together": 4, "newest_records": 2, "merged_tokens": 300}
    chat = open_chat(**early, fold_deadline_seconds=DEADLINE_SECONDS)
    number = 0
    while not any("이어지는 요약들이" in str(body) for body in server.bodies("summary")):
        number += 1
        chat.say(question(number))
    wait_for_blocks(chat, number)
    for later in range(number + 1, number + 7):
        assert "FoldWaiting" not in names(say_timed(chat, later)[0])
        wait_for_blocks(chat, later)
    assert shape(server.bodies("chat")[-1])[-1] == number + 6
    assert chat.covered[-1][-1] >= number + 3
