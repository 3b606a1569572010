from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial

import pytest

from graph.event import TurnFinished
from tests.fake.body import raw_turns, tokens_of
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, ScriptedCall, failure, tools
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.summary_text import holds

SEOUL = ScriptedCall("get_current_time", '{"timezone": "Asia/Seoul"}', "call-1")


def marked(chat: Chat) -> list[int]:
    return [point.turn for point in chat.service.folds.chart(chat.session_id) if point.has_fold]


def first_held(chat: Chat, server: FakeOpenAI) -> list[int]:
    """The turns of the first requests that hold each record, as the requests themselves say."""
    turns = []
    for record in chat.service.folds.records(chat.session_id):
        body = next(body for body in server.bodies("chat") if holds(body, record.summary))
        turns.append(raw_turns(body)[-1])
    return turns


def test_figures_begin_anew_with_a_reset(chat: Chat) -> None:
    service, session_id = chat.service, chat.session_id
    chat.ask(1, 5)
    assert service.folds.statistics(session_id).unsent_tokens > 0
    service.folds.reset(session_id)
    anew = service.folds.statistics(session_id)
    assert (anew.record_count, anew.folded_turn_count, anew.unsent_tokens, anew.fold_tokens) == (0, 0, 0, 0)
    assert service.folds.chart(session_id) == ()
    chat.ask(6, 6)
    (point,) = service.folds.chart(session_id)
    assert (point.turn, point.sent_tokens, point.has_fold) == (6, point.full_tokens, False)
    assert service.folds.statistics(session_id).unsent_tokens == 0
    chat.ask(7, 13)
    points = service.folds.chart(session_id)
    assert [point.turn for point in points] == list(range(6, 14))
    statistics = service.folds.statistics(session_id)
    assert statistics.record_count > 0
    assert statistics.unsent_tokens == sum(point.full_tokens - point.sent_tokens for point in points) > 0
    spent = chat.rows("SELECT sum(input_tokens + output_tokens) FROM record WHERE from_position > 10")
    assert spent == [(statistics.fold_tokens,)]


def test_full_history_after_a_reset_is_what_was_said_since(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    chat.service.folds.reset(chat.session_id)
    chat.ask(4, 6)
    assert raw_turns(server.bodies("chat")[-1]) == [4, 5, 6]
    assert chat.service.folds.chart(chat.session_id)[-1].full_tokens == tokens_of(server.bodies("chat")[-1])


def test_chart_has_the_answered_call_of_a_turn_whose_first_one_failed(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 6)
    server.script(failure(400, "too long", code="context_length_exceeded"))
    assert isinstance(chat.say(question(7))[-1], TurnFinished)
    tried, answered = (tokens_of(body) for body in server.bodies("chat")[-2:])
    assert answered < tried
    assert chat.service.folds.chart(chat.session_id)[-1].sent_tokens == answered
    server.script(failure(500))
    chat.say(question(8))
    assert chat.service.folds.chart(chat.session_id)[-1].turn == 7
    chat.retry()
    assert chat.service.folds.chart(chat.session_id)[-1].turn == 8


def test_chart_has_the_last_of_several_calls_of_a_turn(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL))
    chat.say(question(1))
    (point,) = chat.service.folds.chart(chat.session_id)
    assert point.sent_tokens == tokens_of(server.bodies("chat")[-1]) > tokens_of(server.bodies("chat")[-2])


def test_mark_stands_where_a_late_fold_was_first_sent(chat: Chat, server: FakeOpenAI) -> None:
    server.script(*[failure(500)] * 3, kind="summary")
    chat.ask(1, 8)
    assert first_held(chat, server)[0] > 4
    assert marked(chat) == first_held(chat, server)


def test_mark_stands_after_the_turns_that_were_compacted_by_hand(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(context_strategy="compaction", max_context_tokens=100_000)
    chat.ask(1, 4)
    chat.service.folds.compact(chat.session_id)
    assert marked(chat) == []
    chat.ask(5, 6)
    assert marked(chat) == first_held(chat, server) == [5]


def test_mark_stays_when_its_turn_is_answered_anew(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    chat.regenerate()
    chat.ask(5, 5)
    assert marked(chat) == first_held(chat, server) == [4]


def test_mark_goes_to_the_next_point_if_its_turn_has_none(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    server.script(failure(500))
    chat.say(question(4))
    assert marked(chat) == []
    chat.ask(5, 5)
    assert marked(chat) == [5]


def test_turn_that_two_records_share_is_counted_once(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(context_strategy="interval", max_context_tokens=100_000, preserve_recent_messages=1)
    server.script(tools(*[replace(SEOUL, id=f"call-{number}") for number in range(12)]))
    chat.ask(1, 1)
    chat.service.folds.compact(chat.session_id)
    chat.ask(2, 4)
    assert chat.covered == [(1,), (1, 2, 3)]
    statistics = chat.service.folds.statistics(chat.session_id)
    assert (statistics.record_count, statistics.folded_turn_count) == (2, 3)


@pytest.mark.parametrize(("summary_chars", "percent"), [(394, 61), (396, 60), (1_006, -1), (1_004, 0)])
def test_what_was_saved_is_rounded(chat: Chat, summary_chars: int, percent: int) -> None:
    chat.ask(1, 4)
    chat.change(f"UPDATE record SET original_chars = 1000, summary_chars = {summary_chars}")  # noqa: S608  # numbers of our own
    assert chat.service.folds.statistics(chat.session_id).saved_percent == percent


def test_folds_thrown_away_by_new_answers_are_no_failures(chat: Chat, server: FakeOpenAI) -> None:
    may_end = threading.Semaphore(0)

    def respond(body: Body) -> Reply:
        if kind_of(body) == "summary":
            may_end.acquire(timeout=60)
        return answer_body(body)

    server.respond_with(respond)
    for number in (1, 2, 3):
        chat.say(question(number))
    for count in (1, 2, 3):
        server.wait_until(partial(has_summaries, count=count))
        chat.regenerate()
        may_end.release()
    thrown_away = "SELECT count(*) FROM record WHERE status = 'FAILED' AND error_code = 'discarded'"
    assert chat.rows(thrown_away) == [(3,)]
    assert (chat.view.fold_failures, chat.view.fold_error_code) == (0, "")
    may_end.release(100)
    chat.ask(4, 4)
    assert chat.covered == [(1, 2, 3)]


def has_summaries(server: FakeOpenAI, count: int) -> bool:
    return len(server.bodies("summary")) >= count
