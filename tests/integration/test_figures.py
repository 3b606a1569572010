"""What the panel shows of folds: sums, the chart and its marks, savings and the next fold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from graph.strategy.base import Limits
from graph.value.error import DatabaseError
from graph.value.event import TurnFailed, TurnFinished, TurnStopped
from graph.value.view import NextFold, Statistics
from tests.fake.body import content_of, faults, raw_turns, summaries, tokens_of
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.summary_text import holds

SEOUL = ScriptedCall("get_current_time", '{"timezone": "Asia/Seoul"}', "call-1")


def test_the_panels_sums_are_those_of_the_file(chat: Chat) -> None:
    chat.ask(1, 11)
    folds, session_id = chat.service.folds, chat.session_id
    statistics = folds.statistics(session_id)
    active = "status = 'COMPLETED' AND adopted_at IS NOT NULL AND superseded_by IS NULL AND session_id = ?"
    sums = "count(*), sum(turn_length), sum(original_chars), sum(summary_chars)"
    assert chat.rows(f"SELECT {sums} FROM record WHERE {active}", session_id) == [  # noqa: S608  # names of our own
        (statistics.record_count, statistics.folded_turn_count, statistics.original_chars, statistics.summary_chars)
    ]
    assert (statistics.record_count, statistics.folded_turn_count) == (3, 9)
    # Independently of what the records say of themselves: from the archive.
    folded = chat.rows("SELECT sum(chars) FROM message WHERE turn <= 9 AND session_id = ?", session_id)
    assert folded == [(statistics.original_chars,)]
    assert statistics.original_chars == sum(len(turn.user_text + turn.answer_text) for turn in chat.turns[:9])
    assert statistics.summary_chars == sum(len(record.summary) for record in folds.records(session_id))
    assert statistics.saved_percent == round(100 * (1 - statistics.summary_chars / statistics.original_chars))
    assert statistics.unsent_tokens == sum(point.full_tokens - point.sent_tokens for point in folds.chart(session_id))
    # Folds in time lose no cache but of the ledger, which stands behind their records.
    savings = folds.savings(session_id)
    sent = [block for turn in (6, 9) for call in chat.service.inputs.of_turn(session_id, turn) for block in call.blocks]
    moved = sum(block.tokens for block in sent if block.kind == "ledger")
    assert (savings.unsent_tokens, savings.lost_tokens) == (statistics.unsent_tokens, moved)
    assert (savings.fold_tokens, savings.is_fold_usage) == (statistics.fold_tokens, True)
    assert savings.full_tokens == sum(point.full_tokens for point in folds.chart(session_id))
    output_tokens = sum(record.output_tokens for record in folds.records(session_id))
    assert savings.net_tokens == savings.unsent_tokens - savings.fold_tokens - 3 * output_tokens
    for summary_chars, percent in ((394, 61), (396, 60), (1_006, -1), (1_004, 0)):
        chat.change(
            f"UPDATE record SET original_chars = 1000, summary_chars = {summary_chars} "  # noqa: S608  # our own
            f"WHERE session_id = '{session_id}'"
        )
        assert folds.statistics(session_id).saved_percent == percent


def test_what_the_folds_cost_is_what_the_provider_reported_or_an_estimate(chat: Chat, server: FakeOpenAI) -> None:
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
    folds = chat.service.folds
    assert folds.statistics(chat.session_id).fold_tokens == 700 + 5 + 800 + 90
    assert folds.savings(chat.session_id).is_fold_usage
    server.script(text("질문 4번에서 6번까지 서버 이전 일정과 예산을 이야기했다. " * 8, usage=None), kind="summary")
    chat.ask(5, 7)
    assert not folds.savings(chat.session_id).is_fold_usage


@pytest.mark.parametrize("folds_cost", [300, 700])
def test_the_turn_from_which_folding_pays_is_told_before_it_comes(
    chat: Chat, server: FakeOpenAI, folds_cost: int
) -> None:
    usage = {"prompt_tokens": folds_cost, "completion_tokens": 60, "total_tokens": folds_cost + 60}
    made = [lambda body: text(content_of(body["messages"][0])[-400:-200], usage=usage)] * 20
    server.script(*made, kind="summary", may_stay=True)
    told, nets = {}, {}
    for turn in range(1, 19):
        chat.ask(turn, turn)
        savings = chat.service.folds.savings(chat.session_id, ready=following(chat).ready)
        nets[turn] = savings.net_tokens
        if not savings.is_paid_back:
            told[turn] = savings.pays_from
    pays_from = max(turn for turn, net in nets.items() if net < 0) + 1
    assert 3 in told  # the first summary is ready
    assert 6 < pays_from < 16
    assert all(turn is not None and abs(turn - pays_from) <= 3 for turn in told.values())


@pytest.mark.parametrize("thirds", [("failed", "stopped", "casual", "tool"), ("regenerated", "retried")], ids="-".join)
def test_each_third_turn_is_special_and_every_turn_is_shown_counted_and_covered_once(
    chat: Chat, server: FakeOpenAI, thirds: Sequence[str]
) -> None:
    last = 3 * len(thirds) + 1
    for number in range(1, last + 1):
        if number % 3:
            assert isinstance(chat.say(question(number))[-1], TurnFinished)
        else:
            _have_special_turn(chat, server, thirds[number // 3 - 1], number)
        chat.wait_for_folds()

    assert [turn.number for turn in chat.turns] == list(range(1, last + 1))
    answered = [turn.number for turn in chat.turns if turn.status == "finished"]
    assert [point.turn for point in chat.service.folds.chart(chat.session_id)] == answered
    assert chat.view.turn_count == last
    blocks = [(first, first + 2) for first in range(1, last, 3)]
    assert chat.covered == [tuple(range(first, last + 1)) for first, last in blocks]
    assert chat.service.folds.statistics(chat.session_id).folded_turn_count == last - 1
    for body in server.bodies("chat"):
        assert faults(body["messages"]) == []
        covered = [turn for first, last in summaries(body) for turn in range(first, last + 1)]
        assert covered == list(range(1, len(covered) + 1))
        assert max(Counter([*covered, *raw_turns(body)]).values(), default=0) == 1
    assert (summaries(server.bodies("chat")[-1]), raw_turns(server.bodies("chat")[-1])) == (blocks, [last])
    wanted = [kind if kind in {"failed", "stopped"} else "finished" for kind in thirds]
    assert [turn.status for turn in chat.turns if turn.number % 3 == 0] == wanted


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


def test_figures_begin_anew_with_a_reset(chat: Chat, server: FakeOpenAI) -> None:
    folds, session_id = chat.service.folds, chat.session_id
    chat.ask(1, 5)
    assert folds.statistics(session_id).unsent_tokens > 0
    folds.reset(session_id)
    anew = folds.statistics(session_id)
    assert (anew.record_count, anew.folded_turn_count, anew.unsent_tokens, anew.fold_tokens) == (0, 0, 0, 0)
    assert folds.chart(session_id) == ()
    assert folds.next_fold(session_id, strategy="interval") == NextFold(turns=(6,), turns_left=1, is_reset=True)
    chat.ask(6, 6)
    (point,) = folds.chart(session_id)
    # What is counted as the full history is what was said since.
    assert (point.turn, point.sent_tokens, point.has_fold) == (6, point.full_tokens, False)
    assert point.full_tokens == tokens_of(server.bodies("chat")[-1])
    savings = folds.savings(session_id)
    assert (savings.unsent_tokens, savings.lost_tokens) == (0, 0)
    chat.ask(7, 10)
    points = folds.chart(session_id)
    assert [point.turn for point in points] == list(range(6, 11))
    statistics = folds.statistics(session_id)
    assert chat.covered == [(6,), (7, 8, 9)]
    assert statistics.unsent_tokens == sum(point.full_tokens - point.sent_tokens for point in points) > 0
    spent = "SELECT sum(input_tokens + output_tokens) FROM record WHERE from_position > 10 AND session_id = ?"
    assert chat.rows(spent, session_id) == [(statistics.fold_tokens,)]


def test_the_figures_before_each_reset_are_kept_in_sum(chat: Chat, server: FakeOpenAI) -> None:
    folds, session_id = chat.service.folds, chat.session_id

    def now() -> tuple[int, ...]:
        return _figures(folds.statistics(session_id))

    def past() -> tuple[int, ...]:
        return _figures(folds.past_statistics(session_id))

    chat.ask(1, 5)
    first = now()
    assert not any(past())
    folds.reset(session_id)
    assert past() == first
    server.script(
        text("질문 6번까지 서버 이전 일정과 예산을 이야기했다. " * 8, usage=None), kind="summary", may_stay=True
    )
    chat.ask(6, 10)
    second = now()
    assert (past(), folds.past_statistics(session_id).is_fold_usage) == (first, True)
    folds.reset(session_id)
    assert past() == tuple(sum(pair) for pair in zip(first, second, strict=True))
    assert not folds.past_statistics(session_id).is_fold_usage
    assert all(second)
    folds.undo_reset(session_id)
    assert (past(), now()) == (first, second)


def _figures(of: Statistics) -> tuple[int, ...]:
    chars = of.original_chars, of.summary_chars
    return of.record_count, of.folded_turn_count, *chars, of.unsent_tokens, of.fold_tokens


def test_the_chart_has_the_last_answered_call_of_a_turn(chat: Chat, server: FakeOpenAI) -> None:
    def last_point() -> tuple[int, int]:
        point = chat.service.folds.chart(chat.session_id)[-1]
        return point.turn, point.sent_tokens

    server.script(tools(SEOUL))
    chat.say(question(1))
    first, second = (tokens_of(body) for body in server.bodies("chat"))
    assert last_point() == (1, second)
    assert second > first
    chat.ask(2, 6)
    server.script(failure(400, "too long", code="context_length_exceeded"))
    chat.say(question(7))
    tried, answered = (tokens_of(body) for body in server.bodies("chat")[-2:])
    assert answered < tried
    assert last_point() == (7, answered)
    server.script(failure(500))
    chat.say(question(8))
    assert last_point()[0] == 7
    chat.retry()
    assert last_point()[0] == 8


# Marks


def marked(chat: Chat) -> list[int]:
    return [point.turn for point in chat.service.folds.chart(chat.session_id) if point.has_fold]


def first_held(chat: Chat, server: FakeOpenAI) -> list[int]:
    """The turns of the first requests that hold each record, as the requests themselves say."""
    turns = []
    for record in chat.service.folds.records(chat.session_id):
        body = next(body for body in server.bodies("chat") if holds(body, record.summary))
        turns.append(raw_turns(body)[-1])
    return turns


def test_a_mark_stands_where_a_late_fold_was_first_sent_and_what_was_sent_behind_its_source_is_lost(
    chat: Chat, server: FakeOpenAI
) -> None:
    server.script(failure(500), kind="summary")
    chat.ask(1, 5)
    assert marked(chat) == first_held(chat, server) == [5]
    (late,) = chat.service.inputs.of_turn(chat.session_id, 5)
    again = next(block for block in late.blocks if block.text == question(4))
    savings = chat.service.folds.savings(chat.session_id)
    assert savings.lost_tokens == again.tokens
    assert savings.cached_tokens == 0  # nothing can be lost where nothing is cached
    output_tokens = sum(record.output_tokens for record in chat.service.folds.records(chat.session_id))
    assert savings.net_tokens == savings.unsent_tokens - savings.fold_tokens - 3 * output_tokens


def test_a_mark_stands_after_the_turns_that_were_compacted_by_hand(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(context_strategy="compaction")
    chat.ask(1, 4)
    chat.service.folds.compact(chat.session_id)
    assert marked(chat) == []
    chat.ask(5, 6)
    assert marked(chat) == first_held(chat, server) == [5]


def test_a_mark_goes_to_the_next_point_if_its_turn_has_none_and_stays_when_it_is_answered_anew(
    chat: Chat, server: FakeOpenAI
) -> None:
    chat.ask(1, 3)
    server.script(failure(500))
    chat.say(question(4))
    assert marked(chat) == []
    chat.ask(5, 5)
    assert marked(chat) == [5]
    chat.regenerate()
    chat.ask(6, 6)
    assert marked(chat) == [5]


def test_a_turn_that_two_records_share_is_counted_once(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(preserve_recent_messages=1)
    server.script(tools(*[replace(SEOUL, id=f"call-{number}") for number in range(12)]))
    chat.ask(1, 1)
    chat.service.folds.compact(chat.session_id)
    chat.ask(2, 4)
    assert chat.covered == [(1,), (1, 2, 3)]
    statistics = chat.service.folds.statistics(chat.session_id)
    assert (statistics.record_count, statistics.folded_turn_count) == (2, 3)


def test_an_input_that_grows_loses_no_cache_and_turns_left_out_lose_that_of_those_behind_them(
    chat_with: OpenChat,
) -> None:
    growing = chat_with(context_strategy="rolling")
    growing.ask(1, 4)
    assert growing.service.folds.savings(growing.session_id).lost_tokens == 0
    cut = chat_with(context_strategy="window", window_turns=2)
    cut.ask(1, 4)
    sent = cut.service.inputs.of_turn(cut.session_id, 4)[0].blocks
    assert cut.service.folds.savings(cut.session_id).lost_tokens == sum(block.tokens for block in sent[1:4])


def test_a_list_that_somebody_spoilt_is_told(chat: Chat) -> None:
    chat.ask(1, 2)
    chat.change(f"UPDATE model_call SET manifest = '[5]' WHERE turn = 1 AND session_id = '{chat.session_id}'")  # noqa: S608  # our own
    with pytest.raises(DatabaseError):
        chat.service.folds.savings(chat.session_id)


# The next fold


def following(chat: Chat) -> NextFold:
    return chat.service.folds.next_fold(chat.session_id, strategy=chat.view.strategy)


def test_what_was_said_to_be_folded_next_is_folded_next(chat: Chat, server: FakeOpenAI) -> None:
    assert chat.service.folds.next_fold(None, strategy="interval") == NextFold(turns=(1, 2, 3), turns_left=3)
    chat.ask(1, 2)
    server.script(failure(500), kind="summary")
    chat.ask(3, 3)
    first = following(chat)
    # Though it failed.
    assert (first.turns, first.turns_left, first.is_due) == ((1, 2, 3), 0, True)
    chat.ask(4, 5)
    (record,) = chat.service.folds.records(chat.session_id)
    assert record.turns == first.turns
    assert (record.original_chars, record.target_chars) == (first.original_chars, first.summary_chars)
    said = sum(len(turn.user_text + turn.answer_text) for turn in chat.turns[3:])
    assert following(chat) == NextFold((4, 5, 6), turns_left=1, original_chars=said, summary_chars=int(said * 0.3))
    chat.service.sessions.configure(chat.session_id, compression_rate=0.5)
    assert following(chat).summary_chars == int(said * 0.5)
    server.script(failure(500))
    chat.say(question(6))  # an open turn is counted once it is over, however it ended
    assert following(chat).is_due


def test_a_summary_is_told_while_it_is_made_and_shown_before_it_counts(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    server.script(hang(), kind="summary")
    assert isinstance(chat.say(question(3))[-1], TurnFinished)
    server.wait_until(lambda fake: fake.hanging_count == 1)
    assert (following(chat).ready, following(chat).is_making) == ((), True)
    server.end_hanging()
    chat.wait_for_folds()
    # Nobody makes the one that failed, until a turn or another length has it made.
    assert (following(chat).is_due, following(chat).ready, following(chat).is_making) == (True, (), False)
    chat.service.sessions.configure(chat.session_id, compression_rate=0.35)
    chat.wait_for_folds()
    (ready,) = following(chat).ready
    assert (ready.turns, ready.compression_rate, following(chat).is_making) == ((1, 2, 3), 0.35, False)
    assert chat.service.folds.records(chat.session_id) == ()
    # What comes next is the block behind it, and it counts as the next turn will count it.
    assert following(chat) == NextFold((4, 5, 6), turns_left=3, is_due=True, ready=(ready,))
    counted = panel_sums(chat.service.folds.statistics(chat.session_id, ready=(ready,)))
    assert counted == (1, 3, ready.original_chars, ready.summary_chars)
    assert panel_sums(chat.service.folds.statistics(chat.session_id)) == (0, 0, 0, 0)
    chat.ask(4, 4)
    assert chat.service.folds.records(chat.session_id) == (ready,)
    assert following(chat).ready == ()
    assert panel_sums(chat.service.folds.statistics(chat.session_id)) == counted


def panel_sums(figures: Statistics) -> tuple[int, int, int, int]:
    return figures.record_count, figures.folded_turn_count, figures.original_chars, figures.summary_chars


def test_a_ready_compaction_counts_in_place_of_what_it_replaces(open_chat: OpenChat) -> None:
    chat = open_chat(max_context_tokens=1_000)
    chat.ask(1, 7)
    assert panel_sums(chat.service.folds.statistics(chat.session_id))[:2] == (2, 6)
    chat.service.sessions.configure(chat.session_id, strategy="compaction")
    chat.ask(8, 9)
    (ready,) = following(chat).ready
    told = chat.service.folds.statistics(chat.session_id, ready=(ready,))
    assert panel_sums(told) == (1, len(ready.turns), ready.original_chars, ready.summary_chars)
    assert following(chat).tokens < following(chat).threshold_tokens


def test_a_block_that_will_stand_word_for_word_is_said_to(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("네."), text("네."), text("네."))
    for word in ("하나", "둘"):
        chat.say(f"{word}만 적어 두세요.")
    assert following(chat).stands_verbatim
    chat.say("셋만 적어 두세요.")
    chat.wait_for_folds()
    (ready,) = following(chat).ready
    assert (ready.kind, ready.original_chars == ready.summary_chars) == ("verbatim", False)
    assert ready.original_chars < 100
    assert not following(chat).stands_verbatim  # what comes next has no words yet


def test_strategies_that_go_by_tokens_say_how_far_it_is_and_a_window_what_it_sends(open_chat: OpenChat) -> None:
    chat = open_chat(enable_auto_compaction=False)
    chat.ask(1, 2)
    chat.service.sessions.configure(chat.session_id, strategy="rolling")
    shown = following(chat)
    assert 0 < shown.tokens < shown.threshold_tokens <= Limits().app_context_threshold
    assert not shown.is_due
    assert not chat.service.folds.uses_rate("rolling")
    assert chat.service.folds.next_fold(None, strategy="compaction") == NextFold()
    chat.service.sessions.configure(chat.session_id, strategy="window")
    assert following(chat) == NextFold(sent_turns=Limits().window_turns)
    automatic = open_chat().service.folds.next_fold(chat.session_id, strategy="compaction")
    assert 0 < automatic.tokens < automatic.threshold_tokens <= 75_000
