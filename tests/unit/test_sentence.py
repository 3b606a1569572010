from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.core.sentence import content_terms, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("안녕하세요. 저는 하늘입니다! 왜요?", ["안녕하세요.", "저는 하늘입니다!", "왜요?"]),
        ("끝났습니다.그리고 시작합니다.", ["끝났습니다.", "그리고 시작합니다."]),
        ("원주율은 3.14이고 v1.2.3을 씁니다. https://a.b/c.html?x=1.5 참고.", None),
        ("마감은 2026. 3. 15. 입니다. 꼭요.", ["마감은 2026. 3. 15. 입니다.", "꼭요."]),
        (
            "Dr. Smith of the U.S. Army, e.g. him, agreed. Fine.",
            ["Dr. Smith of the U.S. Army, e.g. him, agreed.", "Fine."],
        ),
        ("It ships in 2.0.1. Is it ok? Yes.", ["It ships in 2.0.1.", "Is it ok?", "Yes."]),
        ("1. first point\n2. second point", ["1. first point", "2. second point"]),
        ("- one\n* two\n## three\n> four\n---\n\n", ["one", "two", "three", "four"]),
        ("Wait... what?! No…", ["Wait...", "what?!", "No…"]),
        ("今日は晴れ。明日は雨。", ["今日は晴れ。", "明日は雨。"]),
        ('He said "done." Then left.', ['He said "done."', "Then left."]),
        ("a    b\t c", ["a b c"]),
    ],
)
def test_sentences_end_where_people_end_them(text: str, sentences: list[str] | None) -> None:
    expected = sentences or ["원주율은 3.14이고 v1.2.3을 씁니다.", "https://a.b/c.html?x=1.5 참고."]
    assert split_sentences(text) == expected


@given(st.text(alphabet="가나다라. !?a1\n-", max_size=300))
def test_no_letter_is_lost(text: str) -> None:
    kept = "".join(split_sentences(text))
    assert [c for c in kept if c.isalnum()] == [c for c in text if c.isalnum()]


@pytest.mark.parametrize("text", ["." * 50_000, "1. " * 20_000, "a." * 30_000, "다." * 30_000])
def test_long_runs_of_marks_are_split_in_passing(text: str) -> None:
    assert split_sentences(text)


def test_korean_endings_do_not_hide_a_shared_word() -> None:
    assert "예산" in content_terms("예산이 얼마였지?") & content_terms("예산은 120만 원입니다.")


def test_words_without_content_are_no_terms() -> None:
    assert content_terms("What is the") == set()
    assert not content_terms("무엇을 했습니까?") & {"무엇", "했습", "습니"}


def test_identifiers_stay_whole_and_plurals_meet_their_singular() -> None:
    assert {"bill-442", "src/app.py", "budget", "3.14"} <= content_terms("BILL-442 in src/app.py: budgets 3.14")
