from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from graph.core.language import is_written_in, session_language, user_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("서버를 언제 옮기나요", "ko"),
        ("Python 3.13 asyncio TaskGroup 예제 보여 줘", "ko"),
        ("Please translate `안녕하세요 여러분` for me", "latin"),
        ('What does "서버를 옮기다" mean in English', "latin"),
        ("```\n# 한국어 주석입니다 여러분\n```\nexplain this code", "latin"),
        ("サーバーはいつ移行しますか", "ja"),
        ("我们什么时候迁移服务器", "zh"),
        ("12345 !!", None),
    ],
)
def test_language_is_that_of_the_users_own_words(text: str, language: str | None) -> None:
    assert user_language([HumanMessage(text), AIMessage("다른 언어의 아주 긴 답변입니다")]) == language


def test_a_korean_summary_full_of_terms_is_korean() -> None:
    assert is_written_in("Python 3.13 free-threaded build 와 JIT compiler 를 설명함", "ko")


@pytest.mark.parametrize(
    ("summary", "language"),
    [
        ("The user asked about the migration date of the server.", "ko"),
        ("사용자가 서버 이전 날짜를 물었습니다", "latin"),
    ],
)
def test_another_language_is_noticed(summary: str, language: str) -> None:
    assert not is_written_in(summary, language)


def test_nothing_is_claimed_where_nothing_can_be_told() -> None:
    assert is_written_in("OK", "ko")
    assert is_written_in("anything at all goes here", None)


@pytest.mark.parametrize(
    ("opening", "language"),
    [
        ("서버 이전 날짜를 정해 줘", "ko"),
        ("When do we move the server?", "en"),
        ("サーバーはいつ移しますか", "en"),
        ("```\nprint(1)\n```", "ko"),
    ],
)
def test_the_first_message_decides_the_language_of_the_fixed_words(opening: str, language: str) -> None:
    assert session_language(HumanMessage(opening)) == language


def test_a_session_without_a_message_is_korean() -> None:
    assert session_language(None) == "ko"
