"""Days of messages, of labels, and of words such as "yesterday"."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.core.day import day_of, days_meant, has_relative_day, range_of, written, zone_named

WEDNESDAY = "2026-11-25"


@pytest.mark.parametrize(
    ("said", "days"),
    [
        ("어제 왔고 내일 가요", {"2026-11-24", "2026-11-26"}),
        ("그저께요, 모레요", {"2026-11-23", "2026-11-27"}),
        ("다음 주 월요일에 봐요", {"2026-11-30"}),
        ("지난주 금요일이었어요", {"2026-11-20"}),
        ("이번 주 토요일", {"2026-11-28"}),
        ("금요일까지요", {"2026-11-27", "2026-11-20"}),
        ("사흘 뒤, 2주 후, 10일 전", {"2026-11-28", "2026-12-09", "2026-11-15"}),
        ("오늘내일 하는", {"2026-11-25"}),
        ("I came yesterday and leave tomorrow", {"2026-11-24", "2026-11-26"}),
        ("the day after tomorrow", {"2026-11-27"}),
        ("next Monday", {"2026-11-30"}),
        ("next Friday", {"2026-11-27", "2026-12-04"}),
        ("last Friday", {"2026-11-20"}),
        ("in two weeks, 3 days ago, a week from now", {"2026-12-09", "2026-11-22", "2026-12-02"}),
        ("two weeks of leave, 3일간, 모레기념관", set()),
    ],
)
def test_a_word_for_a_day_is_counted_from_the_day_when_it_was_said(said: str, days: set[str]) -> None:
    assert set(days_meant(said, WEDNESDAY)) >= days
    assert has_relative_day(said) or not days


@given(st.text(), st.dates())
def test_any_text_of_any_day_is_read(text: str, day: object) -> None:
    assert list(days_meant(f"{text} tomorrow 999일 전", str(day))) is not None


def test_a_day_is_that_of_the_users_zone() -> None:
    late = datetime(2026, 11, 25, 20, 0, tzinfo=UTC)
    assert [day_of(late, zone_named(name)) for name in ("", "Asia/Seoul", "Nowhere/None", "../x")] == [
        WEDNESDAY,
        "2026-11-26",
        WEDNESDAY,
        WEDNESDAY,
    ]


@pytest.mark.parametrize(
    ("days", "text"),
    [
        ([], ""),
        (["", WEDNESDAY], WEDNESDAY),
        ([WEDNESDAY, "2026-11-27", "2026-11-26"], "2026-11-25 ~ 11-27"),
        (["2026-12-30", "2027-01-02"], "2026-12-30 ~ 2027-01-02"),
    ],
)
def test_the_days_of_several_messages_are_one_or_from_the_first_to_the_last(days: list[str], text: str) -> None:
    assert written(range_of(days)) == text


def test_a_day_may_be_told_with_its_weekday() -> None:
    assert written(WEDNESDAY, "ko") == "2026-11-25 (수)"
    assert written(WEDNESDAY, "en") == "2026-11-25 (Wed)"
