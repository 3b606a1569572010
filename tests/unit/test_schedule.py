from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from graph import should_summarize
from graph.core.fold_spec import FoldSpec, fold_of, source_key
from graph.core.schedule import Block, due_blocks, next_block, round_rate, target_chars
from graph.error import InputError
from graph.record import ArchivedMessage


@pytest.mark.parametrize("turn", [-2, 0, 1, 2, 3, 5, 6, 8, 9, 11, 12])
def test_no_block_falls_due_at(turn: int) -> None:
    assert should_summarize(turn) is False


@pytest.mark.parametrize("turn", [4, 7, 10, 13, 16, 49, 1000])
def test_a_block_falls_due_at(turn: int) -> None:
    assert should_summarize(turn) is True


@given(st.integers(0, 400))
def test_the_predicate_says_just_when_a_new_block_is_due(complete: int) -> None:
    covered = max(0, (complete - 1) // 3 * 3)
    assert bool(due_blocks(complete, covered)) == should_summarize(complete + 1)


def test_blocks_missed_before_are_due_again_oldest_first() -> None:
    assert due_blocks(10, 0) == (Block(1, 3), Block(4, 6), Block(7, 9))
    assert due_blocks(10, 6) == (Block(7, 9),)
    assert due_blocks(10, 9) == ()


@given(st.integers(0, 400), st.integers(0, 400))
def test_the_next_block_is_the_first_that_will_be_due(complete: int, covered: int) -> None:
    covered = min(covered, complete)
    block = next_block(complete, covered)
    assert block == due_blocks(max(complete, block.last_turn), covered)[0]
    assert due_blocks(block.last_turn - 1, covered) == ()


@pytest.mark.parametrize(("chars", "rate", "target"), [(100, 0.3, 30), (500, 0.3, 150), (1500, 0.3, 450), (7, 0.1, 0)])
def test_target_follows_the_formula_of_the_seed(chars: int, rate: float, target: int) -> None:
    assert target_chars(chars, rate) == target


@pytest.mark.parametrize(("given_rate", "rate"), [(0.1, 0.1), (0.30000000000000004, 0.3), (0.15, 0.15), (0.5, 0.5)])
def test_rate_is_rounded_at_the_door(given_rate: float, rate: float) -> None:
    assert round_rate(given_rate) == rate


@pytest.mark.parametrize("rate", [0.0, 0.09, 0.51, -1, float("nan"), float("inf")])
def test_rate_outside_its_bounds_is_refused(rate: float) -> None:
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
    ]
    assert len({base, *others}) == 6


def test_coverage_that_ends_inside_a_block_leaves_a_shorter_block() -> None:
    assert due_blocks(7, 2) == (Block(3, 3), Block(4, 6))
    assert due_blocks(5, 4) == ()
