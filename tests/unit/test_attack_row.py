from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from bench.attack.bystander import Said, lost_of, pieces_of
from bench.attack.row import OUTAGE, STRANGER, Bounds, Row, line
from bench.attack.wire import frame

HELD: Final = Row("any", Bounds(), before=150, peak=200, held=20, health=0.1, turns=2)


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({}, []),
        ({"peak": 641}, ["peak over 640 MB"]),
        ({"held": 321}, ["holds over 320 MB"]),
        ({"bounds": STRANGER, "peak": 160, "held": 81}, ["holds over 80 MB"]),
        ({"health": 2.01}, ["/health over 2 s"]),
        ({"health_errors": 3}, ["/health failed 3 times"]),
        ({"failed": ["deadline", "deadline"]}, ["others' turns failed: deadline"]),
        ({"failed": ["deadline"], "bounds": OUTAGE}, []),
        ({"turns": 0}, ["no turn of another user was seen"]),
        ({"lost": 1, "bounds": OUTAGE}, ["1 turns lost"]),
        ({"ended": "hangs", "health_errors": 3}, ["hangs"]),
        ({"wrong": ["a file too many"]}, ["a file too many"]),
        ({"left_out": "no nginx", "turns": 0}, []),
    ],
)
def test_a_row_tells_each_bound_that_is_passed(changes: dict[str, Any], problems: list[str]) -> None:
    row = replace(HELD, **changes)
    assert row.problems == problems
    assert row.figures()["is_met"] is not bool(problems)
    assert line(row).endswith("; ".join(problems) or ("no nginx" if row.left_out else "holds"))


@pytest.mark.parametrize(
    ("said", "stored", "lost"),
    [
        (Said("q", "all of it"), ["all of it"], 0),
        (Said("q", "all of it"), ["all of"], 1),
        (Said("q", "all of it"), ["all of it, and more"], 1),
        (Said("q", "all of it"), [], 1),
        (Said("q", "all", "deadline"), ["all of"], 0),
        (Said("q", "all of", "deadline"), ["all"], 1),
        (Said("q", "all of", "deadline"), [], 1),
        (Said("q", "", "server_busy"), [], 0),
    ],
)
def test_a_turn_is_lost_if_what_was_read_of_it_is_not_stored(said: Said, stored: list[str], lost: int) -> None:
    turns = [{"user_text": "q", "answer_text": text} for text in stored]
    assert lost_of([said], [{"user_text": "other", "answer_text": None}, *turns]) == lost


def test_pieces_and_errors_of_a_stream() -> None:
    lines = [
        'data: {"choices":[{"delta":{"content":"a"}}]}',
        "",
        'data: {"choices":[{"delta":{}}]}',
        'data: {"error":{"code":"deadline"}}',
        "data: [DONE]",
    ]
    assert [*pieces_of(lines)] == [("a", ""), ("", "deadline")]


@pytest.mark.parametrize(("size", "length"), [(0, 2), (125, 2), (126, 4), (65_535, 4), (65_536, 10)])
def test_a_frame_has_the_length_that_the_protocol_wants(size: int, length: int) -> None:
    assert len(frame(bytes(size), 2, is_last=True)) == length + 4 + size
