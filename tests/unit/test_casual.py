from __future__ import annotations

from itertools import cycle

import pytest

from graph.core.language import is_casual

SMALL_TALK = [
    "안녕하세요!", "안녕", "고마워요 ㅎㅎ", "네 알겠습니다", "정말 감사합니다~", "수고하셨습니다", "ㅋㅋㅋ", "좋아요",
    "안녕히 계세요", "다음에 봐요", "오케이", "Hi", "hello there", "thanks a lot!", "Thank you so much", "ok got it",
    "bye!", "thanks, see you tomorrow", "good morning", "👍", "🙏 감사합니다",
]  # fmt: skip
WITH_CONTENT = [
    "", "   ", "안녕하세요 저는 민수예요", "네, 근데 그건 왜 그래", "고마워요?", "3", "ok 5", "thanks https://a.b",
    "`ok`", "hi can you help me with this", "감사합니다. 그리고 표로 정리해 줘", "안녕" * 30, "안녕 " * 15,
    "예산", "...",
]  # fmt: skip
YES = ["네", "좋아요", "yes", "ok", "네, 감사합니다", "👍"]
FAREWELLS = ["고마워요!", "thanks a lot", "안녕히 계세요", "bye!"]
ASKING = [
    "진행할까요?",
    "표로 만들까요",
    "Shall I go on?",
    "어느 쪽이 좋으신가요?",
    "웹에서 찾아보겠습니다. 괜찮으면 '네'라고 답해 주세요.",
    f"Shall I search the web for it? {'I can also look into the notes of last week and make a table. ' * 4}",
    "가격 순과 거리 순이 있습니다. 어느 쪽이 좋은지 알려 주세요",
    "Say yes and I'll run the search",
    "어느 방법으로 할까요?\n\n1. 먼저 복제\n\n2. 바로 이전\n\n3. 나중에",
    "원하시면 웹에서 찾아볼 수 있습니다.",
    "바로 검색해 볼게요.",
    "Just let me know which one you prefer.",
]
STATING = [
    "10월 14일로 정리했습니다.",
    "네, 알겠습니다. 표에 넣었습니다.",
    "The meeting is on Monday, and the table has it.",
    "왜 그럴까요? 이유는 이렇습니다.\n\n" + "첫째, 데이터베이스를 먼저 복제했습니다. " * 60,
]


def test_small_talk_is_casual_and_anything_with_content_is_not() -> None:
    assert [text for text in SMALL_TALK if not is_casual(text)] == []
    assert [text for text in WITH_CONTENT if is_casual(text)] == []


@pytest.mark.parametrize(("answer", "text"), list(zip(ASKING, cycle(YES), strict=False)))
def test_yes_to_what_the_assistant_asked_or_offered_is_not_casual(text: str, answer: str) -> None:
    assert not is_casual(text, answer)


@pytest.mark.parametrize(
    ("answer", "text"), [*zip(ASKING, cycle(FAREWELLS), strict=False), *zip(STATING, YES, strict=False)]
)
def test_thanks_and_farewells_and_a_yes_to_a_statement_are_casual(text: str, answer: str) -> None:
    assert is_casual(text, answer)
