from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.fold.fact_find import facts_in
from graph.fold.shorten import shorten

DRAFT = (
    "(1턴) 가족 네 명이 후쿠오카에 3박으로 간다. 야간버스는 절대 타지 않는다. 숙소는 하카타역 근처가 좋다고 했다. "
    "여행에서는 맛있는 것을 많이 먹고 싶어 하고 날씨 이야기도 조금 했다. 아이들이 좋아할 곳을 여러 군데 이야기했다. "
    "(2턴) 호텔은 닛코로 정했다. 어시스턴트가 일반적인 여행 준비물을 길게 설명했다. 사진을 찍기 좋은 곳도 소개했다. "
    "(3턴) 총예산은 200만 원. 산책하기 좋은 길을 몇 군데 소개했다. 분위기 좋은 찻집도 함께 이야기했다. "
    "남은 질문: (1) 더 싼 호텔로 바꿀지 (2) 예산을 220만 원으로 올릴지?"
)
ASKED_CHARS = 180


def shortened(text: str, most_chars: int, *, said: str = "") -> str:
    """Shortens a text without a hard limit; `said` is what the user said."""
    return shorten(
        text,
        lambda shorter: len(shorter) <= most_chars,
        max_chars=most_chars,
        must_fit=lambda _: True,
        facts=facts_in(said),
    )


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


REVERSALS = (
    "(was 75 until turn 4)",
    "Changed: the flag is off, so a rollback is possible after all.",
    "Corrected: the total is lower.",
    "The order of the batches is reversed.",
    "Friday deploys are no longer planned.",
    "Not Monday but Thursday.",
    "The dinner was cancelled.",
    "The review was postponed.",
    "They switched to the other vendor.",
    "The second quote supersedes the first.",
    "They withdrew the offer.",
    "Pickup instead of delivery.",
    "납품은 금요일(이전 목요일).",
    "변경: 되돌리기가 다시 가능함.",
    "정정: 환자 수가 줄었음.",
    "예약은 취소됨.",
    "목요일 말고 금요일.",
    "창고가 아니라 사무실.",
    "사용자는 두 번째 안을 선택.",
    "점검을 한 주 당김.",
    "교육은 다음 달로 미룸.",
    "처음 안은 철회함.",
    "순서가 바뀌었음.",
)


@pytest.mark.parametrize("reversal", REVERSALS)
def test_what_was_decided_otherwise_stays(reversal: str) -> None:
    said = "The weather was discussed at some length with several remarks on the season. "
    assert reversal in shortened(f"{said}(turn 2) {reversal} {said.replace('weather', 'garden')}", 60)


APPROVAL = "Tomasz Bielak has to approve every void batch."
VOIDS = (
    f"(turn 7) {APPROVAL} Query: labels_purchased LEFT JOIN scan_events, purchased within 23 hours. "
    "(turn 8) Changed: migration 0098 never ran in prod, flag ENABLE_0098 is off, legacy_ref is still there, "
    "so rollback to v3.14.2 is possible after all. (turn 9) Before or after the voids?"
)
TABLES = (
    "(4턴) 예약 표와 수납 표를 날짜로 묶어 조회함. 정정: 이전 작업 0098은 운영에서 실행된 적이 없고 "
    "스위치 ENABLE_0098도 꺼져 있어 v3.14.2로 되돌리기가 가능함. (5턴) 담당자를 두 명 둘까요?"
)
TALK = (
    "The team spoke about coffee. The long hall on the second floor was painted in a warm and friendly colour by two "
    "painters from the village. Ann and Bob like music. Is that all?"
)


@pytest.mark.parametrize(
    ("said", "text", "over_chars", "dropped"),
    [
        (APPROVAL, VOIDS, 29, "Query: labels_purchased LEFT JOIN scan_events, purchased within 23 hours. "),
        ("", TABLES, 12, "예약 표와 수납 표를 날짜로 묶어 조회함. "),
        # One sentence that is enough alone, although others weigh less for their length.
        ("", TALK, 20, "The team spoke about coffee. "),
    ],
)
def test_the_lightest_sentences_go_that_are_just_enough(said: str, text: str, over_chars: int, dropped: str) -> None:
    assert shortened(text, len(text) - over_chars, said=said) == text.replace(dropped, "")


@pytest.mark.parametrize(
    ("said", "text", "stays"),
    [
        (
            "담당은 송지혜 과장이고 전화는 010-7734-2068이에요.",
            "(1턴) 담당 전화 010-7734-2068. 답은 2026년 3월 1일과 4월 2일과 6월 4일에 12건과 15건을 예로 들었다. 끝.",
            "담당 전화 010-7734-2068.",
        ),
        (
            "The venue is Hall B at Northgate and the DJ is Marlon.",
            "(turn 1) The DJ is Marlon. Examples: $1,200 on 3 March 2026, $1,300 on 4 April and $900 in INC-4821. End.",
            "The DJ is Marlon.",
        ),
        (
            "로그는 /var/log/emr.log에 있어요.",
            "(2턴) 로그 /var/log/emr.log. 예로 /opt/a/one.log /opt/b/two.log /opt/c/tri.log 3곳을 들고 12번 설명. 끝.",
            "로그 /var/log/emr.log.",
        ),
    ],
)
def test_the_only_mention_of_what_the_user_said_stays(said: str, text: str, stays: str) -> None:
    assert stays not in shortened(text, len(text) - 5)
    assert stays in shortened(text, len(text) - 5, said=said)
    assert stays in shortened(text, 60, said=said)


def test_of_two_mentions_one_may_go() -> None:
    text = "Call 555-0142. The number 555-0142 belongs to the vendor of the flowers and was repeated. Is that all?"
    short = shortened(text, 40, said="The phone is 555-0142.")
    assert short.count("555-0142") == 1
    # A rule stays anyhow, and so does what it mentions.
    text = "번호 010-7734-2068을 두 번 말함. 010-7734-2068로는 절대 전화하지 않음. 예산을 올릴까요?"
    short = shortened(text, len(text) - 5, said="전화는 010-7734-2068이에요.")
    assert short == "010-7734-2068로는 절대 전화하지 않음. 예산을 올릴까요?"


def test_if_it_must_fit_only_mentions_go_before_rules() -> None:
    text = "전화는 010-7734-2068. 야간버스는 절대 타지 않는다. 예산을 올릴까요?"

    def fits(said: str) -> bool:
        return len(said) <= 32

    short = shorten(text, fits, max_chars=32, must_fit=fits, facts=facts_in("전화는 010-7734-2068이에요."))
    assert short == "야간버스는 절대 타지 않는다. 예산을 올릴까요?"


@given(
    st.lists(
        st.sampled_from([f"{thing} {count}개를 보았다." for thing in "산강집길" for count in range(1, 9)]), unique=True
    ),
    st.integers(10, 200),
)
def test_nothing_that_went_would_still_fit(sentences: list[str], most_chars: int) -> None:
    text = " ".join([*sentences, "또 무엇을 볼까요?"])
    short = shortened(text, most_chars)
    left = [sentence for sentence in sentences if sentence in short]
    for sentence in set(sentences) - set(left):
        assert len(short) + 1 + len(sentence) > most_chars


def test_repetitions_go_first() -> None:
    text = "값은 42이다. " * 5 + "색은 파랑."
    short = shortened(text, 20)
    assert short == "값은 42이다. 색은 파랑."
    heavy = "예산은 320만 원이고 계약은 AK-3301이다."
    assert shortened(f"{heavy} 날씨가 좋았다. {heavy} 끝?", 42) == f"{heavy} 날씨가 좋았다. 끝?"


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
    asked = "예산을 320만 원으로 올릴까요?"
    short = shorten(
        f"{asked}\n(1) 네", lambda said: len(said) <= 18, max_chars=18, must_fit=lambda said: len(said) <= 18
    )
    assert short == asked


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
