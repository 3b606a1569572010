from __future__ import annotations

import pytest

from graph.fold.fact_find import Fact, facts_in, is_instruction
from graph.fold.wish import is_lasting, is_lifted, said_in, wish_of


def instruction(text: str) -> Fact:
    return next(fact for fact in facts_in(text) if is_instruction(fact))


@pytest.mark.parametrize(
    "text",
    [
        "절대 야간버스는 예약하지 마세요",
        "그리고 앞으로 답변은 표 쓰지 말고 짧은 문장으로 해 주세요",
        "저는 새우 알레르기가 있어요",
        "일요일은 절대 안 돼요",
        "10월 14일은 절대 안 돼요",
        "10월 14일에는 서버를 내리면 안 돼요",
        "표 말고 글로 써 주세요",
        "오늘부터 영어는 쓰지 마세요",
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
def test_what_holds_for_the_whole_chat_is_lasting(text: str) -> None:
    assert is_lasting(text)


@pytest.mark.parametrize(
    "text",
    [
        "아, 그런데 1월 24일은 안 되겠어요",
        "3월 2일은 담당자가 없어서 안 되겠어요",
        "후보에서 빼 주세요",
        "그건 목록에서 빼 주세요",
        "그 호텔은 절대 안 돼요",
        "이 옵션은 제외해 주세요",
        "Stop using that one, please",
        "1월 10일 말고 1월 3일로 당겨 주세요",
        "2번 말고 3번으로 해 주세요",
        "300만 원이 아니라 280만 원으로 해 주세요",
        "내일은 안 돼요",
        "이번 주는 회의 안 돼요",
        "이번에는 표를 넣지 마세요",
        "No test today, branch hotfix/idem-key",
        "Leave it out of the list, please",
        "please don't use it",
        "그보다 더는 안 돼요",
        "예산에는 넣지 마세요",
        "보고서에는 절대 적지 마세요",
        "이름이 비슷하니 헷갈리지 마세요",
        "Don't send it to anyone",
        "leave them alone",
        "not the 10th but the 14th, please don't mix them up",
    ],
)
def test_what_declines_corrects_or_points_is_not(text: str) -> None:
    assert not is_lasting(text)


RECORD = (
    "(4턴) 규칙: 진료를 하루라도 쉬는 건 절대 안 됨. 답변은 표 없이 짧게. (5턴) 야간버스 예약 금지, 새우 알레르기.\n"
    "Rules: answers short, no tables; kafka-3 must not be restarted. No deploys on Mondays. "
    "서버는 주말에 백업하지 않음. 견적에 부가세를 넣지 않음. Never restart the old broker kafka-3."
)


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("그리고 앞으로 답변은 표 쓰지 말고 짧은 문장으로 해 주세요", "답변은 표 없이 짧게"),
        (
            "진료를 하루라도 쉬는 건 절대 안 되고, 옮기는 작업은 일요일에만 할 수 있어요",
            "진료를 하루라도 쉬는 건 절대 안 됨, 옮기는 작업은 일요일에만 할 수 있어요",
        ),
        ("절대 야간버스는 예약하지 마세요", "야간버스 예약 금지"),
        ("저는 새우 알레르기가 있어요", "새우 알레르기"),
        ("From now on keep answers short, no tables", "answers short, no tables"),
        ("Please don't restart broker kafka-3", "kafka-3 must not be restarted"),
        # What a record says of something else isn't taken for it.
        ("Don't deploy on Fridays", "Don't deploy on Fridays"),
        ("서버는 주말에 재시작하지 마세요", "서버는 주말에 재시작하지 마세요"),
        ("야간버스는 타지 마세요", "야간버스는 타지 마세요"),
        ("Please never restart the old broker kafka-4", "Please never restart the old broker kafka-4"),
        ("앞으로 견적에는 항상 부가세를 넣어 주세요", "앞으로 견적에는 항상 부가세를 넣어 주세요"),
    ],
)
def test_a_wish_is_written_as_its_record_says_it_or_as_the_user_did(wish: str, said: str) -> None:
    made = wish_of(instruction(wish), said_in(RECORD))
    assert (made.text, made.words) == (wish, said)


@pytest.mark.parametrize(
    ("wish", "later", "is_taken_back"),
    [
        ("앞으로 답변에 표는 쓰지 마세요", "(9턴) 답변의 표 금지 해제.", True),
        ("야간버스는 타지 마세요", "(9턴) 이제 야간버스는 타도 됨.", True),
        ("Never put tables in answers", "(turn 9) Tables in answers are allowed again.", True),
        ("Never deploy on Fridays", "(turn 9) The ban on Friday deploys was lifted.", True),
        ("앞으로 답변에 표는 쓰지 마세요", "(9턴) 답변에 표를 안 씀.", False),
        ("앞으로 답변에 표는 쓰지 마세요", "(9턴) 영어 금지 해제.", False),
        ("절대 야간버스는 예약하지 마세요", "(9턴) 야간버스 예약을 취소함.", False),
        ("알람은 절대 해제하지 마세요", "(9턴) 알람은 해제하지 않음.", False),
        ("Never withdraw the batch", "(turn 9) The batch was withdrawn.", False),
    ],
)
def test_what_a_later_record_takes_back_is_lifted(
    wish: str,
    later: str,
    is_taken_back: bool,  # noqa: FBT001  # a row
) -> None:
    assert is_lifted(wish, said_in(later)) is is_taken_back
