from __future__ import annotations

from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from graph.core.snapshot import SessionSnapshot
from graph.fold.spec import source_key
from graph.strategy.base import Limits
from graph.strategy.interval import IntervalStrategy
from graph.value.record import Record
from tests.fake.snapshot import adopted, archived, plain_turn, record_of, snapshot_of

LONG = "구매 담당자가 지난주 회의에서 정한 내용을 정리해 두었고 다음 달 3일까지 검토합니다. " * 12


def run(turn_count: int, summary: str, limits: Limits) -> tuple[list[Record], list[int], int]:
    """Every fold works; gives the active records at the last turn, their tokens by turn, and merges of turn 1."""
    strategy, active, merges = IntervalStrategy(limits), list[Record](), 0
    sizes = []
    turns = [plain_turn(number, LONG) for number in range(1, turn_count + 1)]
    entries = archived(turns)
    for number in range(1, turn_count + 1):
        covered_to = active[-1].to_position if active else 0
        snapshot = SessionSnapshot(number - 1, tuple(active), entries[covered_to : 2 * number - 1], 0.3)
        for spec in strategy.due_folds(snapshot):
            tokens = spec.max_tokens or 10_000
            record = adopted(spec, summary, f"r{number}-{spec.kind}").with_changes(
                level=spec.level, summary_tokens=min(tokens, 450), kind=spec.kind
            )
            active = [old for old in active if old.id not in spec.sources]
            active = sorted([*active, record], key=lambda entry: entry.from_position)
            merges += spec.kind == "merge" and 1 in spec.turns
        sizes.append(sum(record.summary_tokens for record in active))
    return active, sizes, merges


def test_at_fifty_turns_it_is_the_sixteen_summaries_of_the_seed() -> None:
    active, _, merges = run(50, "요약", Limits())
    assert [record.turns for record in active] == [(3 * k + 1, 3 * k + 2, 3 * k + 3) for k in range(16)]
    assert merges == 0


def test_over_a_thousand_turns_the_records_stay_bounded_and_the_first_turn_is_condensed_three_times_at_most() -> None:
    active, sizes, merges = run(1_000, "요약", Limits())
    assert max(sizes[299:]) <= 1.2 * max(sizes[:299])
    assert 1 <= merges <= 3
    assert [turn for record in active for turn in record.turns] == list(range(1, 1_000))
    assert len([record for record in active if record.level == 0]) >= 16


def test_a_merge_is_due_beside_the_block_and_no_turn_waits_for_it() -> None:
    old = [record_of((3 * k + 1, 3 * k + 2, 3 * k + 3), LONG) for k in range(24)]
    snapshot = snapshot_of([plain_turn(n, LONG) for n in (73, 74, 75)], old)
    block, merge = IntervalStrategy(Limits()).due_folds(snapshot)
    assert (block.kind, block.turns, block.is_waited) == ("interval", (73, 74, 75), True)
    assert (merge.kind, merge.turns, merge.is_waited) == ("merge", tuple(range(1, 25)), False)


def test_a_turn_that_a_compaction_cut_in_two_is_folded_with_what_is_left_of_it() -> None:
    compaction = record_of((1, 2), "S", kind="compaction").with_changes(to_position=6)
    left: list[AnyMessage] = [AIMessage(f"the rest {LONG}", id="a3")]
    entries = [
        *archived([left], first_turn=3, first_position=7),
        *archived([plain_turn(4, LONG), [HumanMessage("now", id="u5")]], first_turn=4, first_position=8),
    ]
    (spec,) = IntervalStrategy(Limits()).due_folds(SessionSnapshot(4, (compaction,), entries, 0.3))
    assert (spec.turns, spec.from_position, spec.to_position) == ((3,), 7, 7)


def test_after_the_context_was_begun_anew_blocks_start_behind_it() -> None:
    entries = archived([plain_turn(n, LONG) for n in (6, 7, 8, 9)], first_turn=6, first_position=11)
    specs = IntervalStrategy(Limits()).due_folds(SessionSnapshot(9, (), entries, 0.3))
    assert [spec.turns for spec in specs] == [(6,), (7, 8, 9)]


def test_with_nothing_raw_there_is_nothing_to_fold() -> None:
    assert IntervalStrategy(Limits()).due_folds(SessionSnapshot(9, (), (), 0.3)) == ()


@pytest.mark.parametrize("complete", range(8))
def test_it_says_which_block_comes_next_and_that_it_is_due_just_when_it_is(complete: int) -> None:
    snapshot = SessionSnapshot(complete, (), archived([plain_turn(n, LONG) for n in range(1, complete + 1)]), 0.3)
    following, due = IntervalStrategy(Limits()).next_fold(snapshot), IntervalStrategy(Limits()).due_folds(snapshot)
    assert following.turns == (1, 2, 3)
    assert following.turns_left == max(0, 3 - complete)
    assert following.is_due == bool(due)
    if due:
        assert (following.original_chars, following.summary_chars) == (due[0].original_chars, due[0].target_chars)


def test_a_block_knows_what_stands_right_before_it_and_the_turns_of_its_messages() -> None:
    turns = [plain_turn(number, LONG) for number in range(1, 7)]
    first, second = IntervalStrategy(Limits()).due_folds(snapshot_of(turns))
    assert (first.before, first.message_turns) == ("", (1, 1, 2, 2, 3, 3))
    assert (second.before, second.message_turns) == (f"A3 {LONG}".strip(), (4, 4, 5, 5, 6, 6))
    folded = snapshot_of(turns[3:], [adopted(first, "앞 요약")])
    (second,) = IntervalStrategy(Limits()).due_folds(folded)
    assert second.before == "앞 요약"


def test_a_prepared_fold_is_not_thrown_away_because_the_record_before_it_changed() -> None:
    def key(summary: str) -> str:
        snapshot = snapshot_of([plain_turn(n, LONG) for n in (4, 5, 6)], [record_of((1, 2, 3), summary)])
        (spec,) = IntervalStrategy(Limits()).due_folds(snapshot)
        assert spec.before == summary
        return source_key(spec, model="m", prompt_version="2")

    assert key("앞 요약") == key("고친 앞 요약")


def test_a_short_block_stands_verbatim_and_only_a_block_does() -> None:
    (short,) = IntervalStrategy(Limits()).due_folds(snapshot_of([plain_turn(n, "가" * 44) for n in (1, 2, 3)]))
    assert (short.source_chars, short.stands_verbatim) == (282, True)
    (long,) = IntervalStrategy(Limits()).due_folds(snapshot_of([plain_turn(n, "가" * 47) for n in (1, 2, 3)]))
    assert (long.source_chars, long.stands_verbatim) == (300, False)
    assert not replace(short, kind="merge").stands_verbatim


def test_a_front_takes_room_from_the_records() -> None:
    records = [record_of((3 * k + 1, 3 * k + 2, 3 * k + 3), "요약 " * 600, record_id=f"r{k}") for k in range(4)]
    snapshot = snapshot_of([plain_turn(13, LONG)], records)
    assert snapshot.within(6_000).input_tokens == 6_000
    assert IntervalStrategy(Limits()).due_folds(snapshot.within(6_000)) == ()
    (merge,) = IntervalStrategy(Limits()).due_folds(replace(snapshot, front_tokens={"front": 2_000}).within(6_000))
    assert merge.kind == "merge"
    # What was made for a larger model is cut for this one: it never takes all the room.
    crowded = replace(snapshot, front_tokens={"front": 90_000, "client": 900}, pin_tokens=4_000)
    assert crowded.within(6_000).input_tokens == 6_000 - 2_000 - 900 - 750
