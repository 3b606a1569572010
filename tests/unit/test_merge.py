from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from graph.core.text import estimate_tokens
from graph.fold.fact_line import carried_line
from graph.strategy.base import Limits
from graph.strategy.merge import due_merge, merge_fold
from graph.value.record import Record

LIMITS = Limits()
TEXT = "서버 이전은 10월 14일 오전 9시로 정했고 담당자는 김민수 책임이며 예산은 320만 원임. "


def record(block: int, *, level: int = 0, text: str = TEXT * 10) -> Record:
    first = 3 * block + 1
    return Record(
        id=f"r{level}-{block}",
        thread_id="s",
        turns=(first, first + 1, first + 2),
        turn_length=3,
        original_chars=1500,
        summary_chars=len(text),
        compression_rate=0.3,
        summary=text,
        kind="interval" if level == 0 else "merge",
        level=level,
        from_position=first * 2 - 1,
        to_position=first * 2 + 4,
        status="COMPLETED",
        outcome="compressed",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        model="m",
        target_chars=450,
        source_key=str(block),
        source_tokens=1000,
        summary_tokens=estimate_tokens(text),
    )


def test_nothing_is_merged_within_the_budget() -> None:
    assert due_merge([record(k, text="짧음") for k in range(100)], 0.3, LIMITS, language="ko") is None


def test_the_newest_sixteen_are_never_merged_however_large() -> None:
    assert due_merge([record(k, text=TEXT * 100) for k in range(16 + 7)], 0.3, LIMITS, language="ko") is None


def test_the_oldest_eight_become_one_of_the_next_level() -> None:
    spec = due_merge([record(k) for k in range(24)], 0.3, LIMITS, language="ko")
    assert spec is not None
    assert (spec.kind, spec.level, spec.turns) == ("merge", 1, tuple(range(1, 25)))
    assert spec.sources == tuple(f"r0-{k}" for k in range(8))
    assert spec.original_chars == 8 * 1500
    assert (spec.from_position, spec.to_position) == (1, 48)
    assert not spec.is_waited


def test_a_record_of_two_blocks_counts_as_two() -> None:
    """Twice as many turns would stay unmerged else, and twice as many be condensed into one bound."""
    double = [record(2 * k, text=TEXT * 20).with_changes(turns=tuple(range(6 * k + 1, 6 * k + 7))) for k in range(12)]
    assert due_merge(double[:11], 0.3, LIMITS, language="ko") is None
    spec = due_merge(double, 0.3, LIMITS, language="ko")
    assert spec is not None
    assert spec.turns == tuple(range(1, 25))


def test_a_merge_aims_below_its_hard_bound() -> None:
    spec = due_merge([record(k) for k in range(24)], 0.3, LIMITS, language="ko")
    assert spec is not None
    assert spec.max_tokens == int(0.35 * 8 * record(0).summary_tokens)
    assert 0.7 * spec.max_tokens < estimate_tokens((TEXT * 50)[: spec.target_chars]) < spec.max_tokens


@pytest.mark.parametrize(
    ("tokens", "level", "bound"),
    [
        (400, 0, 1_120),  # 35 % of 3,200
        (200, 0, 600),  # 35 % would be 560
        (100, 0, 400),  # half of the sources
        (1_000, 1, 600),  # however large the merges are
        (220, 1, 600),
    ],
)
def test_a_merge_is_bounded_by_its_sources_and_what_is_made_of_merges_by_600_tokens(
    tokens: int, level: int, bound: int
) -> None:
    active = [replace(record(k, level=level), summary_tokens=tokens) for k in range(8)]
    active += [replace(record(k), summary_tokens=1_000) for k in range(8, 24)]
    spec = due_merge(active, 0.3, LIMITS, language="ko")
    assert spec is not None
    assert (spec.max_tokens, spec.level) == (bound, level + 1)


def test_the_text_has_forty_characters_a_turn_beside_the_largest_line() -> None:
    """Twelve turns with as many facts as a line takes: 176 characters before, as the line took two thirds of 356."""
    numbers = [f"AB-{number * 7919:07d}" for number in range(60)]
    active = [replace(record(k, text=TEXT * 11), kept_facts=tuple(numbers[k * 15 : k * 15 + 15])) for k in range(4)]
    active = [replace(each, summary=f"{each.summary}\n사실: {' '.join(each.kept_facts)}") for each in active]
    limits = Limits(records_budget_tokens=500, newest_records=1, merged_together=4)
    spec = due_merge([*active, record(4)], 0.3, limits, language="ko")
    assert spec is not None
    assert spec.max_tokens == 600
    assert spec.target_chars >= 40 * 12
    line = carried_line(spec.carried, "ko", 600)
    assert 150 < estimate_tokens(line) <= 200


def test_the_line_of_a_merge_of_merges_may_take_two_thirds() -> None:
    """Of 192 turns with a number each, a third of 1,333 tokens held 39 %, and four such records 54 % of the input."""
    numbers = [f"AB-{number * 7919:07d}" for number in range(160)]
    texts = [" ".join(numbers[k * 20 : k * 20 + 20]) for k in range(8)]
    levels = []
    for level in (0, 1):
        spec = merge_fold(
            [record(k, level=level, text=f"{TEXT * 10}{text}.") for k, text in enumerate(texts)], 0.3, 600, "ko"
        )
        levels.append(estimate_tokens(carried_line(spec.carried, "ko", 600, level=spec.level)))
    assert 190 < levels[0] <= 200
    assert 390 < levels[1] <= 400


def test_the_margin_of_the_text_gives_way_to_forty_characters_a_turn() -> None:
    sources = [record(k, text=TEXT * 20) for k in range(8)]
    targets = [merge_fold(sources, 0.3, tokens, "ko").target_chars for tokens in (500, 700, 750, 2_000)]
    assert targets == sorted(targets)
    assert targets[0] < 40 * 24 == targets[1] == targets[2] < targets[3]


def test_levels_are_merged_among_themselves_and_the_lowest_first() -> None:
    old = [record(k, level=1) for k in range(8)]
    assert due_merge([*old, *[record(k) for k in range(8, 24)]], 0.3, LIMITS, language="ko") is not None
    both = due_merge([*old, *[record(k) for k in range(8, 32)]], 0.3, LIMITS, language="ko")
    assert both is not None
    assert both.level == 1


def test_a_thousand_turns_stay_within_a_bound_and_few_resummarisings() -> None:
    active: list[Record] = []
    largest = 0
    for block in range(333):
        active.append(record(block))
        while (spec := due_merge(active, 0.3, LIMITS, language="ko")) is not None:
            merged = replace(
                record(0, level=spec.level, text=(TEXT * 50)[: spec.target_chars]),
                id=f"m{block}-{spec.level}",
                turns=spec.turns,
            )
            index = next(k for k, entry in enumerate(active) if entry.id == spec.sources[0])
            active[index : index + len(spec.sources)] = [merged]
        if block > 100:
            largest = max(largest, sum(entry.summary_tokens for entry in active))
    assert largest < 24 * record(0).summary_tokens + 3 * 8 * LIMITS.merged_tokens
    assert max(entry.level for entry in active) <= 3
    assert [turn for entry in active for turn in entry.turns] == list(range(1, 1000))
