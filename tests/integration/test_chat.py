from __future__ import annotations

import json

import pytest

from graph.core.token import estimate_tokens
from graph.event import Folded, TurnFinished
from graph.view import TurnOptions
from tests.fake.body import faults, raw_turns, roles, shape, summaries, system_prompt, tokens_of
from tests.fake.chat import Chat, names, question, text_in, text_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.summary_text import holds

SEED_TABLE = {
    1: [1],
    2: [1, 2],
    3: [1, 2, 3],
    4: [(1, 3), 4],
    5: [(1, 3), 4, 5],
    6: [(1, 3), 4, 5, 6],
    7: [(1, 3), (4, 6), 7],
    8: [(1, 3), (4, 6), 7, 8],
    9: [(1, 3), (4, 6), 7, 8, 9],
    10: [(1, 3), (4, 6), (7, 9), 10],
}


def test_ten_turns_send_what_the_seeds_table_says(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 10)
    bodies = server.bodies("chat")
    assert {number: shape(body) for number, body in enumerate(bodies, start=1)} == SEED_TABLE
    assert [faults(body["messages"]) for body in bodies] == [[]] * 10
    for number, body in enumerate(bodies, start=1):
        assert body["messages"][-1] == {"role": "user", "content": question(number)}
        assert system_prompt(body).startswith("당신은 유용한 AI 어시스턴트입니다.")


def test_fifty_turns_make_sixteen_records_and_two_raw_turns(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 50)
    blocks = [(first, first + 2) for first in range(1, 48, 3)]
    assert len(blocks) == 16
    assert shape(server.bodies("chat")[-1]) == [*blocks, 49, 50]
    records = chat.service.folds.records(chat.session_id)
    assert [(record.turns[0], record.turns[-1]) for record in records] == blocks
    assert {record.kind for record in records} == {"interval"}
    assert len(server.bodies("summary")) == 16
    assert [turn.number for turn in chat.turns] == list(range(1, 51))


@pytest.mark.parametrize("fold_turn", [4, 7, 10])
def test_a_fold_turn_adds_one_record_and_leaves_earlier_ones_as_they_were(chat: Chat, fold_turn: int) -> None:
    chat.ask(1, fold_turn - 1)
    before = chat.service.folds.records(chat.session_id)
    assert len(before) == (fold_turn - 4) // 3
    events = chat.say(question(fold_turn))
    after = chat.service.folds.records(chat.session_id)
    assert after[:-1] == before
    assert after[-1].turns == (fold_turn - 3, fold_turn - 2, fold_turn - 1)
    assert [event.record_id for event in events if isinstance(event, Folded)] == [after[-1].id]


def test_a_record_has_the_seeds_figures(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    said = "".join(turn.user_text + turn.answer_text for turn in chat.turns[:3])
    (record,) = chat.service.folds.records(chat.session_id)
    assert record.original_chars == len(said)
    assert record.target_chars == int(len(said) * 0.3)
    assert record.summary_chars == len(record.summary)
    assert record.compression_rate == 0.3
    assert holds(server.bodies("chat")[-1], f"[1-3턴] {record.summary}")


def test_the_slider_counts_from_the_next_fold_on(chat: Chat) -> None:
    chat.ask(1, 7)
    chat.say(question(8), options=TurnOptions(compression_rate=0.5))
    chat.ask(9, 10)
    records = chat.service.folds.records(chat.session_id)
    assert [(record.turns[-1], record.compression_rate) for record in records] == [(3, 0.3), (6, 0.3), (9, 0.5)]
    assert [record.target_chars for record in records] == [
        int(record.original_chars * record.compression_rate) for record in records
    ]


def test_the_input_only_grows_at_its_end_between_two_folds(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 6)
    bodies = server.bodies("chat")
    for earlier, later in [(0, 1), (1, 2), (3, 4), (4, 5)]:
        sent = bodies[earlier]["messages"]
        assert bodies[later]["messages"][: len(sent)] == sent
        assert bodies[later]["tools"] == bodies[earlier]["tools"]


def test_the_next_summary_goes_behind_the_ones_before(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 7)
    bodies = server.bodies("chat")
    assert system_prompt(bodies[6]).startswith(system_prompt(bodies[3]))
    assert summaries(bodies[6]) == [(1, 3), (4, 6)]


def test_events_come_in_their_documented_order(chat: Chat) -> None:
    first = chat.say(question(1))
    assert names(first) == ["TurnStarted", "TokenDelta", "TurnFinished"]
    chat.ask(2, 3)
    fourth = chat.say(question(4))
    assert names(fourth) == ["TurnStarted", "Folded", "TokenDelta", "TurnFinished"]
    ending = fourth[-1]
    assert isinstance(ending, TurnFinished)
    assert text_of(fourth) == ending.text
    assert chat.last_turn.answer_text == ending.text


def test_the_answer_is_committed_before_the_last_event(chat: Chat) -> None:
    chat.start(question(1))
    for event in chat.service.turns.follow(chat.session_id, timeout_seconds=30):
        if isinstance(event, TurnFinished):
            (content,) = chat.rows("SELECT content FROM message WHERE message_id = ?", event.message_id)[0]
            assert text_in(content) == event.text
            assert chat.rows("SELECT status FROM turn") == [("finished",)]


def test_the_chart_says_what_the_server_received(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 8)
    bodies, points = server.bodies("chat"), chat.service.folds.chart(chat.session_id)
    assert [(point.turn, point.sent_tokens) for point in points] == [
        (number, tokens_of(body)) for number, body in enumerate(bodies, start=1)
    ]
    assert [point.turn for point in points if point.has_fold] == [4, 7]
    fixed = estimate_tokens(system_prompt(bodies[0])) + estimate_tokens(
        json.dumps(bodies[0]["tools"], ensure_ascii=False)
    )
    said = 0
    for point, turn in zip(points, chat.turns, strict=True):
        said += estimate_tokens(turn.user_text)
        assert point.full_tokens == fixed + said
        said += estimate_tokens(turn.answer_text)


def test_folded_turns_leave_the_input_for_good(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 9)
    last = server.bodies("chat")[-1]
    assert raw_turns(last) == [7, 8, 9]
    assert roles(last) == ["system", "user", "assistant", "user", "assistant", "user"]
