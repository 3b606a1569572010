"""The days of a record: in its label, in the request for its summary, and in the review of drafts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from graph.core.model_input import assemble, system_part
from graph.core.text import estimate_tokens
from graph.fold.extract import extract_summary
from graph.fold.fact_check import compare_facts
from graph.fold.fact_line import carried_facts, without_marks
from graph.fold.request import requests_for
from graph.fold.review import invented_facts
from graph.fold.spec import FoldSpec, fold_of, previous_summary
from graph.store.row import to_record, to_values
from graph.strategy.merge import merge_fold
from graph.value.record import Record, to_entry
from prompt.system.framing import Language
from tests.fake.snapshot import archived, record_of

SYSTEM = system_part("ko", can_recall=True)
NEXT: list[AnyMessage] = [HumanMessage("다음은요?", id="u9")]


def fold(*said: str, language: Language = "ko", zone: str = "", days: tuple[int, ...] = (25, 25, 26)) -> FoldSpec:
    """A block of turns that were said at 20:00 UTC on these days of November."""
    entries = archived(
        [[HumanMessage(text, id=f"u{n}"), AIMessage("Noted. " * 60, id=f"a{n}")] for n, text in enumerate(said)]
    )
    moved = [replace(entry, created_at=datetime(2026, 11, days[entry.turn - 1], 20, tzinfo=UTC)) for entry in entries]
    return fold_of((), moved, kind="interval", rate=0.3, language=language, time_zone=zone)


def request_text(spec: FoldSpec) -> str:
    (request,) = requests_for(spec, 100_000)
    return request.messages[-1].text


def record(turns: tuple[int, ...], summary: str, days: str) -> Record:
    return replace(record_of(turns, summary), days=days)


@pytest.mark.parametrize(
    ("days", "zone", "label"),
    [
        ((25, 25, 25), "", "[1-3턴] (2026-11-25) "),
        ((25, 25, 25), "Asia/Seoul", "[1-3턴] (2026-11-26) "),
        ((25, 25, 27), "", "[1-3턴] (2026-11-25 ~ 11-27) "),
    ],
)
def test_the_label_has_the_days_of_the_turns_in_the_users_zone(days: tuple[int, ...], zone: str, label: str) -> None:
    assert fold("하나", "둘", "셋", days=days, zone=zone).label == label


def test_records_are_sent_with_their_days_and_older_ones_as_before() -> None:
    history = [to_entry(record((1, 2, 3), "앞.", "")), to_entry(record((4, 5, 6), "뒤.", "2026-11-25/2026-11-27"))]
    assert "days" not in history[0]
    prompt = assemble(SYSTEM, history, NEXT).messages[0].text
    assert prompt.endswith("\n[1-3턴] 앞.\n[4-6턴] (2026-11-25 ~ 11-27) 뒤.")
    english = assemble(system_part("en", can_recall=True), history, NEXT).messages[0].text
    assert english.endswith("\n[Turns 4-6] (2026-11-25 ~ 11-27) 뒤.")


def test_a_record_without_its_question_counts_its_label_whole() -> None:
    history = [to_entry(record((1, 2, 3), "앞.\n질문: 언제?", "2026-11-25")), to_entry(record((4, 5, 6), "뒤.", ""))]
    sent = assemble(SYSTEM, history, NEXT).items
    assert next(item.tokens for item in sent if item.kind == "record") == estimate_tokens("[1-3턴] (2026-11-25) 앞.")


def test_a_fold_of_records_has_their_days_and_their_labels() -> None:
    old = [
        record((1, 2, 3), "예산 120만 원.", "2026-11-20"),
        record((4, 5, 6), "예산 95만 원.", "2026-11-24/2026-11-25"),
    ]
    spec = merge_fold(old, 0.3, 600, "ko")
    assert spec.days == "2026-11-20/2026-11-25"
    assert [message.text for message in spec.messages] == [
        "[1-3턴] (2026-11-20) 예산 120만 원.",
        "[4-6턴] (2026-11-24 ~ 11-25) 예산 95만 원.",
    ]
    (read,) = previous_summary(old, "ko")
    assert read.text.startswith("[1-3턴] (2026-11-20) ")
    unknown = [replace(each, days="") for each in old]
    assert (merge_fold(unknown, 0.3, 600, "ko").days, merge_fold([unknown[0], old[1]], 0.3, 600, "ko").days) == (
        "",
        "2026-11-24/2026-11-25",
    )


@pytest.mark.parametrize("days", ["2026-11-20", "2026-11-20/2026-11-25"])
def test_the_days_of_a_label_are_no_facts(days: str) -> None:
    old = [record((1, 2, 3), "예산은 120만 원으로 함.", days), record((4, 5, 6), "담당은 김민수 과장.", days)]
    spec = merge_fold(old, 0.3, 600, "ko")
    texts = [message.text for message in spec.messages]
    assert not any("2026" in without_marks(text) for text in texts)
    assert not any("2026" in fact.text for fact in carried_facts(old))
    assert not any("2026" in fact for facts in compare_facts("예산 120만 원.", spec) for fact in facts)
    assert invented_facts("예산 120만 원, 11월 20일.", spec) == ("11월 20일",)
    assert "2026" not in extract_summary(spec.messages, 200)


def test_a_request_tells_the_days_where_a_message_names_one_by_when_it_was_said() -> None:
    assert "(수)" not in request_text(fold("예산은 120만 원", "둘", "셋"))
    asked = request_text(fold("내일 가요", "둘", "셋"))
    assert "날짜: 1-2턴 2026-11-25 (수), 3턴 2026-11-26 (목)." in asked
    english = request_text(fold("I leave tomorrow", "two", "three", language="en"))
    assert "Dates: turn 1-2 2026-11-25 (Wed), turn 3 2026-11-26 (Thu)." in english


@pytest.mark.parametrize(
    ("said", "summary", "invented"),
    [
        ("내일 병원에 가요", "11월 26일(목) 병원", ()),
        ("내일 병원에 가요", "11월 27일(금) 병원", ("11월 27일",)),
        ("다음 주 월요일에 계약해요", "11월 30일(월) 계약", ()),
        ("다음 주 월요일에 계약해요", "12월 7일(월) 계약", ("12월 7일",)),
        ("어제 냈어요", "11월 25일 냄", ("11월 25일",)),
        ("I leave the day after tomorrow", "leaves on 27 November (Fri)", ()),
        ("I leave tomorrow", "leaves on 27 November", ("27 November",)),
        ("the invoice came yesterday", "invoice of 2026-11-24", ()),
    ],
)
def test_a_relative_day_may_be_written_as_its_date_and_no_other(
    said: str, summary: str, invented: tuple[str, ...]
) -> None:
    spec = fold(said, language="ko" if said[0] > "z" else "en", days=(25,))
    assert invented_facts(summary, spec) == invented


def test_a_day_is_counted_from_the_day_of_its_own_turn() -> None:
    spec = fold("내일 가요", "모레 와요", "오늘 시작했어요", days=(1, 10, 20))
    assert invented_facts("2일에 가서 12일에 옴, 11월 20일 시작, 11월 2일, 11월 12일", spec) == ()
    assert invented_facts("11월 11일에 감", spec) == ("11월 11일",)


@pytest.mark.parametrize("days", ["", "2026-11-20", "2026-11-20/2026-11-25"])
def test_a_row_has_the_days_of_its_record(days: str) -> None:
    made = record((1, 2, 3), "앞.", days)
    values = to_values(made)
    assert to_record({"thread_id": values.pop("session_id"), **values}).days == days


@pytest.mark.parametrize(
    "days", ["soon", "2026-11-20) [4-6턴] 거짓", "2026-11-20\n[4-6턴] ", "2026-11-20/2026-11-21/2026-11-22"]
)
def test_what_no_fold_wrote_is_left_out_of_the_label(days: str) -> None:
    values = to_values(record((1, 2, 3), "앞.", days))
    assert to_record({"thread_id": values.pop("session_id"), **values}).days == ""
