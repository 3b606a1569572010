from __future__ import annotations

from itertools import pairwise

import pytest

from graph.event import Folded
from tests.fake.body import content_of, roles, shape
from tests.fake.caching import ALWAYS
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
    assert calls == [0, 0, *[1] * 28]
    assert tries(chat) == [*[3] * 9, 1]
    # Of each block's three calls the second is the repair behind the draft of the first.
    assert [len(body["messages"]) for body in server.bodies("summary")[:6]] == [2, 4, 2] * 2


def test_a_first_draft_that_is_none_is_mended_after_the_next_answer(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    server.script(text(ENGLISH), kind="summary")
    chat.ask(1, 4)
    assert [exchange.kind for exchange in server.exchanges[2:]] == ["chat", "summary", "chat", "summary"]
    first, second = (body["messages"] for body in server.bodies("summary"))
    assert second[:-2] == first
    assert roles({"messages": second[-2:]}) == ["assistant", "user"]
    assert content_of(second[-2]) == ENGLISH.strip()
    assert content_of(second[-1]).startswith("같은 내용을 한국어로 옮기세요.")
    chat.ask(5, 5)
    assert chat.covered == [(1, 2, 3)]
    assert len(server.bodies("summary")) == 2


def test_a_repair_that_got_no_answer_is_asked_for_again(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    server.script(text(ENGLISH), failure(500), kind="summary")
    chat.ask(1, 6)
    first, second, third, *_ = (body["messages"] for body in server.bodies("summary"))
    assert second == third
    assert second[: len(first)] == first
    assert chat.covered == [(1, 2, 3)]


def test_in_place_a_draft_is_mended_behind_the_chat_as_it_has_become(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    server.script(text(ENGLISH), kind="summary")
    chat.ask(1, 5)
    first, second = server.bodies("summary")
    fourth = server.bodies("chat")[3]["messages"]
    assert second["messages"][: len(fourth)] == fourth
    assert roles(second)[len(fourth) :] == ["assistant", "user", "assistant", "user"]
    assert content_of(second["messages"][-2]) == ENGLISH.strip()
    assert roles(first)[-1] == "user"
    assert chat.covered == [(1, 2, 3)]


def test_another_server_writes_a_draft_anew(open_chat: OpenChat, server: FakeOpenAI) -> None:
    first = open_chat()
    server.script(text(ENGLISH), kind="summary")
    first.ask(1, 3)
    first.close()
    later = open_chat(first.session_id)
    later.ask(4, 5)
    assert [len(body["messages"]) for body in server.bodies("summary")] == [2, 2]
    assert later.covered == [(1, 2, 3)]


def test_a_deleted_sessions_draft_is_forgotten(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    server.script(text(ENGLISH), kind="summary")
    chat.ask(1, 3)
    kept = chat.service._access.fold_worker._maker._unmended  # noqa: SLF001  # nobody but a test has to know
    assert len(kept) == 1
    chat.service.sessions.delete(chat.session_id)
    assert len(kept) == 0


def test_a_draft_that_is_taken_anyhow_is_mended_at_once(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    server.script(text("(1턴) 서버를 옮기는 날을 정함. " * 40), kind="summary")
    chat.ask(1, 3)
    assert [len(body["messages"]) for body in server.bodies("summary")] == [2, 4]
    assert tries(chat) == []


def test_a_summariser_that_fails_after_it_worked_costs_three_calls_a_block(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat()
    chat.ask(1, 4)
    server.respond_with(lambda body: text(ENGLISH) if kind_of(body) == "summary" else answer_body(body))
    calls = []
    for number in range(5, 17):
        before = len(server.bodies("summary"))
        chat.ask(number, number)
        calls.append(len(server.bodies("summary")) - before)
    # The first draft is mended at once, as drafts were until then.
    assert calls == [0, 2, 1, 0, *[1] * 8]
    assert tries(chat)[:-1] == [2, 3, 3]
    assert chat.covered == [(first, first + 1, first + 2) for first in (1, 4, 7, 10)]


def test_a_summariser_that_works_again_has_its_drafts_mended_again(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    server.script(text(ENGLISH), text(ENGLISH), text(ENGLISH), kind="summary")
    chat.ask(1, 5)
    assert (tries(chat), chat.view.fold_failures) == ([3], 3)
    chat.ask(6, 6)
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
            server.wait_until(lambda fake: fake.hanging_count > 0)
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
