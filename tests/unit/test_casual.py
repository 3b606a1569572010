from __future__ import annotations

import pytest

from graph.core.casual import is_casual


@pytest.mark.parametrize(
    "text",
    [
        "안녕하세요!", "안녕", "고마워요 ㅎㅎ", "네 알겠습니다", "정말 감사합니다~", "수고하셨습니다", "ㅋㅋㅋ",
        "좋아요", "안녕히 계세요", "다음에 봐요", "오케이", "Hi", "hello there", "thanks a lot!",
        "Thank you so much",
        "ok got it", "bye!", "thanks, see you tomorrow", "good morning", "👍", "🙏 감사합니다",
    ],
)  # fmt: skip
def test_small_talk_is_casual(text: str) -> None:
    assert is_casual(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "안녕하세요 저는 민수예요", "네, 근데 그건 왜 그래", "고마워요?", "3", "ok 5", "thanks https://a.b",
        "`ok`", "hi can you help me with this", "감사합니다. 그리고 표로 정리해 줘", "안녕" * 30, "예산", "...",
    ],
)  # fmt: skip
def test_anything_with_content_is_not_casual(text: str) -> None:
    assert not is_casual(text)


@pytest.mark.parametrize("answer", ["진행할까요?", "표로 만들까요", "Shall I go on?", "어느 쪽이 좋으신가요?"])
@pytest.mark.parametrize("text", ["네", "좋아요", "yes", "ok"])
def test_an_answer_to_a_question_is_not_casual(text: str, answer: str) -> None:
    assert not is_casual(text, answer)


def test_an_acknowledgement_of_a_statement_is_casual() -> None:
    assert is_casual("네", "10월 14일로 정리했습니다.")
