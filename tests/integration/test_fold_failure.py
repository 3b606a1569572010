from __future__ import annotations

from itertools import pairwise

import pytest

from graph.event import Folded
from tests.fake.body import shape
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Reply, failure, hang, text
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI

ENGLISH = "The user moves a server in October and Kim is in charge of it; the database is copied first. " * 3
ANSWER = (
    f"네, 좋습니다! {'서버를 옮기는 날을 정하고 담당자와 예산을 적었습니다. ' * 8}더 궁금한 점이 있으면 말씀해 주세요."
)
TURNS = 30


def tries(chat: Chat) -> list[int]:
    """How often each block was tried in vain, oldest first."""
    failed = "SELECT count(*) FROM record WHERE status = 'FAILED' GROUP BY from_position ORDER BY from_position"
    return [int(str(count)) for (count,) in chat.rows(failed)]


def calls_by_turn(open_chat: OpenChat, server: FakeOpenAI, reply: Reply) -> tuple[Chat, list[int]]:
    """Has a long chat whose summariser always replies so; returns how many calls it cost after each turn."""
    server.respond_with(lambda body: reply if kind_of(body) == "summary" else answer_body(body))
    # Calls of the chat are made three times at most; one for a summary in the background is made once.
    chat = open_chat(model_attempts=3)
    requests = [0]
    for number in range(1, TURNS + 1):
        chat.ask(number, number)
        requests.append(len(server.bodies("summary")))
    assert chat.covered == [(first, first + 1, first + 2) for first in range(1, 28, 3)]
    assert {record.outcome for record in chat.service.folds.records(chat.session_id)} == {"picked"}
    assert {record.model for record in chat.service.folds.records(chat.session_id)} == {"extractive"}
    assert len(server.bodies("chat")) == TURNS
    return chat, [after - before for before, after in pairwise(requests)]


def test_a_summariser_that_never_answers_costs_one_call_a_turn_and_three_a_block(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat, calls = calls_by_turn(open_chat, server, failure(500))
    assert calls == [0, 0, *[1] * 28]
    assert tries(chat) == [*[3] * 9, 1]


@pytest.mark.parametrize("draft", [ENGLISH, ANSWER, "", "요약"], ids=["language", "answer", "empty", "short"])
def test_a_summariser_whose_drafts_are_none_costs_one_call_a_turn_and_three_a_block(
    open_chat: OpenChat, server: FakeOpenAI, draft: str
) -> None:
    chat, calls = calls_by_turn(open_chat, server, text(draft))
    # The very first draft is mended at once; that it was in vain is not known before.
    assert calls[:5] == [0, 0, 2, 1, 0]
    assert max(calls[3:]) == 1
    # Three calls a block: the first is tried twice, as one of its drafts was mended.
    assert tries(chat)[0] == 2
    assert set(tries(chat)[1:-1]) == {3}
    assert sum(calls) == sum(tries(chat)) + 1


def test_a_summariser_that_works_again_has_its_drafts_mended_again(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    server.script(text(ENGLISH), text(ENGLISH), text(ENGLISH), kind="summary")
    chat.ask(1, 4)
    assert (tries(chat), chat.view.fold_failures) == ([2], 3)
    chat.ask(5, 6)
    assert [record.outcome for record in chat.service.folds.records(chat.session_id)] == ["picked"]
    assert len(server.bodies("summary")) == 4
    server.script(text(ENGLISH), kind="summary")
    chat.ask(7, 10)
    assert len(server.bodies("summary")) == 6
    assert chat.covered == [(1, 2, 3), (4, 5, 6), (7, 8, 9)]


def test_the_oldest_block_alone_is_tried_while_it_fails_and_the_rest_follows_once_it_works(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat()
    chat.service.turns.send(chat.session_id, question(1))
    chat.events()
    chat.service.sessions.configure(chat.session_id, strategy="window")
    chat.ask(2, 9)
    server.script(failure(500), failure(500), kind="summary")
    chat.service.sessions.configure(chat.session_id, strategy="interval")
    chat.wait_for_folds()
    assert [question(1) in str(body) for body in server.bodies("summary")] == [True]
    chat.ask(10, 10)
    assert [question(1) in str(body) for body in server.bodies("summary")] == [True, True]
    chat.ask(11, 12)
    assert chat.covered == [(1, 2, 3), (4, 5, 6), (7, 8, 9)]
    assert {record.outcome for record in chat.service.folds.records(chat.session_id)} == {"compressed"}


def test_a_block_that_failed_is_tried_after_the_answer_and_not_before_it_too(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.script(failure(500), failure(500), kind="summary")
    chat = open_chat()
    chat.ask(1, 5)
    assert [exchange.kind for exchange in server.exchanges[3:]] == ["summary", "chat", "summary", "chat", "summary"]
    events = chat.say(question(6))
    assert "FoldWaiting" not in names(events)
    assert chat.covered == [(1, 2, 3)]


def test_failures_are_counted_across_restarts_and_then_sentences_are_picked(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.respond_with(lambda body: failure(500) if kind_of(body) == "summary" else answer_body(body))
    session_id = ""
    for number in (3, 4, 5):
        with open_chat(session_id) as chat:
            session_id = chat.session_id
            chat.ask(1 if number == 3 else number, number)
            assert chat.view.fold_failures == number - 2
            assert chat.covered == []
    with open_chat(session_id) as chat:
        events = chat.say(question(6))
        assert [event.turns for event in events if isinstance(event, Folded)] == [(1, 2, 3)]
        assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5, 6]
        (record,) = chat.service.folds.records(session_id)
        assert (record.outcome, record.kind, record.turns) == ("picked", "interval", (1, 2, 3))
        assert record.summary_chars <= record.target_chars * 1.25


def test_folds_that_end_with_their_server_are_no_failures_of_the_summariser(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.respond_with(lambda body: hang(is_silent=True) if kind_of(body) == "summary" else answer_body(body))
    session_id = ""
    for number in range(3, 7):
        with open_chat(session_id, fold_wait_seconds=0.1) as chat:
            session_id = chat.session_id
            for turn in range(1 if number == 3 else number, number + 1):
                chat.say(question(turn))
            server.wait_until(lambda fake: fake.open_count > 0)
            assert chat.view.fold_failures == 0
            assert chat.covered == []
    server.respond_with(answer_body)
    with open_chat(session_id) as chat:
        chat.say(question(7))
        assert {record.outcome for record in chat.service.folds.records(session_id)} == {"compressed"}


def test_a_fold_that_nobody_can_do_without_is_asked_for_again_at_once(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(model_attempts=2)
    chat.ask(1, 6)
    server.script(failure(500), kind="summary")
    record = chat.service.folds.compact(chat.session_id)
    assert record.outcome != "picked"
    assert len(server.bodies("summary")) == 4
