from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from graph.event import Folded
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, failure
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI


class LeapingClock:
    """The computer's clock and what a test adds to it."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@contextmanager
def held_summaries(server: FakeOpenAI) -> Iterator[threading.Event]:
    """No summary is answered before the event is set."""
    gate = threading.Event()

    def respond(body: Body) -> Reply:
        if kind_of(body) == "summary" and not gate.wait(60):
            return failure(500)
        return answer_body(body)

    server.respond_with(respond)
    try:
        yield gate
    finally:
        gate.set()


def say_all(chat: Chat, first: int, last: int) -> None:
    for number in range(first, last + 1):
        chat.say(question(number))


def requests_begun(count: int) -> Callable[[FakeOpenAI], bool]:
    return lambda fake: len(fake.bodies("summary")) >= count


def test_summaries_of_many_sessions_are_each_made_and_paid_once_however_slow(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    clock = LeapingClock()
    first = open_chat(clock=clock, fold_wait_seconds=0.1, fold_deadline_seconds=30)
    chats = [first, *(Chat(first.service) for _ in range(7))]
    with held_summaries(server) as gate:
        for chat in chats:
            say_all(chat, 1, 3)
        server.wait_until(requests_begun(4))
        clock.ahead = timedelta(seconds=100)  # more than a fold may take: what waits in a queue all that time is late
        for chat in chats:
            say_all(chat, 4, 4)
        gate.set()
        for chat in chats:
            chat.wait_for_folds()
            say_all(chat, 5, 5)
            assert chat.covered == [(1, 2, 3)]
        rows = chats[0].rows("SELECT status, error_code FROM record")
        assert rows == [("COMPLETED", "")] * 8
        assert len(server.bodies("summary")) == 8


def test_a_queued_fold_is_claimed_when_its_making_begins(open_chat: OpenChat, server: FakeOpenAI) -> None:
    clock = LeapingClock()
    chat = open_chat(clock=clock, fold_wait_seconds=0.1, fold_deadline_seconds=30, context_strategy="window")
    with held_summaries(server) as gate:
        say_all(chat, 1, 9)
        for _ in range(3):
            chat.service.sessions.configure(chat.session_id, strategy="interval")
        server.wait_until(requests_begun(1))
        assert len(chat.rows("SELECT id FROM record")) == 1
        clock.ahead = timedelta(seconds=100)
        gate.set()
        chat.wait_for_folds()
        rows = chat.rows("SELECT status, created_at, expires_at FROM record ORDER BY sequence")
        assert [status for status, _, _ in rows] == ["COMPLETED"] * 3
        assert len(server.bodies("summary")) == 3
        first, second, third = (created for _, created, _ in rows)
        assert min(second, third) - first >= 100 * 10**6  # in microseconds


def test_a_fold_that_another_server_makes_is_waited_for_and_not_made_again(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(fold_wait_seconds=10)
    there = open_chat(chat.session_id, fold_wait_seconds=10)
    with held_summaries(server) as gate:
        say_all(chat, 1, 3)
        server.wait_until(requests_begun(1))
        there.service.sessions.configure(chat.session_id, strategy="interval")
        there.wait_until(lambda: there.service._access.fold_worker.is_idle(chat.session_id))  # noqa: SLF001  # as Chat.wait_for_folds
        there.start(question(4))
        there.wait_until_live(lambda live: live.phase == "folding")
        gate.set()
        events = there.events()
        assert [event.turns for event in events if isinstance(event, Folded)] == [(1, 2, 3)]
        assert len(server.bodies("summary")) == 1
        assert len(chat.rows("SELECT id FROM record")) == 1
