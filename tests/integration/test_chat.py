from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from graph.core.text import estimate_tokens
from graph.value.event import Folded, TurnFinished
from graph.value.view import TurnOptions
from prompt.system.framing import LEDGER_HEADING
from tests.fake.body import faults, roles, shape, system_prompt, tokens_of
from tests.fake.chat import Chat, names, question, text_in, text_of
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body
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
    assert roles(bodies[8]) == ["system", "user", "assistant", "user", "assistant", "user"]
    # Between two folds the input only grows at its end, and a new summary goes behind the ones before.
    for earlier in (0, 1, 3, 4, 6, 7):
        sent = bodies[earlier]["messages"]
        assert bodies[earlier + 1]["messages"][: len(sent)] == sent
        assert bodies[earlier + 1]["tools"] == bodies[earlier]["tools"]
    assert system_prompt(bodies[6]).startswith(system_prompt(bodies[3]).partition(f"\n\n{LEDGER_HEADING['ko']}")[0])
    check_chart(chat, bodies)


def check_chart(chat: Chat, bodies: list[Body]) -> None:
    """The chart says what the server received, and what it would have without folds."""
    points = chat.service.folds.chart(chat.session_id)
    assert [(point.turn, point.sent_tokens) for point in points] == [
        (number, tokens_of(body)) for number, body in enumerate(bodies, start=1)
    ]
    assert [point.turn for point in points if point.has_fold] == [4, 7, 10]
    tools = json.dumps(bodies[0]["tools"], ensure_ascii=False)
    full = estimate_tokens(system_prompt(bodies[0])) + estimate_tokens(tools)
    for point, turn in zip(points, chat.turns, strict=True):
        full += estimate_tokens(turn.user_text)
        assert point.full_tokens == full
        full += estimate_tokens(turn.answer_text)


@pytest.mark.slow
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


def test_fold_adds_one_record_with_the_seeds_figures_and_leaves_earlier_ones(chat: Chat, server: FakeOpenAI) -> None:
    folds = chat.service.folds
    chat.ask(1, 6)
    (first,) = before = folds.records(chat.session_id)
    said = "".join(turn.user_text + turn.answer_text for turn in chat.turns[:3])
    assert (first.original_chars, first.target_chars) == (len(said), int(len(said) * 0.3))
    assert (first.summary_chars, first.compression_rate) == (len(first.summary), 0.3)
    assert holds(server.bodies("chat")[-1], f"[1-3턴] ({first.days}) {first.summary}")
    events = chat.say(question(7))
    after = folds.records(chat.session_id)
    assert after[:-1] == before
    assert after[-1].turns == (4, 5, 6)
    assert [event.record_id for event in events if isinstance(event, Folded)] == [after[-1].id]


def test_a_record_keeps_the_day_of_its_turns_in_the_users_zone(open_chat: OpenChat, server: FakeOpenAI) -> None:
    def late() -> datetime:
        return datetime(2026, 11, 25, 20, tzinfo=UTC)

    chat = open_chat(clock=late)
    for number in range(1, 8):
        # The last turns are sent from another place.
        chat.say(question(number), options=TurnOptions(time_zone="Asia/Seoul" if number < 5 else "America/New_York"))
        chat.wait_for_folds()
    first, second = chat.service.folds.records(chat.session_id)
    assert (first.days, second.days) == ("2026-11-26", "2026-11-25")
    fourth, last = (system_prompt(server.bodies("chat")[at]) for at in (3, 6))
    assert f"\n[1-3턴] (2026-11-26) {first.summary.splitlines()[0]}" in fourth
    assert f"\n[1-3턴] (2026-11-26) {first.summary.splitlines()[0]}" in last
    assert f"\n[4-6턴] (2026-11-25) {second.summary.splitlines()[0]}" in last
    edited = chat.service.folds.edit(chat.session_id, first.id, "서버를 옮긴다.")
    assert edited.days == first.days
    assert "**[1-3턴] (2026-11-26)**" in chat.service.sessions.export_markdown(chat.session_id)


def test_slider_counts_from_the_next_fold_on(chat: Chat) -> None:
    chat.ask(1, 4)
    chat.say(question(5), options=TurnOptions(compression_rate=0.5))
    chat.ask(6, 7)
    records = chat.service.folds.records(chat.session_id)
    assert [(record.turns[-1], record.compression_rate) for record in records] == [(3, 0.3), (6, 0.5)]
    assert [record.target_chars for record in records] == [
        int(record.original_chars * record.compression_rate) for record in records
    ]


def test_events_come_in_their_documented_order_and_the_last_one_after_the_commit(chat: Chat) -> None:
    chat.start(question(1))
    seen = []
    for event in chat.service.turns.follow(chat.session_id, timeout_seconds=30):
        seen.append(event)
        if isinstance(event, TurnFinished):
            (content,) = chat.rows("SELECT content FROM message WHERE message_id = ?", event.message_id)[0]
            assert text_in(content) == event.text
            assert chat.rows("SELECT status FROM turn WHERE session_id = ?", chat.session_id) == [("finished",)]
    assert names(seen) == ["TurnStarted", "TokenDelta", "TurnFinished"]
    chat.ask(2, 3)
    fourth = chat.say(question(4))
    assert names(fourth) == ["TurnStarted", "Folded", "TokenDelta", "TurnFinished"]
    assert isinstance(fourth[-1], TurnFinished)
    assert text_of(fourth) == fourth[-1].text == chat.last_turn.answer_text
