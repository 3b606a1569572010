from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from component.format import (
    count_lines,
    day_group,
    escape_label,
    format_about,
    format_count,
    format_percent,
    format_tokens,
    format_turns,
    group_sessions,
    zone_of,
)
from graph.value.view import SessionItem

NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)  # the 21st, five in the morning, in Seoul


def test_turns_read_as_people_write_them() -> None:
    assert format_turns((1, 2, 3)) == "1-3"
    assert format_turns((7,)) == "7"


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1500, "1,500"),
        (9999, "9,999"),
        (10_000, "10,000"),
        (-945, "−945"),
        (-12_345, "−12,345"),
    ],
)
def test_counts_have_separators_from_a_thousand_on(number: int, shown: str) -> None:
    assert format_count(number) == shown


def test_estimate_is_marked() -> None:
    assert format_tokens(1416, is_usage=False) == "≈1,416"
    assert format_tokens(1416, is_usage=True) == "1,416"


@pytest.mark.parametrize(("part", "whole", "percent"), [(0, 100, 0), (1, 10_000, 1), (50, 100, 50), (5, 0, 0)])
def test_percent(part: int, whole: int, percent: int) -> None:
    assert format_percent(part, whole) == percent


@pytest.mark.parametrize(
    ("day", "hour", "group"),
    [
        (20, 16, "today"),
        (20, 14, "yesterday"),
        (19, 14, "last_week"),
        (13, 16, "last_week"),
        (13, 14, "older"),
        (22, 0, "today"),
    ],
)
def test_days_are_those_of_the_users_zone(day: int, hour: int, group: str) -> None:
    moment = datetime(2026, 11, day, hour, tzinfo=UTC)
    assert day_group(moment, NOW, zone_of("Asia/Seoul")) == group


@pytest.mark.parametrize("name", [None, "", "Nowhere/City", "../etc", "America"])
def test_unknown_zone_is_utc(name: str | None) -> None:
    assert NOW.astimezone(zone_of(name)).utcoffset() == NOW.utcoffset()


def test_groups_keep_the_order_and_leave_out_the_empty() -> None:
    items = [
        SessionItem(name, name, datetime(2026, 11, day, tzinfo=UTC), 1, is_running=False)
        for name, day in (("a", 20), ("b", 20), ("c", 1))
    ]
    assert grouped(items) == [("today", [["a"], ["b"]]), ("older", [["c"]])]


def grouped(items: list[SessionItem]) -> list[tuple[str, list[list[str]]]]:
    groups = group_sessions(items, NOW, UTC)
    return [(name, [[item.session_id for item in family] for family in families]) for name, families in groups]


def test_branches_stand_behind_their_origin_where_the_newest_of_them_does() -> None:
    def item(name: str, day: int, origin: str = "", *, is_pinned: bool = False) -> SessionItem:
        moment = datetime(2026, 11, day, tzinfo=UTC)
        return SessionItem(name, name, moment, 1, is_running=False, is_pinned=is_pinned, forked_from=origin)

    branch, twig, other = item("branch", 20, "origin"), item("twig", 19, "branch"), item("other", 20, "gone")
    origin = item("origin", 1)
    assert grouped([branch, other, twig, origin]) == [("today", [["origin", "branch", "twig"], ["other"]])]
    pinned = item("pinned", 2, "origin", is_pinned=True)
    assert grouped([pinned, origin]) == [("pinned", [["pinned"]]), ("older", [["origin"]])]
    assert grouped([item("a", 20, "b"), item("b", 20, "a")])[0][0] == "today"


def test_label_shows_marks_as_they_are() -> None:
    assert escape_label("a\n*b* [c](d) :red[e] $f$") == r"a \*b\* \[c\](d) \:red\[e\] \$f\$"
    assert [escape_label(text) for text in ("1. a", "2) b", "- c", "# d", "> e", "3.14 - f")] == [
        r"1\. a",
        r"2\) b",
        r"\- c",
        r"\# d",
        r"\> e",
        r"3\.14 - f",
    ]


@given(st.text())
def test_escaped_label_keeps_every_visible_character(text: str) -> None:
    assert re.sub(r"\\(.)", r"\1", escape_label(text)) == " ".join(text.split())


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (7, "7"), (17, "17"), (120, "120"), (372, "370"), (1240, "1,200"), (6000, "6,000"), (53_332, "53,000")],
)
def test_a_forecast_has_two_digits(number: int, shown: str) -> None:
    assert format_about(number) == shown


def test_lines_are_counted_by_the_width_of_the_signs() -> None:
    assert count_lines("가" * 40, 20) == 2
    assert count_lines("a" * 40, 20) == 1
    assert count_lines("하나\n\n셋", 20) == 3
    assert count_lines("", 20) == 0
