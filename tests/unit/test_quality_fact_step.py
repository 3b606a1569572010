from __future__ import annotations

from langchain_core.messages import HumanMessage

from bench.quality.fact_step import keep

FILLER = "그 밖에 다른 이야기를 조금 더 이어서 합니다. " * 6
TALK = [
    HumanMessage(f"예약 번호는 KX-778{number}이고 예산은 {number}20만 원입니다. {FILLER}") for number in range(1, 8)
]


def test_facts_of_complete_blocks_are_counted() -> None:
    kept = keep([TALK, TALK[:2]], 0.5, "ko")
    assert kept.folds == 2
    assert kept.facts == kept.without == kept.with_step == 12


def test_a_shorter_fold_keeps_fewer_and_the_step_takes_none_away() -> None:
    kept = keep([TALK], 0.1, "ko")
    assert kept.facts == 12
    assert kept.without < 12
    assert kept.without <= kept.with_step
