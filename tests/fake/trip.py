"""Three turns about a trip, drafts of their summary, and the fold that takes one of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graph.value.record import Record
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import DEFAULT_USAGE, Body, text
from tests.fake.openai_server import FakeOpenAI

Talk = Sequence[tuple[str, str]]

ANSWER = (
    "확인했습니다. 말씀하신 조건을 하나씩 살펴보고 표로 정리했습니다. 이동 시간과 비용을 함께 따져 보았습니다. " * 4
)
TRIP: Talk = (
    ("가족 네 명이 후쿠오카에 가요. 야간버스는 절대 안 타요. 예산은 200만 원이에요.", ANSWER),
    ("호텔은 닛코로 할게요. 둘째가 새우 알레르기예요.", ANSWER),
    ("그럼 예산이 맞나요?", f"{ANSWER} (1) 더 싼 호텔로 바꿀까요, (2) 예산을 220만 원으로 올릴까요?"),
)
RULE = "야간버스는 절대 타지 않음."
QUESTION = "남은 질문: (1) 더 싼 호텔로 바꿀지 (2) 예산을 220만 원으로 올릴지?"
TOPICS = (
    "공항 시장 서점 찻집 날씨 음악 옷차림 산책길 기념품 사진 우산 신발 지하철 유모차 간식 신문 공원 영화 시계 지갑 연필"
)


def target_of(talk: Talk, rate: float = 0.3) -> int:
    return int(sum(len(asked) + len(answer) for asked, answer in talk) * rate)


def summary_of(chars: int) -> str:
    """A summary of the trip, about so long, with small talk in its middle."""
    begin, end = (
        f"(1턴) 가족 네 명이 후쿠오카에 감. {RULE} (2턴) 호텔은 닛코로 정함. 둘째는 새우 알레르기. ",
        f"(3턴) 예산은 200만 원. {QUESTION}",
    )
    for topic in TOPICS.split():
        if len(begin) + len(end) >= chars:
            break
        begin += f"{topic} 이야기를 잠깐 주고받음. "
    return begin + end


# Drafts with a flaw each, and what is said of it.
DRAFTS: dict[str, tuple[str, str]] = {
    "long": (summary_of(int(target_of(TRIP) * 1.7)), "자 깁니다"),
    "short": (f"(1턴) {RULE}", "빠진 것: 200만 원, 네 명, 220만 원."),
    "thoughts": ("<think>\nThe user wants a summary of the trip", "답이 비어 있습니다"),
    "invented": (summary_of(target_of(TRIP)).replace("예산은 200만", "예산은 290만"), "대화에 없는 것: 290만 원."),
    "language": (
        "The family goes to Fukuoka and stays at the Nikko, and no night bus is taken. " * 5,
        "한국어로 옮기세요",
    ),
    "copy": ((TRIP[0][0] + ANSWER)[:400], "옮겨 적은 것"),
    "answer": (f"네, (2)번으로 하시는 편이 좋겠습니다! {ANSWER[:240]} 좋은 하루 보내세요!", "대화에 대한 답"),
}


def fold(
    chat: Chat,
    server: FakeOpenAI,
    talk: Talk,
    *drafts: str,
    finish_reason: str = "stop",
    after_turns: int = 0,
    usage: Mapping[str, Any] = DEFAULT_USAGE,
) -> Record | None:
    """Says three turns and a fourth that takes their fold, which these drafts are written for.

    With `after_turns` so many come before, whose folds are made: then a draft that can't be adopted is mended at once.
    """
    chat.ask(1, after_turns)
    server.script(*(text(answer, usage=usage) for _, answer in talk))
    if drafts:
        server.script(*(text(draft, finish_reason=finish_reason) for draft in drafts), kind="summary")
    for asked, _ in talk:
        chat.say(asked)
    chat.wait_for_folds()
    chat.say(question(after_turns + 4))
    records = chat.service.folds.records(chat.session_id)
    return next((record for record in records if record.turns[0] == after_turns + 1), None)


def requests(server: FakeOpenAI) -> list[list[Body]]:
    return [body["messages"] for body in server.bodies("summary")]
