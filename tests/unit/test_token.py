from __future__ import annotations

import pytest
from bpe_openai import get_encoding
from langchain_core.messages import AIMessage, HumanMessage

from graph.core.token import estimate_tokens, measure, message_tokens

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


@pytest.mark.parametrize("text", [KOREAN, ENGLISH, KOREAN + ENGLISH])
def test_estimate_is_near_the_exact_count(text: str) -> None:
    exact = len(get_encoding("o200k_base").encode(text))
    assert abs(estimate_tokens(text) - exact) / exact < 0.1


@pytest.mark.parametrize(
    "text",
    [
        "YL-0001343 YK-0002263 FB-0003145 AH-0004563",
        "order 20270117123456, invoice 99887766",
        "계좌는 110-234-567890이고 총액은 1800000원입니다.",
        "2025년 매출은 123456789원, 2026년은 234567891원",
        "The process 7340021 held the lock for 30000 ms on 192.168.100.200.",
    ],
)
def test_long_numbers_are_tokens_of_three_digits(text: str) -> None:
    exact = len(get_encoding("o200k_base").encode(text))
    assert abs(estimate_tokens(text) - exact) / exact < 0.12


def test_characters_by_four_would_be_far_too_low_for_korean() -> None:
    assert len(KOREAN) / 4 < 0.6 * estimate_tokens(KOREAN)


def test_nothing_is_no_token_and_anything_is_one() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens(" ") == 1


def test_tool_calls_count_and_characters_are_of_text_alone() -> None:
    bare = AIMessage("찾아볼게요")
    calling = AIMessage("찾아볼게요", tool_calls=[{"name": "search", "args": {"q": "서버 이전"}, "id": "c"}])
    assert message_tokens(calling) > message_tokens(bare)
    assert measure(calling)[0] == measure(bare)[0] == 5


def test_blocks_and_plain_text_count_the_same() -> None:
    assert measure(HumanMessage([{"type": "text", "text": KOREAN}])) == measure(HumanMessage(KOREAN))
