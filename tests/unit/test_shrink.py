from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.model_input import SystemPart, assemble
from graph.core.snapshot import SessionSnapshot
from graph.core.text import estimate_tokens
from graph.core.turn import text_of
from graph.fold.spec import FoldSpec
from graph.strategy.shrink import cut_results, guard_fold, shorten_verbatim, without_oldest, without_oldest_round
from graph.value.record import Record, to_entry
from prompt.system.framing import note_cut
from tests.fake.snapshot import archived, plain_turn, record_of, snapshot_of, tool_turn

SYSTEM = SystemPart("You help.", 1)
LONG = "구매 담당자가 지난주 회의에서 정한 내용을 정리해 두었고 다음 달 3일까지 검토합니다. " * 20


def order_of(snapshot: SessionSnapshot, excess_tokens: int) -> FoldSpec | None:
    """The guard's next fold where every record and message is sent whole."""
    sizes = {record.id: record.summary_tokens for record in snapshot.active}
    sizes |= {str(entry.message.id): entry.tokens for entry in snapshot.raw}
    return guard_fold(snapshot, sizes, excess_tokens, merged_tokens=600, least_tokens=100)


def blocks(count: int, words: str = LONG) -> list[Record]:
    return [record_of((3 * k + 1, 3 * k + 2, 3 * k + 3), words) for k in range(count)]


def tokens_of(records: Sequence[Record]) -> int:
    return sum(record.summary_tokens for record in records)


def test_the_fewest_of_the_oldest_records_are_merged_and_raw_turns_stay() -> None:
    old = blocks(5)
    spec = order_of(snapshot_of([plain_turn(16, LONG), plain_turn(17, LONG)], old), tokens_of(old[:2]))
    assert spec is not None
    assert (spec.kind, spec.level, spec.sources) == ("merge", 1, tuple(record.id for record in old[:3]))
    assert (spec.turns, spec.from_position, spec.to_position) == (tuple(range(1, 10)), 1, 18)
    assert spec.max_tokens
    assert 600 <= spec.max_tokens <= tokens_of(old[:3]) - tokens_of(old[:2])


def test_records_of_one_level_are_merged_before_those_of_several() -> None:
    old = [record.with_changes(level=1) if record.id == "interval-1-3" else record for record in blocks(4)]
    spec = order_of(snapshot_of([plain_turn(13, LONG)], old), 200)
    assert spec is not None
    assert (spec.level, spec.sources) == (1, ("interval-4-6", "interval-7-9"))


def test_the_newest_record_takes_part_last() -> None:
    old = [record.with_changes(level=1) if record.id == "interval-1-3" else record for record in blocks(3)]
    spec = order_of(snapshot_of([plain_turn(10, LONG)], old), 200)
    assert spec is not None
    assert spec.sources == ("interval-1-3", "interval-4-6")


def test_all_records_become_as_small_as_they_must_before_a_raw_turn_goes() -> None:
    old = blocks(2)
    spec = order_of(snapshot_of([plain_turn(7, LONG)], old), tokens_of(old) - 250)
    assert spec is not None
    assert (spec.kind, spec.sources, spec.max_tokens) == ("merge", ("interval-1-3", "interval-4-6"), 250)


def test_one_record_that_is_too_large_is_condensed() -> None:
    (alone,) = blocks(1, LONG * 3)
    spec = order_of(SessionSnapshot(3, (alone,), (), 0.3), 400)
    assert spec is not None
    assert (spec.kind, spec.turns, spec.to_position) == ("merge", (1, 2, 3), 6)
    assert spec.max_tokens == alone.summary_tokens // 2


def test_the_fewest_of_the_oldest_raw_turns_are_folded_and_the_newest_stay() -> None:
    snapshot = snapshot_of([plain_turn(number, LONG) for number in range(1, 6)])
    turn_tokens = sum(entry.tokens for entry in snapshot.raw[:2])
    spec = order_of(snapshot, turn_tokens)
    assert spec is not None
    assert (spec.kind, spec.turns, spec.to_position) == ("compaction", (1, 2), 4)
    assert (spec.max_tokens, spec.sources) == (turn_tokens, ())
    assert (spec.context_messages, spec.context_messages_after) == (10, 7)


def test_records_go_with_the_raw_turns_if_more_turns_would_have_to_go_without_them() -> None:
    old = blocks(1)
    snapshot = snapshot_of([plain_turn(number, LONG) for number in (4, 5)], old)
    turn_tokens = sum(entry.tokens for entry in snapshot.raw[:2])
    spec = order_of(snapshot, turn_tokens + 100)
    assert spec is not None
    assert (spec.kind, spec.turns, spec.sources) == ("compaction", (1, 2, 3, 4), ("interval-1-3",))
    assert spec.max_tokens == tokens_of(old) - 100
    assert text_of(spec.messages[0]) == LONG
    assert spec.covered_message_count == 8


def test_if_nothing_is_enough_everything_before_the_open_turn_becomes_one_record() -> None:
    old = blocks(2)
    snapshot = snapshot_of([plain_turn(7, LONG)], old)
    spec = order_of(snapshot, 100_000)
    assert spec is not None
    assert (spec.turns, spec.from_position, spec.to_position) == (tuple(range(1, 8)), 1, 14)
    assert (spec.sources, spec.max_tokens) == (tuple(record.id for record in old), 100)
    assert text_of(spec.messages[0]).startswith("[1-3턴] ")


def test_with_nothing_before_the_open_turn_there_is_nothing_to_fold() -> None:
    assert order_of(SessionSnapshot(0, (), archived([[HumanMessage("now", id="u1")]]), 0.3), 1_000) is None


def test_nothing_is_folded_over_a_gap_in_what_the_records_cover() -> None:
    first, second, third = blocks(3)
    gap = archived([plain_turn(number, LONG) for number in (4, 5, 6)], first_turn=4, first_position=7)
    behind = archived([plain_turn(10, LONG)], first_turn=10, first_position=19)
    snapshot = SessionSnapshot(10, (first, third), [*gap, *behind], 0.3)
    for excess_tokens in (200, 2_000, 100_000):
        spec = order_of(snapshot, excess_tokens)
        assert spec is not None
        assert (spec.kind, spec.from_position, spec.sources) == ("compaction", 7, ())
        assert spec.to_position <= second.to_position
    assert order_of(SessionSnapshot(9, (first, second, third), (), 0.3), 200) is not None


def test_word_for_word_records_go_short_for_one_call_and_the_items_say_so() -> None:
    verbatim, other = record_of((1, 2, 3), LONG, kind="verbatim"), record_of((4, 5, 6), LONG)
    history = shorten_verbatim([to_entry(verbatim), to_entry(other)], "ko")
    assert history[0]["summary"].startswith("(이번 호출에만 줄임) ")
    assert history[0]["summary_tokens"] < verbatim.summary_tokens
    assert history[1] == to_entry(other)
    built = assemble(SYSTEM, history, [HumanMessage("now", id="u7")])
    assert [(item.kind, item.id) for item in built.items][1:3] == [("shortened", verbatim.id), ("record", other.id)]


def test_the_longest_tool_result_is_cut_first_and_says_how_much_is_missing() -> None:
    short, long = tool_turn(1, LONG), tool_turn(2, LONG * 5)
    messages = [*short, *long]
    excess = 1_000
    cut = cut_results(messages, excess, "ko")
    assert cut[2] == short[2]
    result = text_of(cut[6])
    original = text_of(long[2])
    assert f"of {len(original)} characters fit the window" in result
    assert estimate_tokens(original) - estimate_tokens(result) >= excess - 60
    assert text_of(messages[6]) == original


def test_a_cut_result_is_listed_with_the_characters_that_were_kept() -> None:
    messages = cut_results(tool_turn(1, LONG * 5)[:-1], 1_000, "ko")
    item = next(item for item in assemble(SYSTEM, [], messages).items if item.kind == "cut")
    retained = int(text_of(messages[2]).rpartition("[cut: ")[2].split()[0])
    assert (item.id, item.version) == ("tc1-0", retained)


def test_the_oldest_record_goes_first_then_the_oldest_turn_with_its_calls_and_results() -> None:
    messages: list[AnyMessage] = [*tool_turn(1, calls=2), *tool_turn(2), HumanMessage("now", id="u3")]
    history = [to_entry(record) for record in blocks(2)]
    sizes = {item.id: item.tokens for item in assemble(SYSTEM, history, messages).items}
    assert without_oldest(history, messages, sizes, 1) == (history[1:], messages)
    records = sum(sizes[entry["id"]] for entry in history)
    assert without_oldest(history, messages, sizes, records) == ([], messages)
    fewer = without_oldest(history, messages, sizes, records + 1)
    assert fewer is not None
    assert [message.id for message in fewer[1]] == ["u2", "k2", "tc2-0", "a2", "u3"]
    fewest = without_oldest(*fewer, sizes, 10_000)
    assert fewest is not None
    assert [message.id for message in fewest[1]] == ["u3"]
    assert without_oldest(*fewest, sizes, 1) is None


def test_the_rest_of_a_turn_whose_beginning_is_folded_goes_before_the_turns_behind_it() -> None:
    rest = tool_turn(1)[1:]
    messages: list[AnyMessage] = [*rest, *plain_turn(2), HumanMessage("now", id="u3")]
    history = [to_entry(record) for record in blocks(1)]
    sizes = {item.id: item.tokens for item in assemble(SYSTEM, history, messages).items}
    rest_tokens = sum(sizes[str(message.id)] for message in rest)
    fewer = without_oldest(history, messages, sizes, sizes[history[0]["id"]] + rest_tokens)
    assert fewer is not None
    assert (fewer[0], [message.id for message in fewer[1]]) == ([], ["u2", "a2", "u3"])


def test_a_result_that_is_cut_again_says_how_long_it_was_at_first() -> None:
    messages, whole = tool_turn(1, LONG * 5)[:-1], text_of(tool_turn(1, LONG * 5)[2])
    once = cut_results(messages, 1_000, "ko")
    again = cut_results(once, 500, "ko")
    for cut in (once, again, cut_results(again, 10_000, "ko", least_chars=0)):
        (item,) = (item for item in assemble(SYSTEM, [], cut).items if item.kind == "cut")
        assert text_of(cut[2]) == note_cut(whole, item.version, why="fit the window", language="ko")
    assert len(text_of(again[2])) < len(text_of(once[2]))
    assert cut_results(again, 0, "ko") == again


def test_results_of_a_program_s_tools_stay_whole() -> None:
    rounds = [*tool_turn(1, LONG * 5)[:-1], *tool_turn(2, LONG * 5)[1:-1]]
    theirs = [message.model_copy(update={"name": None}) for message in rounds]
    assert cut_results(theirs, 10_000, "ko", least_chars=0) == theirs
    assert without_oldest_round(theirs) is None
    assert without_oldest_round(rounds) == [rounds[0], *rounds[3:]]


def test_a_result_shorter_than_the_note_that_it_is_cut_stays() -> None:
    messages = tool_turn(1, "ok")[:-1]
    assert cut_results(messages, 1_000, "ko", least_chars=0) == messages


def test_the_oldest_calls_of_the_open_turn_go_with_their_results_and_the_newest_stay() -> None:
    rounds = [tool_turn(number, calls=2)[1:-1] for number in (2, 3)]
    messages: list[AnyMessage] = [*tool_turn(1), HumanMessage("now", id="now"), *rounds[0], *rounds[1]]
    fewer = without_oldest_round(messages)
    assert fewer is not None
    assert list(fewer) == [*tool_turn(1), HumanMessage("now", id="now"), *rounds[1]]
    assert without_oldest_round(fewer) is None
    assert without_oldest_round(messages[:4]) is None


def test_a_tool_result_as_blocks_is_cut_too() -> None:
    blocks: list[Any] = [{"type": "text", "text": LONG * 5}]
    call: Any = {"name": "t", "args": {}, "id": "c", "type": "tool_call"}
    messages: list[AnyMessage] = [
        HumanMessage("q", id="u"),
        AIMessage("", tool_calls=[call], id="k"),
        ToolMessage(blocks, tool_call_id="c", name="look_up", id="t"),
    ]
    assert len(text_of(cut_results(messages, 2_000, "ko")[2])) < len(LONG * 5)
