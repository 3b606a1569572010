from __future__ import annotations

from dataclasses import replace

import pytest

from graph.core.cost import Saved, net_tokens
from graph.fold.fact_check import class_of, count_facts, left_out_at
from graph.value.record import LedgerLine
from tests.fake.snapshot import record_of

RULE = "계약서에는 절대 서명하지 마세요"
KEPT = (RULE, "12월 3일", "900만 원", "AK-3301", "/var/log/emr.log", "송지혜")


@pytest.mark.parametrize(
    ("fact", "name"),
    [
        (RULE, "rule"),
        ("never use tenacity", "rule"),
        ("앞으로 존댓말로 답해 주세요", "rule"),
        ("저는 구글 문서보다 워드를 선호해요", "preference"),
        ("let's go with option 2", "decision"),
        ("900만 원", "number"),
        ("AK-3301", "number"),
        ("12월 3일", "date"),
        ("/var/log/emr.log", "path"),
        ("https://example.org/a", "path"),
    ],
)
def test_each_fact_has_a_class(fact: str, name: str) -> None:
    assert class_of(fact) == name


def test_what_the_line_says_counts_as_kept() -> None:
    record = replace(
        record_of((1, 2, 3), "요약.\n사실: 하나은행 110-234-567890"),
        kept_facts=KEPT[:3],
        missing_facts=("110-234-567890", "AK-3301"),
    )
    counts = {count.name: (count.kept, count.total) for count in count_facts([record, record])}
    assert counts == {"rule": (2, 2), "date": (2, 2), "number": (4, 6)}


def test_a_shorter_length_leaves_out_the_lightest_facts_and_none_that_the_ledger_keeps() -> None:
    record = replace(record_of((1, 2, 3), "요약."), original_chars=400, kept_facts=KEPT)
    record = replace(record, ledger=(LedgerLine(1, "negation", RULE),))
    assert left_out_at(record, 0.5) == ()
    shorter = [left_out_at(record, rate) for rate in (0.3, 0.15, 0.1)]
    assert [len(facts) for facts in shorter] == sorted(len(facts) for facts in shorter)
    assert RULE not in shorter[-1]
    assert shorter[-1]


def test_the_net_is_in_input_tokens_at_full_price() -> None:
    plain, cached = Saved("m", 10_000, 500, is_cached=False), Saved("m", 10_000, 500, is_cached=True)
    assert net_tokens([plain], input_tokens=2_000, output_tokens=300) == 10_000 - 2_000 - 1_200
    assert net_tokens([cached], input_tokens=2_000, output_tokens=300) == 1_000 - 450 - 2_000 - 1_200
