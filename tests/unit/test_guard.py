from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.assembly import SystemPart, assemble
from graph.core.guard import cut_results, guard_order, shorten_verbatim, without_oldest_turn
from graph.core.record import to_entry
from graph.core.standing import Standing
from graph.core.token import estimate_tokens
from graph.core.turn import text_of
from tests.fake.standing import plain_turn, record_of, standing_of, tool_turn

SYSTEM = SystemPart("You help.", 1)
LONG = "구매 담당자가 지난주 회의에서 정한 내용을 정리해 두었고 다음 달 3일까지 검토합니다. " * 20


def test_everything_before_the_open_turn_becomes_one_record() -> None:
    old = [record_of((1, 2, 3), LONG), record_of((4, 5, 6), LONG)]
    order = guard_order(standing_of([plain_turn(7, LONG)], old), 4_000)
    assert order is not None
    assert order.turns == tuple(range(1, 8))
    assert (order.from_position, order.to_position) == (1, 14)
    assert (order.sources, order.max_tokens) == (tuple(record.id for record in old), 1_000)
    assert text_of(order.messages[0]).startswith("[1-3턴] ")
    assert order.covered_message_count == 14


def test_one_record_that_is_small_enough_stays() -> None:
    alone = Standing(3, (record_of((1, 2, 3), "짧은 요약"),), (), 0.3)
    assert guard_order(alone, 4_000) is None


def test_one_record_that_is_too_large_for_a_smaller_window_is_condensed_again() -> None:
    alone = Standing(3, (record_of((1, 2, 3), LONG * 3),), (), 0.3)
    order = guard_order(alone, 2_000)
    assert order is not None
    assert (order.turns, order.to_position) == ((1, 2, 3), 6)


def test_word_for_word_records_go_short_for_one_call_and_the_items_say_so() -> None:
    verbatim, other = record_of((1, 2, 3), LONG, kind="verbatim"), record_of((4, 5, 6), LONG)
    history = shorten_verbatim([to_entry(verbatim), to_entry(other)])
    assert history[0]["summary"].startswith("(이번 호출에만 줄임) ")
    assert history[0]["summary_tokens"] < verbatim.summary_tokens
    assert history[1] == to_entry(other)
    built = assemble(SYSTEM, history, [HumanMessage("now", id="u7")])
    assert [(item.kind, item.id) for item in built.items][1:3] == [("shortened", verbatim.id), ("record", other.id)]


def test_the_longest_tool_result_is_cut_first_and_says_how_much_is_missing() -> None:
    short, long = tool_turn(1, LONG), tool_turn(2, LONG * 5)
    messages = [*short, *long]
    excess = 1_000
    cut = cut_results(messages, excess)
    assert cut[2] == short[2]
    result = text_of(cut[6])
    original = text_of(long[2])
    assert f"of {len(original)} characters fit the window" in result
    assert estimate_tokens(original) - estimate_tokens(result) >= excess - 60
    assert text_of(messages[6]) == original


def test_a_cut_result_is_listed_with_the_characters_that_were_kept() -> None:
    messages = cut_results(tool_turn(1, LONG * 5)[:-1], 1_000)
    item = next(item for item in assemble(SYSTEM, [], messages).items if item.kind == "cut")
    kept = int(text_of(messages[2]).rpartition("[cut: ")[2].split()[0])
    assert (item.id, item.version) == ("tc1-0", kept)


def test_calls_and_results_stay_together_when_the_oldest_turn_goes() -> None:
    messages: list[AnyMessage] = [*tool_turn(1, calls=2), *tool_turn(2), HumanMessage("now", id="u3")]
    fewer = without_oldest_turn(messages)
    assert fewer is not None
    assert [message.id for message in fewer] == ["u2", "k2", "tc2-0", "a2", "u3"]
    fewest = without_oldest_turn(fewer)
    assert [message.id for message in fewest or []] == ["u3"]
    assert without_oldest_turn(fewest or []) is None


def test_a_tool_result_as_blocks_is_cut_too() -> None:
    blocks: list[Any] = [{"type": "text", "text": LONG * 5}]
    call: Any = {"name": "t", "args": {}, "id": "c", "type": "tool_call"}
    messages: list[AnyMessage] = [
        HumanMessage("q", id="u"),
        AIMessage("", tool_calls=[call], id="k"),
        ToolMessage(blocks, tool_call_id="c", id="t"),
    ]
    assert len(text_of(cut_results(messages, 2_000)[2])) < len(LONG * 5)
