from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from graph import should_summarize
from graph.fold.spec import Block, FoldSpec, due_blocks, fold_of, next_block, round_rate, source_key, target_chars
from graph.value.error import InputError
from graph.value.record import ArchivedMessage


def test_block_falls_due_at_every_third_turn_from_the_fourth_on() -> None:
    turns = [-2, 0, *range(1, 17), 49, 1000]
    assert [turn for turn in turns if should_summarize(turn)] == [4, 7, 10, 13, 16, 49, 1000]


@given(st.integers(0, 400))
def test_the_predicate_says_just_when_a_new_block_is_due(complete: int) -> None:
    covered = max(0, (complete - 1) // 3 * 3)
    assert bool(due_blocks(complete, covered)) == should_summarize(complete + 1)


def test_blocks_missed_before_are_due_again_oldest_first() -> None:
    assert due_blocks(10, 0) == (Block(1, 3), Block(4, 6), Block(7, 9))
    assert due_blocks(10, 6) == (Block(7, 9),)
    assert due_blocks(10, 9) == due_blocks(5, 4) == ()
    assert due_blocks(7, 2) == (Block(3, 3), Block(4, 6))  # coverage that ends inside a block leaves a shorter one


@given(st.integers(0, 400), st.integers(0, 400))
def test_the_next_block_is_the_first_that_will_be_due(complete: int, covered: int) -> None:
    covered = min(covered, complete)
    block = next_block(complete, covered)
    assert block == due_blocks(max(complete, block.last_turn), covered)[0]
    assert due_blocks(block.last_turn - 1, covered) == ()


def test_target_follows_the_formula_of_the_seed() -> None:
    assert [target_chars(chars, 0.3) for chars in (100, 500, 1500)] == [30, 150, 450]
    assert target_chars(7, 0.1) == 0


def test_rate_is_rounded_at_the_door_and_refused_outside_its_bounds() -> None:
    assert [round_rate(rate) for rate in (0.1, 0.30000000000000004, 0.15, 0.5)] == [0.1, 0.3, 0.15, 0.5]
    for rate in (0.0, 0.09, 0.51, -1, float("nan"), float("inf")):
        with pytest.raises(InputError) as refused:
            round_rate(rate)
        assert refused.value.reason == "bad_rate"


def order_of(text: str = "a", message_id: str = "1", rate: float = 0.3) -> FoldSpec:
    entry = ArchivedMessage(1, 1, 1, HumanMessage(text, id=message_id), 100, 30, datetime(2026, 1, 1, tzinfo=UTC))
    return fold_of((), [entry], kind="interval", rate=rate, language="ko")


def test_key_changes_with_all_that_a_summary_depends_on() -> None:
    base = source_key(order_of(), model="m", prompt_version="1")
    assert base == source_key(order_of(), model="m", prompt_version="1")
    others = [
        source_key(order_of(text="b"), model="m", prompt_version="1"),
        source_key(order_of(message_id="2"), model="m", prompt_version="1"),
        source_key(order_of(rate=0.35), model="m", prompt_version="1"),
        source_key(order_of(), model="n", prompt_version="1"),
        source_key(order_of(), model="m", prompt_version="2"),
        source_key(replace(order_of(), instruction="keep the prices"), model="m", prompt_version="1"),
    ]
    assert len({base, *others}) == 7
