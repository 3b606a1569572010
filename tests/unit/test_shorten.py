from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.fold.shorten import shorten

DRAFT = (
    "(1턴) 가족 네 명이 후쿠오카에 3박으로 간다. 야간버스는 절대 타지 않는다. 숙소는 하카타역 근처가 좋다고 했다. "
    "여행에서는 맛있는 것을 많이 먹고 싶어 하고 날씨 이야기도 조금 했다. 아이들이 좋아할 곳을 여러 군데 이야기했다. "
    "(2턴) 호텔은 닛코로 정했다. 어시스턴트가 일반적인 여행 준비물을 길게 설명했다. 사진을 찍기 좋은 곳도 소개했다. "
    "(3턴) 총예산은 200만 원. 산책하기 좋은 길을 몇 군데 소개했다. 분위기 좋은 찻집도 함께 이야기했다. "
    "남은 질문: (1) 더 싼 호텔로 바꿀지 (2) 예산을 220만 원으로 올릴지?"
)
ASKED_CHARS = 180


def shortened(text: str, most_chars: int) -> str:
    return shorten(text, lambda said: len(said) <= most_chars, max_chars=most_chars, must_fit=lambda _: True)


def test_a_draft_of_1_7_times_loses_neither_its_last_question_nor_a_prohibition_nor_a_decision() -> None:
    assert 1.65 <= len(DRAFT) / ASKED_CHARS <= 1.75
    short = shortened(DRAFT, int(ASKED_CHARS * 1.25))
    assert len(short) <= ASKED_CHARS * 1.25
    assert short.endswith("남은 질문: (1) 더 싼 호텔로 바꿀지 (2) 예산을 220만 원으로 올릴지?")
    assert "야간버스는 절대 타지 않는다." in short
    assert "호텔은 닛코로 정했다." in short
    assert "200만 원" in short


def test_every_sentence_that_stays_is_whole_and_keeps_its_turn() -> None:
    short = shortened(DRAFT, 200)
    for mark, words in (("(1턴)", "야간버스는"), ("(2턴)", "호텔은 닛코로"), ("(3턴)", "남은 질문:")):
        assert short.rfind(mark, 0, short.index(words)) >= 0
        assert short.count(mark) == 1
    for sentence in short.replace("(1턴) ", "").replace("(2턴) ", "").replace("(3턴) ", "").split(". "):
        assert sentence.rstrip(".") in DRAFT


def test_what_may_not_go_stays_even_if_it_is_too_long() -> None:
    rules = "호텔은 닛코로 정했다. 야간버스는 절대 타지 않는다. 새우는 먹지 않기로 했다. 카드 번호는 저장 금지."
    assert shortened(f"날씨가 좋았다. {rules}", 30) == rules


def test_an_english_draft_keeps_its_rules_and_its_question() -> None:
    draft = (
        "(turn 1) The migration moves 40 million rows. Never lock the orders table. They spoke about the weather. "
        "(turn 2) Decided: exit code 1 (was 75). Some general remarks on logging and its history were made. "
        "(turn 3) Should retries be 3 or 5?"
    )
    short = shortened(draft, 160)
    assert "Never lock the orders table." in short
    assert "Decided: exit code 1 (was 75)." in short
    assert short.endswith("(turn 3) Should retries be 3 or 5?")
    assert "weather" not in short


@pytest.mark.parametrize(
    "rule",
    [
        "야간버스는 절대 안 됨.",
        "표는 쓰지 않기로 함.",
        "사용자는 새우를 안 먹음.",
        "The user never flies.",
        "The user asked not to use tables.",
        "Avoid night buses.",
        "Deploying on Fridays is forbidden.",
        "Answers must name their source.",
    ],
)
def test_a_rule_stays_as_a_summary_puts_it(rule: str) -> None:
    said = "The weather was discussed at some length with several remarks. " * 2
    assert rule in shortened(f"{said}(turn 2) {rule} {said}", 60)


def test_repetitions_go_first() -> None:
    text = "값은 42이다. " * 5 + "색은 파랑."
    short = shortened(text, 20)
    assert short == "값은 42이다. 색은 파랑."


def test_lines_keep_their_marks_and_code_stays_whole() -> None:
    text = "1. **Overview**\n   - 계산기 v1.2를 만든다. 날씨도 말했다.\n```\na = 1\nb = 2\n```\n   - 파일: calc_2.py"
    assert shortened(text, len(text) - 5) == text.replace(" 날씨도 말했다.", "")
    assert "```" not in shortened(text, 40)


def test_a_run_on_sentence_loses_clauses() -> None:
    text = "서버를 옮기고, 날씨가 좋았고, 점심을 먹었고, 커피도 마셨고, 야간 작업은 절대 안 되며, 예산은 320만 원"
    short = shortened(text, 36)
    assert "야간 작업은 절대 안 되며," in short
    assert "320만 원" in short
    assert "점심" not in short


def test_one_endless_word_is_cut() -> None:
    assert shortened("가" * 500, 100) == "가" * 99 + "…"


def test_if_it_must_fit_the_last_question_goes_last() -> None:
    text = "몇 시에 갈까요? 야간버스는 절대 타지 않는다. 호텔은 닛코로 정했다. 예산을 올릴까요?"
    short = shorten(text, lambda said: len(said) <= 20, max_chars=20, must_fit=lambda said: len(said) <= 20)
    assert short == "예산을 올릴까요?"


@given(
    st.lists(
        st.sampled_from(
            [
                "(1턴) ",
                "(2턴) ",
                "값은 3이다. ",
                "절대 안 된다. ",
                "무엇인가? ",
                "\n",
                "- ",
                "| a | b |",
                "```",
                "가" * 30,
            ]
        ),
        max_size=20,
    ).map("".join),
    st.integers(1, 80),
)
def test_the_result_is_never_longer_and_fits_if_it_must(text: str, most_chars: int) -> None:
    def fits(said: str) -> bool:
        return len(said) <= most_chars

    short = shorten(text, fits, max_chars=most_chars, must_fit=fits)
    assert fits(short)
    assert bool(short.strip()) == bool(text.strip()) or not text.strip("`-| \n(12턴)")
