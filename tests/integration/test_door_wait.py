"""The real clients wait, leave, and send a request again by themselves: over the real routes and the real service."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from graph.event import TurnFinished
from tests.fake.body import shape
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, failure, text
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.real_client import REAL_CHATS, OpenAIChat, RealChat
from tests.fake.resending import counts
from tests.fake.served_door import OWNER, ServedDoor, serve

PATIENCE_SECONDS = 60.0


@pytest.fixture
def served(chat: Chat) -> Iterator[ServedDoor]:
    with serve(chat.service) as door:
        yield door


class Gated:
    """Answers a chat once its gate is opened."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def __call__(self, body: Body) -> Reply:
        assert self.gate.wait(PATIENCE_SECONDS)
        return answer_body(body)


@pytest.mark.parametrize("client", REAL_CHATS)
def test_what_a_client_sends_again_after_503_is_one_turn(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program = client(served.url)
    program.ask(question(1))
    server.script(failure(503), failure(503), text("Hello"))
    told = program.ask(question(2))
    assert (told.text, told.turn) == ("Hello", 2)
    assert len(server.bodies("chat")) == 4
    assert program.ask(question(3)).turn == 3
    assert counts(chat)[:2] == [1, 3]
    assert chat.rows("SELECT count(*) FROM message WHERE role = 'human'") == [(3,)]


@pytest.mark.parametrize("client", REAL_CHATS)
def test_a_client_that_finds_its_session_busy_asks_once_and_makes_one_turn_later(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program, held = client(served.url), Gated()
    first = program.ask(question(1))
    service = chat.service.for_owner(OWNER)
    page = Chat(service, first.session_id)
    server.script(held, to=question(2))
    page.start(question(2))
    server.wait_until(lambda _: len(server.bodies("chat", to=question(2))) == 1)
    before, asked = counts(chat), len(served.owners)
    with pytest.raises(openai.ConflictError) as busy:
        program.ask(question(3))
    assert (busy.value.code, len(served.owners) - asked, counts(chat)) == ("session_busy", 1, before)
    held.gate.set()
    assert isinstance(page.events()[-1], TurnFinished)
    assert program.send()[1:3] == (first.session_id, 3)
    assert [turn.user_text for turn in page.turns] == [question(number) for number in (1, 2, 3)]


@pytest.mark.parametrize("client", REAL_CHATS)
def test_a_client_that_lost_its_patience_and_sends_again_is_given_the_same_turn(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program, held = client(served.url, retries=10, seconds=1.0), Gated()
    server.script(held, to=question(1))
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(program.ask, question(1))
        server.wait_until(lambda _: len(served.owners) >= 2, PATIENCE_SECONDS)
        held.gate.set()
        told = asking.result(PATIENCE_SECONDS)
    assert told.turn == 1
    assert question(1)[:20] in told.text
    assert counts(chat)[:2] == [1, 1]
    (turn,) = Chat(chat.service.for_owner(OWNER), told.session_id).turns
    assert (turn.answer_text, turn.status) == (told.text, "finished")
    # Closing a stream is Stop, so what is sent again is answered anew; a whole answer is waited for by the next try.
    assert turn.attempt == 1 or client is OpenAIChat


@pytest.mark.parametrize(
    ("wait_seconds", "patience_seconds"), [(0.6, 0.2), (10.0, 10.0)], ids=["in short", "fifteen seconds"]
)
def test_a_long_wait_for_a_fold_before_the_first_token_breaks_neither_client(
    open_chat: OpenChat, server: FakeOpenAI, wait_seconds: float, patience_seconds: float
) -> None:
    chat = open_chat(fold_wait_seconds=wait_seconds)
    over = threading.Event()

    def respond(body: Body) -> Reply:
        if kind_of(body) == "summary":
            over.wait(PATIENCE_SECONDS)
        elif question(4) in str(body["messages"][-1]):
            over.wait(wait_seconds / 2)
        return answer_body(body)

    server.respond_with(respond)
    with serve(chat.service, patience_seconds=patience_seconds) as served, ThreadPoolExecutor() as pool:
        programs = [client(served.url, retries=0) for client in REAL_CHATS]
        for program in programs:
            for number in range(1, 4):
                program.ask(question(number))
        for told in pool.map(lambda program: program.ask(question(4)), programs):
            assert (told.turn, question(4)[:20] in told.text) == (4, True)
            events = Chat(chat.service.for_owner(OWNER), told.session_id).events()
            assert names(events).count("FoldWaiting") == 1
        over.set()
    waited = server.bodies("chat")[-2:]
    assert [shape(body) for body in waited] == [[1, 2, 3, 4]] * 2
    assert counts(chat)[:3] == [2, 8, 16]
