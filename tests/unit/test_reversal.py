from __future__ import annotations

import pytest

from graph.fold.statement import reversed_in, softened_in


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


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("의료자문 동의서에는 절대 서명 안 할 거예요.", "의료자문 동의서에 서명하기로 함"),
        ("저는 보험사랑 전화로는 절대 얘기 안 할 거예요.", "전화로 보험사와 얘기해도 됨"),
        ("민서 이름은 모든 서류에서 빼 주세요.", "민서(17살, 동승)의 이름을 서류에 넣기로 함"),
        ("영어 번역은 안 넣어요.", "영어 번역을 넣음"),
        ("합의금은 안 받기로 했어요.", "합의금을 받기로 함"),
        ("Never query the primary inv-rw-1, only the replica.", "query only the primary inv-rw-1, never the replica"),
        ("No tenacity, that is a new dependency.", "Use tenacity"),
        ("no f-strings in SQL, ever, only bound parameters", "f-strings in SQL are allowed"),
        (
            "The 19 are Marten's physical counts, leave them alone, always",
            "19 of Marten's physical counts: overwrite them",
        ),
        ("Leave the two legacy tests alone.", "The two legacy tests are rewritten"),
        ("테스트 두 개는 그대로 두세요.", "테스트 두 개를 새로 씀"),
    ],
)
def test_a_reversal_in_other_forms_is_seen(said: str, summary: str) -> None:
    assert reversed_in(f"(turn 2) {summary}.", [said])


SOFTENED = [
    ("Never deploy on Fridays.", "Should not deploy on Fridays"),
    ("Never deploy on Fridays.", "Would rather not deploy on Fridays"),
    ("Never deploy on Fridays.", "No Friday deploys if possible"),
    ("Never deploy on Fridays.", "Never deploy on Fridays unless urgent"),
    ("You must not restart the billing worker.", "Try not to restart the billing worker"),
    ("Always answer in British English.", "Usually answer in British English"),
    ("Every batch must be approved by Dana first.", "Dana should approve every batch first"),
    ("Don't restart broker kafka-3 until Friday.", "Don't restart broker kafka-3"),
    ("Never email customers before 3 March.", "Never email customers"),
    ("야간버스는 절대 예약하지 마세요.", "야간버스는 되도록 예약하지 않음"),
    ("야간버스는 절대 예약하지 마세요.", "야간버스 예약은 피하는 게 좋음"),
    ("보험사와 전화는 절대 하지 마세요.", "보험사와 전화는 자제"),
    ("답변에 표는 쓰지 마세요.", "답변에 표는 가급적 쓰지 않음"),
    ("앞으로 항상 존댓말로 답변해 주세요.", "가능하면 존댓말로 답변"),
    ("서버는 금요일까지 절대 재시작하지 마세요.", "서버는 재시작하지 않음"),
    ("진료 중에는 절대 서버를 끄지 마세요.", "진료 중 서버를 끄지 않음, 급하면 진료 중에도 서버 끔"),
]


@pytest.mark.parametrize(("said", "summary"), SOFTENED[:-1])
def test_a_rule_with_less_force_or_another_limit_is_seen(said: str, summary: str) -> None:
    assert softened_in(f"(turn 2) The plan is made. {summary}.", [said])


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        (["Never deploy on Fridays."], "Rule: never deploy on Fridays. Deploys should take ten minutes."),
        (["Never deploy on Fridays."], "No Friday deploys; usually they ship on Mondays."),
        (["You should not deploy on Fridays."], "Should not deploy on Fridays."),
        (["Don't deploy on Fridays.", "Fine, deploy on Fridays if needed."], "Deploy on Fridays only if needed."),
        (["Don't restart broker kafka-3 until Friday."], "Freeze until Friday: no restart of broker kafka-3."),
        (
            ["Don't restart broker kafka-3 until Friday."],
            "The audit ends Friday. Until then broker kafka-3 isn't restarted.",
        ),
        (["Ask me before you send anything."], "Ask before sending anything."),
        (["야간버스는 절대 예약하지 마세요."], "규칙: 야간버스 예약 금지. 주간버스는 되도록 창가."),
        (["야간버스는 절대 예약하지 마세요."], "규칙: 야간버스 예약 절대 금지. 야간버스 예약은 되도록 하지 않음."),
        (["Don't restart broker kafka-3 until October 3."], "By that date no restart of broker kafka-3."),
        (["되도록 표는 쓰지 마세요."], "표는 되도록 쓰지 않음."),
        (["서버는 금요일까지 절대 재시작하지 마세요."], "금요일까지 서버 재시작 금지."),
        (["답변은 짧게 해 주세요."], "답변은 짧게. 제안: 표를 쓰는 게 좋음."),
        (["민서 이름은 모든 서류에서 빼 주세요."], "민서 이름은 모든 서류에서 뺌."),
        # The date is that of the other clause, which the second message moves.
        (
            [f"10월 {day}일까지 끝나야 하고 데이터를 지우면 절대 안 돼." for day in (16, 17)],
            "10월 16일까지 끝나야 하고 데이터를 지우면 절대 안 됨. 담당 김민수. 예산 720만 원. 2차 10월 17일.",
        ),
        (
            [f"Be done by October {day}, and never delete the customer data." for day in (16, 17)],
            "Done by October 16. Never delete the customer data. Owner Ann. Budget 720 USD. Second part by October 17.",
        ),
    ],
)
def test_a_rule_as_the_user_set_it_is_not_softened(said: list[str], summary: str) -> None:
    assert softened_in(summary, said) == ()
    assert reversed_in(summary, said) == ()


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("색온도는 4000K로 통일하는 걸로 정했어요.", "색온도 4000K는 안 쓰기로 함"),
        ("도배는 합지보다 실크를 선호해요.", "도배는 합지보다 실크를 선호하지 않음"),
        ("답변 끝에는 항상 출처를 써 주세요.", "답변 끝에 출처는 쓰지 않음"),
        ("Let's go with plan A.", "Decided: not plan A"),
        ("I prefer green tea over coffee.", "Doesn't prefer green tea over coffee"),
        ("Please always write times in the 24-hour clock.", "Never write times in the 24-hour clock"),
    ],
)
def test_what_the_user_wants_turned_into_its_opposite_is_seen(said: str, summary: str) -> None:
    assert softened_in(f"(turn 2) {summary}.", [said])


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        (["Let's go with plan A."], "Decided: plan A, not plan C."),
        (["I prefer green tea over coffee."], "Prefers green tea, doesn't like coffee."),
        (["Let's go with plan A.", "No, not plan A after all."], "Decided: not plan A."),
        (["전화보다 문자가 편해요."], "연락은 문자 선호, 전화는 선호하지 않음."),
        (["색온도는 4000K로 통일하는 걸로 정했어요."], "색온도 4000K로 통일, 3000K는 안 쓰기로 함."),
        (["도배는 한솔로 할게요.", "아니, 도배 한솔은 취소할게요."], "도배 한솔은 안 하기로 함."),
    ],
)
def test_what_the_user_wants_or_declined_himself_is_not_named(said: list[str], summary: str) -> None:
    assert softened_in(summary, said) == ()
