"""Builds the scripted chat for all contenders: Korean and English, tool turns, a planted fact in each turn."""

from __future__ import annotations

import random
from dataclasses import dataclass

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call

TOOL_EVERY = 4
LANGUAGE_TURNS = 30
_SEED = 20_261_121
_IN_ANSWER, _IN_RESULT = 1, 2
_RESULT_CHARS = 500
_TOPICS_KO = "서버 이전, 회의실 예약, 결제 오류, 신제품 출시, 채용 일정, 보안 점검, 물류 창고, 사내 교육".split(", ")
_TOPICS_EN = (
    "the server migration, the meeting room booking, the payment failure, the product launch, "
    "the hiring plan, the security review, the warehouse move, the training course"
).split(", ")
_PEOPLE_KO = ("김민수", "이서연", "박지훈", "최유진", "정하늘", "한도윤")
_PEOPLE_EN = ("Alice Moore", "Ben Carter", "Chloe Diaz", "Daniel Kim", "Erin Walsh", "Frank Osei")
_FILLER_KO = (
    "{topic}의 범위를 먼저 나누고 각 단계의 담당자를 정하는 편이 안전합니다.",
    "{person} 님이 맡은 부분은 지난주에 절반쯤 끝났고 나머지는 이번 주에 이어집니다.",
    "예산은 {number}만 원 안에서 움직이며 넘치는 비용은 따로 승인을 받아야 합니다.",
    "일정이 겹치면 중요한 일부터 처리하고 나머지는 다음 주로 미루는 것이 좋습니다.",
    "문제가 다시 생기면 로그를 모아 두었다가 원인을 하나씩 지워 나가면 됩니다.",
    "{month}월 {day}일까지 초안을 공유하고 의견을 받은 뒤에 확정하기로 했습니다.",
    "관련 문서는 공용 폴더에 있으니 바뀐 점을 표시해 두면 모두가 따라오기 쉽습니다.",
    "위험이 큰 작업은 새벽에 하고 되돌리는 절차를 미리 연습해 두는 것이 낫습니다.",
    "사용자에게 보일 안내문은 짧게 쓰고 바뀌는 날짜와 연락처만 분명히 적습니다.",
    "비슷한 일을 한 팀의 경험을 들어 보니 준비 기간이 결과를 거의 결정했습니다.",
)
_FILLER_EN = (
    "It is safer to split {topic} into stages first and to name one owner for each of them.",
    "{person} finished about half of the work last week and the rest continues this week.",
    "The budget stays within {number} thousand dollars and anything beyond needs a separate approval.",
    "When two dates collide, handle the important one first and move the other to the next week.",
    "If the problem comes back, collect the logs and rule out the causes one after the other.",
    "The draft is shared by {month}/{day} and becomes final after everyone has commented.",
    "The documents are in the shared folder, so mark what has changed and others can follow.",
    "Risky steps are best done at night, with the way back rehearsed beforehand.",
    "Keep the notice to users short and state only the dates that change and whom to call.",
    "Teams that did something similar say that the preparation decided nearly everything.",
)


@dataclass(frozen=True)
class ScriptedTurn:
    """One turn.

    Attributes:
        messages: From the user's message to the final answer.
        fact: What is planted in one of them.
        question: What the user would ask about the fact later on.
    """

    number: int
    messages: tuple[AnyMessage, ...]
    fact: str
    question: str


def build_script(turn_count: int, answer_chars: int) -> list[ScriptedTurn]:
    """Builds the same chat each time; each final answer has about `answer_chars` characters."""
    return [_turn(number, answer_chars) for number in range(1, turn_count + 1)]


def _turn(number: int, answer_chars: int) -> ScriptedTurn:
    dice = random.Random(_SEED + number)
    is_korean = (number - 1) // LANGUAGE_TURNS % 2 == 0
    fact = f"{dice.choice('ABCDEFGHKMNPRSTVWXYZ')}{dice.choice('BCDFGHJKLM')}-{number:04d}{dice.randrange(100, 1000)}"
    planted = f"접수 번호는 {fact}입니다." if is_korean else f"The ticket number is {fact}."
    is_tool_turn = number % TOOL_EVERY == 0
    planted_in = number % 3
    asked, question = _questions(dice, number, planted if planted_in == 0 else "", is_korean=is_korean)
    answer = _filled(
        dice,
        answer_chars,
        planted if planted_in == _IN_ANSWER or (planted_in == _IN_RESULT and not is_tool_turn) else "",
        is_korean,
    )
    messages: list[AnyMessage] = [HumanMessage(asked, id=f"u{number}")]
    if is_tool_turn:
        call = tool_call(name="search_records", args={"query": f"case {number}"}, id=f"c{number}")
        result = _filled(dice, _RESULT_CHARS, planted if planted_in == _IN_RESULT else "", is_korean)
        messages += [
            AIMessage("", tool_calls=[call], id=f"k{number}"),
            ToolMessage(result, tool_call_id=f"c{number}", id=f"t{number}"),
        ]
    return ScriptedTurn(number, (*messages, AIMessage(answer, id=f"a{number}")), fact, question)


def _questions(dice: random.Random, number: int, planted: str, *, is_korean: bool) -> tuple[str, str]:
    """Returns the user's message of a turn, and the later question about what is planted in the turn."""
    if is_korean:
        topic, person = dice.choice(_TOPICS_KO), dice.choice(_PEOPLE_KO)
        asked = f"{topic} 건에서 {person} 님의 {number}번째 요청을 처리하려면 무엇부터 해야 할까요?"
        later = f"{topic} 건에서 {person} 님의 {number}번째 요청은 접수 번호가 뭐였죠?"
    else:
        topic, person = dice.choice(_TOPICS_EN), dice.choice(_PEOPLE_EN)
        asked = f"What should come first for request {number} of {person} about {topic}?"
        later = f"What was the ticket number of {person}'s request {number} about {topic}?"
    return f"{planted} {asked}".strip(), later


def _filled(dice: random.Random, chars: int, planted: str, is_korean: bool) -> str:
    """Returns sentences of about `chars` characters with the planted one at a random place."""
    filler, topics, people = (_FILLER_KO, _TOPICS_KO, _PEOPLE_KO) if is_korean else (_FILLER_EN, _TOPICS_EN, _PEOPLE_EN)
    sentences: list[str] = []
    length = len(planted)
    while length < chars:
        sentence = dice.choice(filler).format(
            topic=dice.choice(topics),
            person=dice.choice(people),
            number=dice.randrange(20, 900),
            month=dice.randrange(1, 13),
            day=dice.randrange(1, 29),
        )
        sentences.append(sentence)
        length += len(sentence) + 1
    if planted:
        sentences.insert(dice.randrange(len(sentences) + 1), planted)
    return " ".join(sentences)
