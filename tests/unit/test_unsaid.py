from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from graph.fold.fact_line import without_marks
from graph.fold.statement import unsaid_in

CLAIM = [
    (
        "user",
        "저는 김민재예요. 보험사 담당은 김도훈 대리, 손해사정사는 김도현 씨입니다. 합의하면 얼마 받나요?",
    ),
    ("assistant", "1번 합의는 3,000만 원, 2번 소송은 4,200만 원 안팎입니다. 어느 쪽으로 할까요?"),
    ("user", "소송 기준으로요. 2번으로 갈게요."),
    ("assistant", "소송으로 정리하겠습니다."),
]
MOVE = [
    ("assistant", "A안은 10월 14일 22시 전환, B안은 10월 17일 22시 전환입니다. A안을 권합니다."),
    ("user", "A안으로 하자."),
]
STOCK = [
    ("user", "Marta Lund, our DBA, wants the lock gone. Ben (backend lead) would keep it. What are the options?"),
    ("assistant", "Option A: retry in the client. Option B: SERIALIZABLE with a Redis lock. Also a queue."),
    ("user", "take A, and drop the Redis lock"),
    ("assistant", "Then the client retries three times."),
    ("user", "Could we use a queue later?"),
]


def unsaid(said: list[tuple[str, str]], summary: str) -> tuple[str, ...]:
    kinds = {"user": HumanMessage, "assistant": AIMessage, "summary": SystemMessage}
    messages: list[AnyMessage] = [kinds[who](text) for who, text in said]
    own = [text for who, text in said if who == "user"]
    return unsaid_in(without_marks(summary), messages, own, [text for _, text in said])


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        (CLAIM, "(2턴) 소송하지 않고 1번으로 결정."),
        (CLAIM, "(2턴) 1번으로 가기로 함."),
        (CLAIM, "(1턴) 보험사 담당 김도영 대리."),
        (CLAIM, "(1턴) 담당 김도현 대리, 손해사정사 김도훈."),
        (CLAIM, "(1턴) 변호사 박서윤에게 맡김."),
        (STOCK, "(turn 2) Decided: B."),
        (STOCK, "(turn 2) Option B was chosen, the user agreed to B."),
        (STOCK, "(turn 3) The user decided on a queue."),
        (STOCK, "(turn 1) Marta Lundgren, our DBA, wants it gone."),
        (STOCK, "(turn 1) Marta Lund, the backend lead, and Ben (DBA)."),
        (STOCK, "(turn 1) Keith Osei, the contractor, was asked."),
        (STOCK, "(turn 1) Contractor Keith Osei was asked."),
        (
            [*CLAIM[:2], ("user", "합의금은 됐고 소송 기준으로요.")],
            "(2턴) 보험사 안에 동의했고 3,000만 원으로 합의하기로 함.",
        ),
        ([*CLAIM[:2], ("user", "소송 기준으로요.")], "(2턴) 합의하기로 함."),
    ],
)
def test_a_decision_or_a_person_that_is_none_of_the_users_is_seen(said: list[tuple[str, str]], summary: str) -> None:
    assert unsaid(said, summary)


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        (CLAIM, "(1턴) 사고 담당 김도훈 대리(보험사), 손해사정사 김도현. (2턴) 결정: 2번 소송."),
        (CLAIM, "(1턴) 김도훈 대리와 김도현 손해사정사. (2턴) 1번 합의와 2번 소송 중 2번으로 가기로 함."),
        (CLAIM, "(2턴) 소송 기준으로 결정. 1번 합의 3,000만 원은 택하지 않음."),
        (STOCK, "(turn 1) Marta Lund (DBA) and Ben, the backend lead. (turn 2) Decided: A, without the Redis lock."),
        (STOCK, "(turn 2) Chose A: retry in the client, three times. (turn 3) Open: a queue later?"),
        (
            STOCK,
            "(turn 1) DBA Marta Lund wants no lock; lead Ben disagrees. (turn 2) The Redis lock is dropped.",
        ),
        ([("user", "Which one?"), ("assistant", "A queue."), ("user", "Yes, do that.")], "Decided: a queue."),
        (
            [("user", "뭐가 좋죠?"), ("assistant", "캐시를 권합니다."), ("user", "네, 그렇게 해 주세요.")],
            "캐시를 쓰기로 함.",
        ),
        ([("user", "가격 올리는 건 접죠."), ("assistant", "네.")], "인상 보류 결정."),
        ([("user", "가격 올리는 건 접죠."), ("assistant", "네.")], "동결로 결정."),
        (MOVE, "(1턴) 10월 14일 22시 전환(A안)으로 결정."),
        ([("summary", "(1턴) 캐시를 쓰기로 함, 1번."), ("user", "다음은요?")], "(1턴) 1번, 캐시를 쓰기로 함."),
        ([("user", "왜 늦죠?"), ("assistant", "확인해 다시 알리기로 했습니다.")], "확인해 다시 알리기로 함."),
        ([("user", "보험사가 20:80으로 결정했대요.")], "보험사가 과실을 20:80으로 결정."),
    ],
)
def test_an_honest_summary_raises_no_alarm(said: list[tuple[str, str]], summary: str) -> None:
    assert unsaid(said, summary) == ()
