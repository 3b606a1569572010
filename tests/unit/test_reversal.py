from __future__ import annotations

import pytest

from graph.fold.reversal import reversed_in


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("진료를 하루라도 쉬는 건 절대 안 되고, 작업은 일요일에만 할 수 있어요", "진료를 하루쯤 쉬는 건 괜찮음"),
        ("야간버스는 절대 예약하지 마세요", "야간버스 예약 가능"),
        ("업무 시간에는 절대 위키를 멈추지 마.", "업무 시간에 위키를 멈춰도 괜찮음"),
        ("비밀번호를 스크립트에 적지 마세요.", "비밀번호는 스크립트에 적음"),
        ("불은 어떤 부스에서도 쓰면 안 됩니다.", "불은 어떤 부스에서나 써도 문제 없음"),
        ("Never deploy on Fridays.", "Deploys on Friday"),
        ("Don't restart broker kafka-3", "broker kafka-3 may be restarted"),
        ("No smoking and no pets in the flat.", "Smoking and pets are allowed"),
        ("Please don't use emojis in the report.", "The report uses emojis"),
        ("Patients under 18 must not be enrolled.", "Patients under 18 can be enrolled"),
    ],
)
def test_a_sentence_that_allows_what_the_user_forbade_is_named(said: str, summary: str) -> None:
    assert reversed_in(f"(1턴) 둘을 정함. {summary}.", [said]) == (summary,)


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        (["진료를 하루라도 쉬는 건 절대 안 돼요"], "규칙: 진료를 하루라도 쉬는 건 절대 안 됨. 작업은 일요일에만."),
        (["답변에 표는 쓰지 마세요."], "비교표를 만들기로 함. 표로 정리 가능."),
        (["야간버스는 절대 예약하지 마세요"], "야간버스 예약은 안 됨. 주간버스 예약은 가능."),
        (["야간버스는 절대 예약하지 마세요"], "야간버스는 예약하지 않음. 급하면 야간버스 예약도 가능한지 물음."),
        (["야간버스는 절대 예약하지 마세요", "아니, 야간버스도 괜찮아요."], "야간버스도 예약 가능."),
        (["업무 시간에는 절대 위키를 멈추지 마."], "업무 시간에는 위키를 그대로 둠. 밤에 멈춰도 됨."),
        (["1월 10일 말고 1월 3일로 당겨 주세요"], "1월 3일로 당김(이전 1월 10일)."),
        (["Never share the price list with partners."], "Partners can see the catalogue, but no price list."),
        (["Never deploy on Fridays."], "Deploy on Fridays? The user never wants that."),
        (["Don't email customers before Monday."], "Customers get an email on Monday at the earliest."),
        (["I'm allergic to shellfish."], "Seafood is skipped, meat is fine."),
    ],
)
def test_what_keeps_the_prohibition_or_speaks_of_something_else_is_not_named(said: list[str], summary: str) -> None:
    assert reversed_in(summary, said) == ()
