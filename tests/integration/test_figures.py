from __future__ import annotations

from collections import Counter

import pytest

from graph.event import TurnFailed, TurnFinished, TurnStopped
from tests.fake.body import content_of, faults, raw_turns, summaries, tokens_of
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI

SEOUL = ScriptedCall("get_current_time", '{"timezone": "Asia/Seoul"}', "call-1")


def test_the_panels_sums_are_those_of_the_file(chat: Chat) -> None:
    chat.ask(1, 11)
    statistics = chat.service.folds.statistics(chat.session_id)
    active = "FROM record WHERE status = 'COMPLETED' AND adopted_at IS NOT NULL AND superseded_by IS NULL"
    figures = chat.rows(f"SELECT count(*), sum(turn_length), sum(original_chars), sum(summary_chars) {active}")
    assert figures == [
        (
            statistics.record_count,
            statistics.folded_turn_count,
            statistics.original_chars,
            statistics.summary_chars,
        )
    ]
    assert (statistics.record_count, statistics.folded_turn_count) == (3, 9)
    # Independently of what the records say of themselves: from the archive.
    folded = "SELECT sum(chars) FROM message WHERE turn <= 9"
    assert chat.rows(folded) == [(statistics.original_chars,)]
    assert statistics.original_chars == sum(len(turn.user_text + turn.answer_text) for turn in chat.turns[:9])
    assert statistics.summary_chars == sum(
        len(record.summary) for record in chat.service.folds.records(chat.session_id)
    )
    assert statistics.saved_percent == round(100 * (1 - statistics.summary_chars / statistics.original_chars))
    points = chat.service.folds.chart(chat.session_id)
    assert statistics.unsent_tokens == sum(point.full_tokens - point.sent_tokens for point in points)


def test_what_the_folds_cost_is_what_the_provider_reported(chat: Chat, server: FakeOpenAI) -> None:
    server.script(
        text("짧다.", usage={"prompt_tokens": 700, "completion_tokens": 5, "total_tokens": 705}), kind="summary"
    )
    server.script(
        lambda body: text(
            content_of(body["messages"][0])[-400:-200],
            usage={"prompt_tokens": 800, "completion_tokens": 90, "total_tokens": 890},
        ),
        kind="summary",
    )
    chat.ask(1, 4)
    assert chat.service.folds.statistics(chat.session_id).fold_tokens == 700 + 5 + 800 + 90


def test_the_gauge_tells_usage_from_estimate(chat: Chat, server: FakeOpenAI) -> None:
    empty = chat.service.folds.gauge(None)
    assert (empty.source, empty.window_tokens) == ("estimate", 100_000)
    server.script(text("하나입니다.", usage={"prompt_tokens": 777, "completion_tokens": 5, "total_tokens": 782}))
    chat.say(question(1))
    reported = chat.service.folds.gauge(chat.session_id)
    assert (reported.sent_tokens, reported.source) == (777, "usage")
    server.script(text("둘입니다.", usage=None))
    chat.say(question(2))
    estimated = chat.service.folds.gauge(chat.session_id)
    sent = tokens_of(server.bodies("chat")[-1])
    correction = min(2.0, max(0.5, 777 / tokens_of(server.bodies("chat")[0])))
    assert (estimated.sent_tokens, estimated.source) == (round(sent * correction), "estimate")


@pytest.mark.parametrize("third", ["failed", "stopped", "casual", "regenerated", "retried", "tool"])
def test_each_third_turn_is_special_and_every_turn_is_shown_counted_and_covered_once(
    chat: Chat, server: FakeOpenAI, third: str
) -> None:
    for number in range(1, 14):
        if number % 3:
            assert isinstance(chat.say(question(number))[-1], TurnFinished)
        else:
            _have_special_turn(chat, server, third, number)
        chat.wait_for_folds()

    assert [turn.number for turn in chat.turns] == list(range(1, 14))
    unanswered = {turn.number for turn in chat.turns if turn.status != "finished"}
    answered = [number for number in range(1, 14) if number not in unanswered]
    assert [point.turn for point in chat.service.folds.chart(chat.session_id)] == answered
    assert chat.view.turn_count == 13
    blocks = [(first, first + 2) for first in (1, 4, 7, 10)]
    assert chat.covered == [tuple(range(first, last + 1)) for first, last in blocks]
    assert chat.service.folds.statistics(chat.session_id).folded_turn_count == 12
    for body in server.bodies("chat"):
        assert faults(body["messages"]) == []
        covered = [turn for first, last in summaries(body) for turn in range(first, last + 1)]
        assert covered == list(range(1, len(covered) + 1))
        named = raw_turns(body)
        assert max(Counter([*covered, *named]).values(), default=0) == 1
    assert (summaries(server.bodies("chat")[-1]), raw_turns(server.bodies("chat")[-1])) == (blocks, [13])
    wanted = {"failed": "failed", "stopped": "stopped"}.get(third, "finished")
    assert [turn.status for turn in chat.turns if turn.number % 3 == 0] == [wanted] * 4


def _have_special_turn(chat: Chat, server: FakeOpenAI, kind: str, number: int) -> None:
    if kind == "failed":
        server.script(failure(500))
        assert isinstance(chat.say(question(number))[-1], TurnFailed)
    elif kind == "stopped":
        server.script(hang("반쯤"))
        chat.start(question(number))
        assert isinstance(chat.stop_when(lambda live: live.text == "반쯤")[-1], TurnStopped)
    elif kind == "casual":
        assert isinstance(chat.say("고마워요!")[-1], TurnFinished)
    elif kind == "regenerated":
        chat.say(question(number))
        assert isinstance(chat.regenerate()[-1], TurnFinished)
    elif kind == "retried":
        server.script(failure(429))
        chat.say(question(number))
        assert isinstance(chat.retry()[-1], TurnFinished)
    else:
        server.script(tools(SEOUL))
        assert isinstance(chat.say(question(number))[-1], TurnFinished)
