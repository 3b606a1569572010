"""What is text, what is a sentence of it, and how many tokens it has."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from graph.core.language import content_terms, split_sentences
from graph.core.text import (
    check_text,
    estimate_tokens,
    has_visible,
    measure,
    message_tokens,
    plain_text,
    plain_value,
    title_of,
)
from graph.fold.fact_key import strip_particle
from graph.value.error import InputError
from tests.fake.caching import encoding

UNSEEN = [
    "",
    " \n\t",
    "\u200b",
    "\u200b\u200b \ufeff",
    "\u2060\u200d",
    "\u3164",
    "\u115f\u1160",
    "\u2800",
    "\ufe0f",
    "\0",
]
SEEN = ["a", "가", "\u200b.\u200b", "😀", "❤\ufe0f", "ㅋ", "\u0301", "١", "$"]


def test_text_of_which_nothing_is_seen_is_refused_as_empty() -> None:
    for text in UNSEEN:
        assert not has_visible(text)
        with pytest.raises(InputError) as caught:
            check_text(text, max_chars=100)
        assert caught.value.reason == "empty"
    for text in SEEN:
        check_text(text, max_chars=100)


def test_title_is_the_first_line_that_shows_anything() -> None:
    assert title_of("\u200b\n\u3164\n# 서버 이전 계획\n둘째 줄") == "서버 이전 계획"


PLAIN = [
    ("가나다 abc 😀 \u200d \u202e", "가나다 abc 😀 \u200d \u202e"),
    ("a\x00b", "a\ufffdb"),
    ("a\ud83db", "a\ufffdb"),
    ("\udc00\ud800", "\ufffd\ufffd"),
    ("\ud83d\ude00", "😀"),
    ("\ud83d\ud83d\ude00", "\ufffd😀"),
]
ODD = st.text(st.sampled_from(["\x00", "\ud83d", "\ude00", "\udfff", "a", "가", "😀", "\n", "\ufffd"]), max_size=20)


def test_only_what_no_database_takes_is_replaced() -> None:
    assert [(text, plain_text(text)) for text, _ in PLAIN] == PLAIN


@given(ODD)
def test_plain_text_can_be_written_and_stays_as_it_is(text: str) -> None:
    plain = plain_text(text)
    plain.encode()
    assert "\x00" not in plain
    assert plain_text(plain) == plain


@given(
    st.recursive(
        ODD | st.none() | st.integers() | st.booleans(), lambda inner: st.lists(inner) | st.dictionaries(ODD, inner)
    )
)
def test_value_keeps_its_shape_and_all_its_texts_are_plain(value: object) -> None:
    plain = plain_value(value)
    json.dumps(plain, ensure_ascii=False).encode()
    assert plain_value(plain) == plain
    assert type(plain) is type(value)


STEMS = {
    "도쿄역에서": "도쿄역", "야간버스는": "야간버스", "후쿠오카에서부터": "후쿠오카", "호텔까지": "호텔",
    "예산을": "예산", "K7QX2M이": "K7QX2M", "order_events를": "order_events", "180만 원을": "180만 원",
    "회의": "회의", "지도": "지도", "나는": "나는", "어린이": "어린이", "효과": "효과", "Tokyo": "Tokyo",
    "": "", "은": "은", "값 은": "값 은",
}  # fmt: skip


def test_particle_goes_only_where_a_noun_is_left() -> None:
    assert {word: strip_particle(word) for word in STEMS} == STEMS


SENTENCES = {
    "안녕하세요. 저는 하늘입니다! 왜요?": ["안녕하세요.", "저는 하늘입니다!", "왜요?"],
    "끝났습니다.그리고 시작합니다.": ["끝났습니다.", "그리고 시작합니다."],
    "원주율은 3.14이고 v1.2.3을 씁니다. https://a.b/c.html?x=1.5 참고.": [
        "원주율은 3.14이고 v1.2.3을 씁니다.",
        "https://a.b/c.html?x=1.5 참고.",
    ],
    "마감은 2026. 3. 15. 입니다. 꼭요.": ["마감은 2026. 3. 15. 입니다.", "꼭요."],
    "Dr. Smith of the U.S. Army, e.g. him, agreed. Fine.": ["Dr. Smith of the U.S. Army, e.g. him, agreed.", "Fine."],
    "It ships in 2.0.1. Is it ok? Yes.": ["It ships in 2.0.1.", "Is it ok?", "Yes."],
    "1. first point\n2. second point": ["1. first point", "2. second point"],
    "- one\n* two\n## three\n> four\n---\n\n": ["one", "two", "three", "four"],
    "Wait... what?! No…": ["Wait...", "what?!", "No…"],
    "今日は晴れ。明日は雨。": ["今日は晴れ。", "明日は雨。"],
    'He said "done." Then left.': ['He said "done."', "Then left."],
    "a    b\t c": ["a b c"],
}


def test_sentences_end_where_people_end_them() -> None:
    assert {text: split_sentences(text) for text in SENTENCES} == SENTENCES
    for text in ("." * 50_000, "1. " * 20_000, "a." * 30_000, "다." * 30_000):
        assert split_sentences(text)  # in passing


@given(st.text(alphabet="가나다라. !?a1\n-", max_size=300))
def test_no_letter_is_lost_in_sentences(text: str) -> None:
    retained = "".join(split_sentences(text))
    assert [c for c in retained if c.isalnum()] == [c for c in text if c.isalnum()]


def test_terms_are_words_with_content_whatever_their_endings() -> None:
    assert "예산" in content_terms("예산이 얼마였지?") & content_terms("예산은 120만 원입니다.")
    assert content_terms("What is the") == set()
    assert not content_terms("무엇을 했습니까?") & {"무엇", "했습", "습니"}
    assert {"bill-442", "src/app.py", "budget", "3.14"} <= content_terms("BILL-442 in src/app.py: budgets 3.14")


KOREAN = """
오늘 회의에서는 다음 분기 일정을 정했다. 서버 이전은 10월 14일 오전 9시에 시작하고,
담당자는 김민수 책임과 이서연 선임이다. 먼저 데이터베이스를 복제한 뒤 읽기 전용으로 바꾸고, 마지막에 도메인을 옮긴다.
비용은 월 320만 원에서 210만 원으로 줄어들 것으로 본다. 문제가 생기면 두 시간 안에 되돌린다.
"""
ENGLISH = """
The team agreed on the schedule for the next quarter. The migration starts on 14 October at nine in the morning, and two
engineers are responsible for it. First the database is copied, then it becomes read-only, and at the end the domain
moves. The monthly cost should fall from 3,200 to 2,100 dollars. If anything goes wrong, everything is rolled back.
"""
# The share that the estimate may be wrong by.
ESTIMATED = {
    KOREAN: 0.1,
    ENGLISH: 0.1,
    KOREAN + ENGLISH: 0.1,
    "YL-0001343 YK-0002263 FB-0003145 AH-0004563": 0.12,
    "order 20270117123456, invoice 99887766": 0.12,
    "계좌는 110-234-567890이고 총액은 1800000원입니다.": 0.12,
    "2025년 매출은 123456789원, 2026년은 234567891원": 0.12,
    "The process 7340021 held the lock for 30000 ms on 192.168.100.200.": 0.12,
}


def test_estimate_is_near_the_exact_count_also_of_long_numbers() -> None:
    for text, share in ESTIMATED.items():
        exact = len(encoding().encode(text))
        assert abs(estimate_tokens(text) - exact) / exact < share, text
    assert len(KOREAN) / 4 < 0.6 * estimate_tokens(KOREAN)  # characters by four would be far too low
    assert (estimate_tokens(""), estimate_tokens(" ")) == (0, 1)


def test_tool_calls_count_and_characters_are_of_text_alone() -> None:
    bare = AIMessage("찾아볼게요")
    calling = AIMessage("찾아볼게요", tool_calls=[{"name": "search", "args": {"q": "서버 이전"}, "id": "c"}])
    assert message_tokens(calling) > message_tokens(bare)
    assert measure(calling)[0] == measure(bare)[0] == 5
    assert measure(HumanMessage([{"type": "text", "text": KOREAN}])) == measure(HumanMessage(KOREAN))
