from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from graph.core.language import is_written_in, session_language, system_language, user_language, user_scripts

MAIL = (
    "Dear Mr Kim, thank you for your order of twelve chairs. We are sorry to tell you that the delivery is late by two "
    "weeks, because the ship has to wait at the port. Please let us know whether you still want them. Kind regards, Ann"
)
LETTER = "안녕하세요 고객님 주문하신 의자 열두 개가 항구 사정으로 이 주 늦게 도착합니다 그래도 받으실지 알려 주세요"


@pytest.mark.parametrize(
    ("messages", "language", "scripts"),
    [
        (["서버를 언제 옮기나요"], "ko", {"ko"}),
        (["Python 3.13 asyncio TaskGroup 예제 보여 줘"], "ko", {"ko", "latin"}),
        (["Please translate `안녕하세요 여러분` for me"], "latin", {"latin"}),
        (['What does "서버를 옮기다" mean in English'], "latin", {"latin"}),
        (["What does “서버를 옮기다” or 「서버를 끄다」 mean in English"], "latin", {"latin"}),
        (["A mark that\nnothing “closes 그 줄에서 그대로 둔다\n끝” 여기도"], "ko", {"ko", "latin"}),
        (["```\n# 한국어 주석입니다 여러분\n```\nexplain this code"], "latin", {"latin"}),
        (["サーバーはいつ移行しますか"], "ja", set()),  # too few words to hold a summary to its script
        (["我们什么时候迁移服务器"], "zh", set()),
        (["12345 !!"], None, set()),
        (["3.14 ?", "42"], None, set()),
        # Each message is judged by itself, and what is quoted or pasted has no vote.
        (["이 메일 뭐라는 거야?", MAIL, "답장을 써 줘"], "ko", {"ko", "latin"}),
        ([f"이 메일을 요약해 줘\n{MAIL}", MAIL + MAIL, "고마워 그러면 취소할게"], "ko", {"ko", "latin"}),
        ([f"{MAIL}\n\n무슨 뜻이야 이거"], "ko", {"ko", "latin"}),
        ([f"What does 감사합니다 mean?\n{MAIL}"], "latin", {"latin"}),
        (["Please translate this for me", LETTER, "Thanks, now a shorter one"], "latin", {"ko", "latin"}),
        (["서버를 언제 옮기나요", "Kubernetes"], "ko", {"ko"}),
        (
            ["> Please send the twelve chairs back to us\n이 말에 뭐라고 답하면 좋을지 알려 주세요"],
            "ko",
            {"ko"},
        ),
    ],
)
def test_language_is_that_of_the_users_own_words(messages: list[str], language: str | None, scripts: set[str]) -> None:
    said: list[AnyMessage] = [*map(HumanMessage, messages), AIMessage("ответ на другом языке")]
    assert user_language(said) == language
    assert user_scripts(said) == scripts


KOREAN, ENGLISH = "사용자가 의자 열두 개를 취소하기로 함", "The user cancels the order of twelve chairs"


def test_another_language_of_a_summary_is_noticed() -> None:
    terms = "Python 3.13 free-threaded build 와 JIT compiler 를 설명함"
    for summary, scripts in ((terms, {"ko"}), (KOREAN, {"ko", "latin"}), (ENGLISH, {"ko", "latin"})):
        assert is_written_in(summary, scripts)
    for summary, scripts in ((ENGLISH, {"ko"}), (KOREAN, {"latin"}), (KOREAN, {"ja"}), (ENGLISH, {"ja"})):
        assert not is_written_in(summary, scripts)
    # Nothing is claimed where nothing can be told.
    assert is_written_in("OK", {"ko"})
    assert is_written_in("anything at all goes here", set())


def test_first_message_with_words_decides_the_language_of_the_fixed_words() -> None:
    languages = {
        "서버 이전 날짜를 정해 줘": "ko",
        "When do we move the server?": "en",
        "サーバーはいつ移しますか": "en",
        "```\nprint(1)\n```": "ko",
    }
    assert {opening: session_language([HumanMessage(opening)]) for opening in languages} == languages
    assert session_language([]) == "ko"


@pytest.mark.parametrize(
    "wordless",
    [
        '"Say hello to Ann, please."',
        "“내일 회의를 잡아 줘”",
        "https://example.org/a/b",
        "`make test`",
        "```python\nprint('hello world')\n```",
        "> On Monday we move the server.",
        '{"a": 1}',
        "1200",
        "2+2?",
        "👍",
        "",
    ],
)
def test_what_has_no_words_of_ones_own_decides_no_language(wordless: str) -> None:
    quiet = HumanMessage(wordless)
    assert session_language([quiet], "en") == "en"
    assert session_language([quiet], "ko") == "ko"
    assert session_language([quiet, HumanMessage("내일 회의를 잡아 줘")], "en") == "ko"
    assert session_language([quiet, HumanMessage("Plan tomorrow's meeting")], "ko") == "en"
    assert system_language(wordless) is None
