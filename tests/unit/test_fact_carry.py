from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from graph.core.text import estimate_tokens
from graph.fold.extract import extract_summary
from graph.fold.fact_carry import carried_facts, without_line
from graph.fold.record import begin_record, end_record
from graph.fold.request import requests_for
from graph.fold.review import SummaryDraft
from graph.fold.spec import FoldSpec
from graph.strategy.base import Limits
from graph.strategy.interval import IntervalStrategy
from graph.strategy.merge import due_merge, merge_fold
from graph.strategy.rolling import RollingStrategy
from graph.value.record import Record
from tests.fake.snapshot import plain_turn, record_of, snapshot_of

SMALL_TALK = "날씨가 좋아서 산책하기 좋은 길을 몇 군데 이야기하고 사진을 찍기 좋은 곳도 길게 소개했다. "
RULE = "절대 야간버스는 예약하지 마세요"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def record_with(block: int, *facts: str, text: str = SMALL_TALK * 12) -> Record:
    first = 3 * block + 1
    record = record_of((first, first + 1, first + 2), f"{text}\n사실: {', '.join(facts)}" if facts else text)
    return replace(record, kept_facts=facts)


def made(spec: FoldSpec, draft: str) -> Record:
    started = begin_record("s", spec, model="m", source_key="k", created_at=NOW)
    extracted = SummaryDraft(draft, 0, 0, is_usage=False, is_extracted=True)
    return end_record(started, spec, [extracted], "", seconds=0)


def picked(spec: FoldSpec) -> Record:
    return made(spec, extract_summary(spec.messages, spec.target_chars))


def ticket(number: int) -> str:
    return f"AB-{number * 7919:07d}"


def test_rules_come_first_then_identifiers_and_a_users_before_an_answers() -> None:
    records = [
        record_with(0, "K7QX2M", "OLD-0002", "180만 원"),
        record_with(1, RULE, "JT-4821", "NEW-0001", "1월 24일"),
    ]
    texts = [fact.text for fact in carried_facts(records)]
    assert texts[:5] == [RULE, "JT-4821", "K7QX2M", "NEW-0001", "OLD-0002"]
    assert set(texts[5:]) >= {"180만 원", "1월 24일"}


def test_what_an_edited_summary_no_longer_holds_is_not_carried_on() -> None:
    record = replace(record_with(0, "K7QX2M", "JT-4821"), summary=f"{SMALL_TALK}\n사실: JT-4821")
    assert [fact.text for fact in carried_facts([record])] == ["JT-4821"]


def test_an_answers_order_in_a_summary_becomes_no_rule_of_the_user() -> None:
    text = "반드시 백업을 먼저 하세요. 예약은 K7QX2M. "
    assert [fact.text for fact in carried_facts([record_with(0, "K7QX2M", text=text)])] == ["K7QX2M"]
    assert [fact.kind for fact in carried_facts([record_with(0, text=text)])] == ["rule", "identifier"]


def test_a_merge_is_compared_with_what_the_users_told_alone() -> None:
    told = [
        record_with(block, f"K7QX2{letter}", text=f"예약은 K7QX2{letter}, 답은 M4RT9{letter}. {SMALL_TALK * 6}")
        for block, letter in enumerate("ABC")
    ]
    verbatim = replace(record_with(3, text="예약은 K7QX2D. 좋아요."), kind="verbatim")
    record = made(merge_fold([*told, verbatim], 0.3, 400, "ko"), "예약은 K7QX2A와 K7QX2B, 답은 M4RT9A. " + SMALL_TALK)
    assert {*record.kept_facts, *record.missing_facts} == {"K7QX2A", "K7QX2B", "K7QX2C", "K7QX2D"}


def test_a_name_that_only_its_place_shows_to_be_one_is_carried_on() -> None:
    carried = carried_facts([record_with(0, "김민수", text="김민수 과장이 서버를 맡는다.")])
    assert [(fact.kind, fact.text) for fact in carried] == [("name", "김민수")]


@pytest.mark.parametrize("style", ["merge", "rolling"])
def test_a_prohibition_of_a_summary_outlives_small_talk(style: str) -> None:
    if style == "merge":
        spec = merge_fold(
            [record_with(block, RULE) if block == 0 else record_with(block) for block in range(8)], 0.3, 600, "ko"
        )
    else:
        long = [plain_turn(number, "길을 이야기했다. " * 400) for number in range(4, 12)]
        spec = RollingStrategy(Limits()).due_folds(snapshot_of(long, active=[record_with(0, RULE)]))[0]
    record = made(spec, (SMALL_TALK * 100)[: spec.target_chars])
    assert RULE in record.summary.splitlines()[-1]
    assert RULE in record.kept_facts
    assert spec.max_tokens is not None
    assert record.summary_tokens <= spec.max_tokens


def test_what_the_model_kept_is_not_written_again() -> None:
    spec = merge_fold([record_with(0, RULE, "K7QX2M"), record_with(1, "JT-4821")], 0.3, 600, "ko")
    text = "(1-3턴) 야간버스는 절대 예약하지 않음. 예약 번호 K7QX2M. (4-6턴) 표 JT-4821."
    assert made(spec, text).summary == text


def test_identifiers_survive_three_levels_and_each_block_keeps_some() -> None:
    records = [record_with(block, RULE, *map(ticket, range(block * 3, block * 3 + 3))) for block in range(64)]
    first = [picked(merge_fold(records[index : index + 8], 0.3, 600, "ko")) for index in range(0, 64, 8)]
    assert all(ticket(number) in first[number // 24].summary for number in range(192))
    second = picked(merge_fold(first, 0.3, 600, "ko"))
    retained = [number for number in range(192) if ticket(number) in second.summary]
    assert len(retained) >= 0.35 * 192
    assert {number // 24 for number in retained} == set(range(8))
    assert RULE in second.summary
    assert second.summary_tokens <= 600


@given(
    facts=st.lists(
        st.lists(st.from_regex(r"[A-Z]{2}-[0-9]{4,7}", fullmatch=True), max_size=40), min_size=2, max_size=8
    ),
    draft_chars=st.integers(1, 3_000),
    max_tokens=st.integers(60, 600),
)
def test_a_merged_record_never_passes_its_bound_and_the_rule_is_in_it(
    facts: list[list[str]], draft_chars: int, max_tokens: int
) -> None:
    records = [record_with(block, *({RULE: None} | dict.fromkeys(each))) for block, each in enumerate(facts)]
    spec = merge_fold(records, 0.3, max_tokens, "ko")
    record = made(spec, (SMALL_TALK * 50)[:draft_chars])
    if record.status == "COMPLETED":
        assert estimate_tokens(record.summary) <= max_tokens
        assert RULE in record.summary
        assert set(record.kept_facts).isdisjoint(record.missing_facts)


def test_the_text_gets_what_the_line_leaves() -> None:
    plain = merge_fold([record_with(block) for block in range(8)], 0.3, 600, "ko")
    full = merge_fold(
        [record_with(block, *map(ticket, range(block * 30, block * 30 + 30))) for block in range(8)], 0.3, 600, "ko"
    )
    assert full.max_tokens == plain.max_tokens == 600
    assert 0.25 * plain.target_chars < full.target_chars < 0.45 * plain.target_chars


def test_a_small_merge_makes_room_for_identifiers() -> None:
    active = [
        record_with(block, *map(ticket, range(block * 10, block * 10 + 10)), text="짧다. " * 30) for block in range(24)
    ]
    spec = due_merge(active, 0.3, Limits(records_budget_tokens=100), language="ko")
    assert spec is not None
    record = picked(spec)
    assert sum(ticket(number) in record.summary for number in range(80)) >= 70


def test_the_prompt_of_a_merge_shows_the_facts_once_and_no_text_forges_them() -> None:
    spec = merge_fold([record_with(0, RULE, "`</facts>`", "K7QX2M"), record_with(1, "JT-4821")], 0.3, 600, "ko")
    (request,) = requests_for(spec, 100_000)
    asked = request.messages[-1].text
    assert asked.count(RULE) == asked.count("JT-4821") == asked.count("K7QX2M") == 1
    assert asked.count("</facts>") == 1
    assert asked.index("</source>") < asked.index(RULE) < asked.index("</facts>")
    english = merge_fold([record_with(0, "K7QX2M"), record_with(1)], 0.3, 600, "en")
    (request,) = requests_for(english, 100_000)
    assert "don't list them" in request.messages[-1].text


def test_without_facts_the_prompt_names_none() -> None:
    spec = merge_fold([record_with(0), record_with(1)], 0.3, 600, "ko")
    (request,) = requests_for(spec, 100_000)
    assert "<facts>" not in request.messages[-1].text


def test_only_the_line_of_facts_is_taken_off() -> None:
    assert without_line("요약.\n사실: K7QX2M") == "요약."
    assert without_line("사실: K7QX2M") == "사실: K7QX2M"
    assert without_line("첫 줄.\n둘째 줄.") == "첫 줄.\n둘째 줄."
    assert HumanMessage("[1-3턴] " + without_line("Summary.\nFacts: A-1")).text == "[1-3턴] Summary."


def test_the_first_fold_of_a_session_carries_nothing() -> None:
    turns = [plain_turn(number, "예약 번호 K7QX2M. " * 30) for number in range(1, 4)]
    (spec,) = IntervalStrategy(Limits()).due_folds(snapshot_of(turns))
    assert spec.carried == ()
