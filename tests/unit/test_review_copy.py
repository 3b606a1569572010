from __future__ import annotations

from dataclasses import replace

import pytest
from langchain_core.messages import SystemMessage

from tests.fake.draft import flaw_in, korean, review_drafts, source_of, told

SAID = (
    "가족 네 명이 1월 10일부터 후쿠오카에 갑니다. 호텔은 하카타역에서 걸어서 갈 수 있어야 하고, 조식이 나와야 합니다. "
    "예산은 180만 원이고 야간버스는 절대 타지 않습니다. 둘째는 새우 알레르기가 있으니 식당을 고를 때 확인해 주세요. "
    "첫날은 공항에서 호텔로 가고, 둘째 날에 다자이후를 보고, 셋째 날은 온천에 갑니다. 마지막 날은 오전 비행기입니다. "
    "짐은 큰 가방 둘과 유모차 하나이고, 역에서 표를 미리 사 둡니다. "
)
TRIP = source_of(SAID * 4, 300)


@pytest.mark.parametrize(
    "draft",
    [
        SAID[:230],
        SAID.replace(" ", "\n ")[:300],
        f'<m turn="1" from="user">{SAID[:250]}</m>',
        f"[user] {SAID[:250]} [assistant] 네.",
    ],
    ids=["copy", "white space", "tag", "speaker"],
)
def test_a_copy_of_the_source_is_no_summary_however_it_is_dressed(draft: str) -> None:
    assert flaw_in(draft, TRIP) == "copy"
    assert review_drafts([draft, draft], TRIP).error_code == "summary_copy"


def test_words_of_the_source_in_a_summary_are_no_copy() -> None:
    draft = f"(1턴) 네 명이 1월 10일부터 하카타역에 묵음. {SAID[60:260]}"
    assert flaw_in(draft, TRIP) is None


def test_a_merge_may_begin_with_the_words_of_its_oldest_summary() -> None:
    draft = SAID[:240]
    assert flaw_in(draft, TRIP) == "copy"
    assert flaw_in(draft, replace(TRIP, style="merge")) is None


def test_a_new_version_may_begin_with_the_words_of_the_summary_before_it() -> None:
    source = source_of(told(900), 300)
    previous = replace(source, messages=(SystemMessage(SAID), *source.messages))
    assert flaw_in(SAID[:240], previous) is None


ANSWER = (
    "네, (2)번 미쓰이 가든 호텔을 추천드립니다! 1월 10일부터 네 명이 180만 원으로 가고, 야간버스는 절대 타지 않으며 "
    "새우 알레르기도 살폈습니다. 하카타역에서 걸어서 오 분이고 조식도 좋습니다. 다자이후는 둘째 날 "
    "오전에 가시는 편이 한산하고, 온천은 셋째 날 오후가 좋습니다. 식당은 미리 예약해 두시면 편합니다. "
    "짐은 호텔에 맡기실 수 있고 공항까지는 지하철로 두 정거장입니다. "
    "더 궁금한 점이 있으시면 언제든 말씀해 주세요. 좋은 하루 보내세요!"
)


def test_an_answer_to_the_chat_is_no_summary() -> None:
    assert flaw_in(ANSWER, TRIP) == "answer"
    assert review_drafts([ANSWER, ANSWER], TRIP).error_code == "summary_answer"


@pytest.mark.parametrize(
    "draft",
    [
        ANSWER.removeprefix("네, "),
        ANSWER[: ANSWER.index(" 더 궁금한")],
        f"(1턴) 사용자가 인사함. {ANSWER}",
    ],
    ids=["no opening", "no closing", "turn mark"],
)
def test_one_sign_of_an_answer_alone_proves_nothing(draft: str) -> None:
    assert flaw_in(draft, replace(TRIP, target_chars=250)) is None


def test_a_summary_is_adopted_after_a_draft_that_was_none() -> None:
    good = f"(1턴) 네 명, 1월 10일, 하카타역. 예산은 180만 원이고 야간버스는 절대 타지 않습니다. {korean(200)}".strip()
    assert review_drafts([ANSWER, good], TRIP).text == good
    assert review_drafts([SAID[:230], good], TRIP).text == good
