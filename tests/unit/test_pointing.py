from __future__ import annotations

import pytest

from graph.fold.fact_rule import is_pointing


@pytest.mark.parametrize(
    "text",
    [
        "절대 야간버스는 예약하지 마세요",
        "그리고 앞으로 답변은 표 쓰지 말고 짧은 문장으로 해 주세요",
        "저는 새우 알레르기가 있어요",
        "일요일은 절대 안 돼요",
        "표 말고 글로 써 주세요",
        "야간버스는 빼 주세요",
        "이번 대화에서는 영어를 쓰지 마세요",
        "지금 쓰는 코드는 고치지 마세요",
        "예산에는 부가세를 넣지 마세요",
        "김도훈과 김도현을 헷갈리지 마세요",
        "이것도 비밀이에요",
        "이 프로젝트에서는 React를 쓰지 마세요",
        "Please don't restart broker kafka-3",
        "From now on keep answers short, no tables",
        "never deploy on Fridays",
        "I can't eat shrimp",
    ],
)
def test_a_rule_that_names_something_stands_alone(text: str) -> None:
    assert not is_pointing(text)


@pytest.mark.parametrize(
    "text",
    [
        "후보에서 빼 주세요",
        "그건 목록에서 빼 주세요",
        "그 호텔은 절대 안 돼요",
        "이 옵션은 제외해 주세요",
        "Stop using that one, please",
        "Leave it out of the list, please",
        "please don't use it",
        "그보다 더는 안 돼요",
        "예산에는 넣지 마세요",
        "보고서에는 절대 적지 마세요",
        "이름이 비슷하니 헷갈리지 마세요",
        "Don't send it to anyone",
        "leave them alone",
    ],
)
def test_one_that_only_points_says_nothing_without_what_stands_before_it(text: str) -> None:
    assert is_pointing(text)
