from __future__ import annotations

import json
from itertools import product

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from sqlalchemy import select, update

from graph.store.schema import message_table
from graph.value.error import InternalError, NotFoundError
from tests.fake.store import SESSION, StoreSet

pytestmark = pytest.mark.both_engines

USAGE = UsageMetadata(
    input_tokens=10, output_tokens=2, total_tokens=12, input_token_details=InputTokenDetails(cache_read=8)
)


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage([{"type": "text", "text": "무엇"}, {"type": "image", "url": "data:,x"}], id="m"),
        HumanMessage('a whole one 😀, quote " and \\', id="m"),
        HumanMessage("named", id="m", name="Kim"),
        AIMessage(
            "calls",
            id="m",
            tool_calls=[{"name": "clock", "args": {"zone": "Asia/Seoul"}, "id": "c1", "type": "tool_call"}],
            usage_metadata=USAGE,
            response_metadata={"finish_reason": "tool_calls"},
            additional_kwargs={"closed": True},
        ),
        AIMessage([{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "so"}], id="m"),
        AIMessage(
            "",
            id="m",
            invalid_tool_calls=[
                {"name": "clock", "args": '{"zo', "id": "c1", "error": "cut", "type": "invalid_tool_call"}
            ],
        ),
        AIMessage("closed by us", id="m"),
        AIMessage("cut", id="m", response_metadata={"finish_reason": "length"}),
        AIMessage("said", id="m", response_metadata={"finish_reason": "stop", "model_name": "a-model"}),
        ToolMessage("12:00", id="m", tool_call_id="c1", name="clock", status="error"),
    ],
)
def test_message_comes_back_whole(stores: StoreSet, message: AnyMessage) -> None:
    lease = stores.make_session()
    stores.say(lease, stores.begin(lease, "q1"), message)
    found = stores.archive.get(SESSION, "m").message
    assert type(found) is type(message)
    assert found.model_dump() == message.model_dump()


def live_ids(stores: StoreSet) -> list[str | None]:
    return [entry.message.id for entry in stores.archive.live(SESSION)]


def test_a_usual_message_takes_the_room_of_its_text(stores: StoreSet) -> None:
    lease = stores.make_session()
    turn = stores.begin(lease, "q1")
    for message in (
        HumanMessage("안녕하세요?", id="question"),
        AIMessage("안녕하세요.", id="answer", response_metadata={"finish_reason": "stop"}),
        AIMessage("", id="blank", response_metadata={"finish_reason": "stop"}),
    ):
        stores.say(lease, turn, message)
        content = select(message_table.c.content).where(message_table.c.message_id == message.id)
        with stores.database.read() as connection:
            assert connection.execute(content).scalar() == f'"{message.text}"'
        assert stores.archive.get(SESSION, str(message.id)).message.model_dump() == message.model_dump()


def test_a_row_of_an_older_database_is_read(stores: StoreSet) -> None:
    lease = stores.make_session()
    old = AIMessage("12:00", id="m", response_metadata={"finish_reason": "stop", "model_name": "a-model"})
    stores.say(lease, stores.begin(lease, "q1"), old)
    as_it_was = {"type": "ai", "data": old.model_dump(exclude_defaults=True)}
    with stores.database.write() as connection:
        change = update(message_table).where(message_table.c.message_id == "m").values(content=json.dumps(as_it_was))
        connection.execute(change)
    assert stores.archive.get(SESSION, "m").message.model_dump() == old.model_dump()


def test_what_no_database_takes_is_replaced_and_so_it_is_in_older_rows(stores: StoreSet) -> None:
    lease = stores.make_session()
    turn = stores.begin(lease, "q1")
    call = {"name": "clock", "args": {"zone": "a\x00\ud83d"}, "id": "c1", "type": "tool_call"}
    stores.say(lease, turn, AIMessage("NUL \x00, half \ud83d", id="m", tool_calls=[call]))
    found = stores.archive.get(SESSION, "m").message
    assert isinstance(found, AIMessage)
    assert (found.content, found.tool_calls[0]["args"]) == ("NUL \ufffd, half \ufffd", {"zone": "a\ufffd\ufffd"})
    older = {"type": "human", "data": {"content": "half \ud83d", "type": "human", "id": "q1"}}
    with stores.database.write() as connection:
        change = update(message_table).where(message_table.c.message_id == "q1").values(content=json.dumps(older))
        connection.execute(change)
    assert stores.archive.get(SESSION, "q1").message.content == "half \ufffd"


def test_positions_count_on_over_turns_and_attempts(stores: StoreSet) -> None:
    lease = stores.make_session()
    turn = stores.begin(lease, "q1")
    stores.say(lease, turn, AIMessage("a", id="a1"), ToolMessage("t", id="t1", tool_call_id="c"))
    stores.turns.finish(lease, 1, "failed")
    again = stores.turns.begin_attempt(lease, 1, model="m")
    (answer,) = stores.say(lease, again, AIMessage("b", id="a2"))
    assert (answer.position, answer.attempt, answer.turn) == (4, 2, 1)
    assert answer.created_at == stores.clock()


def test_append_leaves_what_is_there_and_writes_all_or_nothing(stores: StoreSet) -> None:
    lease = stores.make_session()
    turn = stores.begin(lease, "q1")
    (first,) = stores.say(lease, turn, AIMessage("first", id="a1"))
    again, new, twice = stores.say(
        lease, turn, AIMessage("changed", id="a1"), AIMessage("new", id="a2"), AIMessage("new", id="a2")
    )
    assert again == first
    assert new == twice
    with pytest.raises(InternalError):
        stores.say(lease, turn, AIMessage("with", id="a3"), AIMessage("without"))
    assert live_ids(stores) == ["q1", "a1", "a2"]


def test_only_the_last_attempt_is_live_and_the_question_always_is(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.run_turn(lease, "one")
    turn = stores.begin(lease, "q2")
    stores.say(lease, turn, AIMessage("old", id="old"), ToolMessage("t", id="old-tool", tool_call_id="c"))
    stores.turns.finish(lease, 2, "failed")
    again = stores.turns.begin_attempt(lease, 2, model="m")
    assert [entry.message.id for entry in stores.archive.live_turns(SESSION, 2, 2)] == ["q2"]
    stores.say(lease, again, AIMessage("new", id="new"))
    assert live_ids(stores) == ["one-question", "one-answer", "q2", "new"]
    assert stores.archive.get(SESSION, "old").message.content == "old"


def test_turns_are_those_of_their_last_attempts_and_of_no_other_session(stores: StoreSet) -> None:
    attempts = (1, 3, 1, 2)
    for name in ("before", SESSION, "t-behind"):
        lease = stores.make_session(name)
        for number, count in enumerate(attempts, start=1):
            turn = stores.begin(lease, f"q{number}")
            for attempt in range(1, count + 1):
                if attempt > 1:
                    turn = stores.turns.begin_attempt(lease, number, model="m")
                result = ToolMessage("t", id=f"t{number}.{attempt}", tool_call_id="c")
                more = [] if name == SESSION else [AIMessage("calls", id=f"more{number}.{attempt}")]
                stores.say(lease, turn, *more, result, AIMessage("a", id=f"a{number}.{attempt}"))
                stores.turns.finish(lease, number, "finished")
    of_turn = {
        number: [f"q{number}", f"t{number}.{last}", f"a{number}.{last}"] for number, last in enumerate(attempts, 1)
    }
    for first, last in product(range(6), repeat=2):
        said = [entry.message.id for entry in stores.archive.live_turns(SESSION, first, last)]
        assert said == [name for number in range(first, last + 1) for name in of_turn.get(number, [])], (first, last)


def test_ranges_include_both_ends(stores: StoreSet) -> None:
    lease = stores.make_session()
    for number in range(1, 6):
        stores.run_turn(lease, f"t{number}")

    def positions(first: int, last: int | None) -> list[int]:
        return [entry.position for entry in stores.archive.live_within(SESSION, [(first, last)])]

    assert positions(3, 6) == [3, 4, 5, 6]
    assert positions(9, None) == [9, 10]
    assert positions(11, None) == []
    assert [entry.turn for entry in stores.archive.live_turns(SESSION, 2, 3)] == [2, 2, 3, 3]
    within = stores.archive.live_within(SESSION, [(2, 3), (8, None)], from_turn=2)
    assert [entry.position for entry in within] == [3, 8, 9, 10]
    with pytest.raises(NotFoundError):
        stores.archive.get("s2", "t1-question")
