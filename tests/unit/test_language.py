from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from graph.core.language import is_written_in, session_language, user_language, user_scripts


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
    assert is_written_in("Python 3.13 free-threaded build 와 JIT compiler 를 설명함", {"ko"})


@pytest.mark.parametrize(
    ("summary", "language"),
    [
        ("The user asked about the migration date of the server.", "ko"),
        ("사용자가 서버 이전 날짜를 물었습니다", "latin"),
    ],
)
def test_another_language_is_noticed(summary: str, language: str) -> None:
    assert not is_written_in(summary, {language})


def test_nothing_is_claimed_where_nothing_can_be_told() -> None:
    assert is_written_in("OK", {"ko"})
    assert is_written_in("anything at all goes here", set())


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


MAIL = (
    "Dear Mr Kim, thank you for your order of twelve chairs. We are sorry to tell you that the delivery is late by two "
    "weeks, because the ship has to wait at the port. Please let us know whether you still want them. Kind regards, Ann"
)
LETTER = "안녕하세요 고객님 주문하신 의자 열두 개가 항구 사정으로 이 주 늦게 도착합니다 그래도 받으실지 알려 주세요"


@pytest.mark.parametrize(
    ("messages", "language", "scripts"),
    [
        (["이 메일 뭐라는 거야?", MAIL, "답장을 써 줘"], "ko", {"ko", "latin"}),
        ([f"이 메일을 요약해 줘\n{MAIL}", MAIL + MAIL, "고마워 그러면 취소할게"], "ko", {"ko", "latin"}),
        ([f"{MAIL}\n\n무슨 뜻이야 이거"], "ko", {"ko", "latin"}),
        ([f"What does 감사합니다 mean?\n{MAIL}"], "latin", {"latin"}),
        (["Please translate this for me", LETTER, "Thanks, now a shorter one"], "latin", {"ko", "latin"}),
        (["서버를 언제 옮기나요", "Kubernetes"], "ko", {"ko"}),
        (["3.14 ?", "42"], None, set()),
    ],
)
def test_each_message_is_judged_by_itself(messages: list[str], language: str | None, scripts: set[str]) -> None:
    said = [HumanMessage(text) for text in messages]
    assert user_language(said) == language
    assert user_scripts([*said, AIMessage("ответ на другом языке")]) == scripts


def test_any_of_the_users_scripts_will_do() -> None:
    for summary in ("사용자가 의자 열두 개를 취소하기로 함", "The user cancels the order of twelve chairs"):
        assert is_written_in(summary, {"ko", "latin"})
        assert not is_written_in(summary, {"ja"})


def test_what_is_said_behind_a_quoted_line_counts() -> None:
    said = HumanMessage("> Please send the twelve chairs back to us\n이 말에 뭐라고 답하면 좋을지 알려 주세요")
    assert user_language([said]) == "ko"
    assert user_scripts([said]) == {"ko"}
