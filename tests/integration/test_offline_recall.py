"""The embedded model with the real graph and archive: it looks up what was folded away, and nothing else."""

from __future__ import annotations

import re
import time

import pytest

from graph.offline.phrase import ENGLISH, KOREAN
from prompt.tool.recalled import recalled_numbers
from tests.fake.chat import Chat
from tests.fake.offline import KEYLESS, models_without_pauses
from tests.fake.open_chat import OpenChat

KOREAN_CHAT = (
    "준비는 3일째이고 예약은 12건, 합계는 48만 원입니다. 마감은 3월 2일 오후 6시로 결정했습니다. "
    "야간버스 좌석은 창가로 골랐어요. " + "휴게소에서 잠깐 쉬었다가 갑니다. " * 8,
    "예산은 120만 원으로 정했어요. " + "가족 네 명이 2026년 3월 15일에 부산으로 출발합니다. " * 6,
    "숙소는 서면의 바다호텔로 결정했고 예약 번호는 KX-7781입니다. " + "조식은 8시에 시작합니다. " * 10,
    "우산은 안 가져가기로 했어요. " + "짐은 가볍게 합니다. " * 4,
    "카메라는 민수가 챙깁니다.",
)
ENGLISH_CHAT = (
    "There are 12 bookings for $480 on the third day. We decided that the deadline is March 2 at 6 pm. "
    "We took the seat at the window for the night bus. " + "There is a short rest on the way. " * 8,
    "We decided on a budget of $1,200. " + "Four of us leave for Busan on March 15, 2026. " * 8,
    "The hotel is the Seaview and the booking number is KX-7781. " + "Breakfast begins at 8:00. " * 12,
    "We take no umbrella. " + "The bags stay light. " * 4,
    "Minsu brings the camera.",
)


def offline(open_chat: OpenChat, said: tuple[str, ...], **settings: object) -> Chat:
    chat = open_chat(models=models_without_pauses, **{"compression_rate": 0.1, **KEYLESS, **settings})
    for text in said:
        chat.say(text)
        chat.wait_for_folds()
    return chat


def told(chat: Chat, question: str) -> tuple[list[str], str]:
    """Asks, and returns the names of the tools that were used and the answer."""
    chat.say(question)
    turn = chat.last_turn
    assert turn.status == "finished"
    return [step.name for step in turn.steps], turn.answer_text


@pytest.mark.parametrize(
    ("said", "question", "fact", "source"),
    [
        (KOREAN_CHAT, "야간버스 좌석이 어디였지?", "창가로", "(1턴의 원문에서)"),
        (KOREAN_CHAT, "우리가 버스 좌석을 어디로 골랐는지 알려줘", "창가로", "(1턴의 원문에서)"),
        (ENGLISH_CHAT, "Which seat did we take on the night bus?", "at the window", "(from turn 1)"),
    ],
)
def test_what_a_fold_left_out_is_looked_up(
    open_chat: OpenChat, said: tuple[str, ...], question: str, fact: str, source: str
) -> None:
    chat = offline(open_chat, said)
    (record,) = chat.service.folds.records(chat.session_id)
    assert fact not in record.summary
    began = time.monotonic()
    used, answer = told(chat, question)
    assert used == ["recall"]
    assert fact in answer
    assert source in answer
    assert time.monotonic() - began < 5
    step = chat.last_turn.steps[0]
    assert step.turns == recalled_numbers(step.result)
    assert 1 in (step.turns or ())


@pytest.mark.parametrize(
    ("said", "question", "fact"),
    [
        (KOREAN_CHAT, "우산은 어떻게 하기로 했지?", "안 가져가기로"),
        (KOREAN_CHAT, "카메라는 누가 챙기지?", "민수"),
        (ENGLISH_CHAT, "Who brings the camera?", "Minsu"),
    ],
)
def test_what_stands_in_the_input_is_not_looked_up(
    open_chat: OpenChat, said: tuple[str, ...], question: str, fact: str
) -> None:
    used, answer = told(offline(open_chat, said), question)
    assert used == []
    assert fact in answer


def test_what_the_summary_says_is_not_looked_up(open_chat: OpenChat) -> None:
    chat = offline(open_chat, KOREAN_CHAT, compression_rate=0.5)
    assert "120만 원" in chat.service.folds.records(chat.session_id)[0].summary
    used, answer = told(chat, "예산이 얼마였지?")
    assert used == []
    assert "120만 원" in answer


@pytest.mark.parametrize(
    ("said", "question", "sentence"),
    [
        (KOREAN_CHAT, "여권 번호가 뭐였지?", KOREAN["nowhere"]),
        (ENGLISH_CHAT, "What was the passport code?", ENGLISH["nowhere"]),
    ],
)
def test_what_was_never_said_is_told_to_be_nowhere(
    open_chat: OpenChat, said: tuple[str, ...], question: str, sentence: str
) -> None:
    used, answer = told(offline(open_chat, said), question)
    assert used == ["recall"]
    assert sentence in answer
    assert ENGLISH["found"] not in answer
    assert KOREAN["found"] not in answer


def test_before_anything_is_folded_nothing_is_looked_up(open_chat: OpenChat) -> None:
    used, answer = told(offline(open_chat, KOREAN_CHAT[:2]), "여권 번호가 뭐였지?")
    assert used == []
    assert KOREAN["not_found"] in answer


def test_the_answer_of_a_look_up_is_no_source_while_it_is_raw(open_chat: OpenChat) -> None:
    chat = offline(open_chat, KOREAN_CHAT[:4])
    for _ in range(2):
        used, answer = told(chat, "야간버스 좌석이 어디였지?")
        assert used == ["recall"]
        quoted = [line for line in answer.splitlines() if "창가" in line]
        assert quoted == ["- 야간버스 좌석은 창가로 골랐어요. (1턴의 원문에서)"]


@pytest.mark.parametrize(
    "settings",
    [
        {"context_strategy": "rolling", "app_context_threshold": 300},
        {"context_strategy": "compaction", "max_context_tokens": 1_200},
    ],
)
def test_the_other_strategies_with_summaries_look_up_too(open_chat: OpenChat, settings: dict[str, object]) -> None:
    too_long_to_pick = f"{'밤길은 길고 길었지만 ' * 60}야간버스 좌석은 창가로 골랐어요."
    chat = offline(open_chat, (too_long_to_pick, *KOREAN_CHAT[1:]), **settings)
    records = chat.service.folds.records(chat.session_id)
    assert [record.kind for record in records] == [settings["context_strategy"]]
    assert "창가" not in records[0].summary
    used, answer = told(chat, "야간버스 좌석이 어디였지?")
    assert (used, "창가로" in answer) == (["recall"], True)
    used, answer = told(chat, "카메라는 누가 챙기지?")
    assert (used, "민수" in answer) == ([], True)


def test_the_window_strategy_has_nothing_to_look_up_with(open_chat: OpenChat) -> None:
    chat = offline(open_chat, KOREAN_CHAT, context_strategy="window", window_turns=1)
    used, answer = told(chat, "야간버스 좌석이 어디였지?")
    assert used == []
    assert "창가" not in answer


def test_a_fold_of_a_look_up_says_nothing_of_what_it_was_framed_in(open_chat: OpenChat) -> None:
    chat = offline(open_chat, KOREAN_CHAT[:3], compression_rate=0.5)
    for question in (
        "여권 번호가 뭐였지?",
        "비자 번호가 뭐였지?",
        "여권 번호를 다시 찾아줘",
        "그럼 여권은 제가 챙길게요.",
    ):
        chat.say(question)
        chat.wait_for_folds()
    _, record = chat.service.folds.records(chat.session_id)
    assert record.turns == (4, 5, 6)
    assert not re.search(r"</?(?:recalled|turn|user)|도구 결과|앞뒤 턴", record.summary)


@pytest.mark.parametrize("said", [KOREAN_CHAT, ENGLISH_CHAT])
def test_what_the_embedded_model_says_of_itself_is_no_fact_of_the_chat(
    open_chat: OpenChat, said: tuple[str, ...]
) -> None:
    chat = offline(open_chat, said, compression_rate=0.5)
    assert "OPENAI_API_KEY" in chat.turns[0].answer_text
    (record,) = chat.service.folds.records(chat.session_id, last=1)
    assert "KX-7781" in record.kept_facts
    assert "OPENAI" not in " ".join((record.summary, *record.kept_facts, *record.missing_facts))
