"""How many statements a turn sends to the database; `make bench-turn` lists who sends them."""

from __future__ import annotations

from typing import Final

from bench.turn.counted import KINDS, Kind, kind_of, records_of
from bench.turn.statement import Counts, counting
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, failure
from tests.fake.openai_responder import answer_body
from tests.fake.openai_responder import kind_of as kind_of_body
from tests.fake.openai_server import FakeOpenAI

# What is sent now; 18, 30 and 20 are wanted (`make bench-turn`).
MOST: Final[dict[Kind, int]] = {"no fold": 22, "makes a fold": 32, "takes a fold": 38}
MOST_BEHIND_FAILURES: Final = 34 + 6  # another thread may read the session, too, once the turn has written


def counted(chat: Chat, number: int) -> tuple[Kind, Counts]:
    """Has the turn of this number with the folds that it causes, and counts what is sent for both."""
    before = records_of(chat.service.settings)
    with counting() as counts:
        chat.say(question(number))
        chat.wait_for_folds()
    return kind_of(before, records_of(chat.service.settings)), counts


def listed(counts: Counts) -> str:
    return "\n".join(f"{count:3} {path}" for path, count in counts.by("path").most_common())


def test_a_turn_asks_the_database_little_and_not_more_in_a_longer_session(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.ask(1, 2)
    turns = [counted(chat, number) for number in range(3, 13)]
    assert {kind for kind, _ in turns} == set(KINDS)
    for kind in KINDS:  # another thread may read, too, what a turn has just written
        least = min((counts for of, counts in turns if of == kind), key=lambda counts: len(counts.statements))
        assert len(least.statements) <= MOST[kind], listed(least)


def test_blocks_whose_folds_fail_cost_a_turn_nothing_more(open_chat: OpenChat, server: FakeOpenAI) -> None:
    def respond(body: Body) -> Reply:
        return failure(500) if kind_of_body(body) == "summary" else answer_body(body)

    chat = open_chat()
    server.respond_with(respond)
    chat.ask(1, 1)
    chat.service.sessions.configure(chat.session_id, strategy="window")
    chat.ask(2, 9)
    chat.service.sessions.configure(chat.session_id, strategy="interval")
    chat.ask(10, 10)
    kind, counts = counted(chat, 11)
    assert (kind, chat.covered) == ("no fold", [])
    assert len(counts.statements) <= MOST_BEHIND_FAILURES, listed(counts)
