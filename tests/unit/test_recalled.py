"""What a model is shown of a look-up: two turns whole, further ones by a sentence, within 1,200 tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from graph.core.text import estimate_tokens
from graph.tool.recall import SEARCH_TOKENS, build_recall, look_up
from graph.tool.tool_context import PastTurns
from graph.value.record import ArchivedMessage
from prompt.system.framing import Language
from prompt.tool import words
from prompt.tool.words import recalled_numbers, recalled_texts

NOW = datetime(2026, 11, 27, tzinfo=UTC)
Exchange = tuple[str, str]


def past_of(
    exchanges: Sequence[Exchange], found: Sequence[int], *, unsaid: Sequence[str] = (), result_chars: int = 10_000
) -> PastTurns:
    def read(first: int, last: int) -> list[ArchivedMessage]:
        return [
            ArchivedMessage(2 * turn, turn, 1, message, len(message.text), 1, NOW)
            for turn in range(first, last + 1)
            for message in (HumanMessage(exchanges[turn - 1][0]), AIMessage(exchanges[turn - 1][1]))
        ]

    return PastTurns(len(exchanges) + 1, result_chars, lambda *_: list(found), read, unsaid=lambda *_: list(unsaid))


def search(past: PastTurns, query: str, language: Language = "ko") -> str:
    return str(build_recall(past, language).invoke({"query": query}))


def whole_turns(result: str) -> list[int]:
    return [int(line.split('"')[1]) for line in result.splitlines() if line.startswith("<turn") and line[-2:] == '">']


KOREAN: list[Exchange] = [
    (
        f"{number}번 안건의 예산은 {number}20만 원입니다. " + "그 밖의 이야기도 길게 했어요. " * 10,
        "적어 두었습니다. " * 60,
    )
    for number in range(1, 13)
]
ENGLISH: list[Exchange] = [
    (f"The budget of item {number} is ${number},200. " + "We went on about other things. " * 12, "I noted it. " * 90)
    for number in range(1, 13)
]


@pytest.mark.parametrize(
    ("exchanges", "query", "language", "fact"),
    [(KOREAN, "예산", "ko", "{}20만 원"), (ENGLISH, "budget", "en", "${},200")],
    ids=["korean", "english"],
)
def test_two_turns_are_whole_and_the_others_a_line_each(
    exchanges: list[Exchange], query: str, language: Language, fact: str
) -> None:
    found = [5, 9, 2, 7, 11, 1, 3, 4, 6, 8, 10]
    result = search(past_of(exchanges, found), query, language)
    assert estimate_tokens(result) <= SEARCH_TOKENS
    assert whole_turns(result) == [5, 9]
    assert recalled_numbers(result) == (2, 5, 7, 9, 11)
    by_line = {shown.turn: shown.text for shown in recalled_texts(result) if shown.turn not in (5, 9)}
    assert by_line == {number: exchanges[number - 1][0].partition(". ")[0] + "." for number in (2, 7, 11)}
    assert all(fact.format(number) in result for number in found[:5])
    assert words.recall_excerpts([2, 7, 11], language) in result
    assert words.recall_more([4, 6, 8, 10, 12], [1, 3, 4, 6, 8], language)[-40:] in result


def test_short_turns_are_shown_word_for_word() -> None:
    exchanges = [("예산은 120만 원이에요.", "네, 적었습니다."), ("숙소는 서면이에요.", "좋은 곳이죠.")]
    result = search(past_of(exchanges, [2, 1]), "숙소 예산")
    assert whole_turns(result) == [2, 1]
    assert [shown.text for shown in recalled_texts(result)] == [*exchanges[1], *exchanges[0]]
    assert estimate_tokens(result) < 300


def test_the_best_turn_has_more_of_the_room_than_the_second() -> None:
    long = "가나다라 마바사 " * 300
    result = search(past_of([(long, long), (long, long)], [1, 2]), "아자차")
    shown = dict.fromkeys((1, 2), 0)
    for text in recalled_texts(result):
        shown[text.turn] += len(text.text)
    assert 1.2 * shown[2] < shown[1] < 2 * shown[2]


# A query, an exchange whose answer has what is asked for somewhere in a long text, and that.
LONG: list[tuple[Language, str, str, str, str]] = [
    (
        "ko",
        "보안 점검에서 한도윤의 11번째 요청의 접수 번호",
        "보안 점검에서 한도윤의 11번째 요청을 처리하려면요?",
        "접수 번호는 NB-0011305예요.",
        "점검 요청은 따로 받습니다. ",
    ),
    (
        "en",
        "ticket number of Moore's request 163 about the security review",
        "What comes first for request 163 of Moore about the security review?",
        "The ticket number is ZL-0163665.",
        "The review goes on for Moore. ",
    ),
]


@pytest.mark.parametrize("before", [0, 20, 40, 79, 80])
@pytest.mark.parametrize(("language", "query", "question", "fact", "filler"), LONG, ids=["korean", "english"])
def test_a_turn_is_cut_around_what_its_question_lacks(
    language: Language, query: str, question: str, fact: str, filler: str, before: int
) -> None:
    exchange = question, filler * before + fact + " " + filler * (80 - before)
    exchanges = [exchange] * 4
    for found in ([1, 2], [3, 4, 1, 2]):
        result = search(past_of(exchanges, found), query, language)
        assert [
            fact.rsplit(maxsplit=1)[-1][:9] in text.text
            for text in recalled_texts(result)
            if text.speaker == "assistant"
        ] == [True] * len(found)


# What closes with a question, the beginning of the next message, and what is shown of it.
ASKED: list[tuple[Language, str, str, str]] = [
    (
        "ko",
        "이전 순서는 이렇습니다. MSSQL 에디션은 무엇을 쓰시나요?",
        "Standard예요. 그리고 백업은 매일 합니다.",
        "Standard예요. 그리고 백업은 매일 합니다.",
    ),
    (
        "ko",
        "두 가지가 있습니다. 어느 쪽으로 할까요?\n1. 바로 옮기기\n2. 나눠서 옮기기",
        "네. 2번으로 나눠서 옮깁시다. 날짜는 다음에요.",
        "네. 2번으로 나눠서 옮깁시다.",
    ),
    (
        "ko",
        "**MSSQL 에디션을 알려 주세요.**",
        "스탠더드 2019를 쓰고 있어요. 다른 건 없어요.",
        "스탠더드 2019를 쓰고 있어요.",
    ),
    ("en", "Which MSSQL edition is it?", "It is Standard 2019. We also have backups.", "It is Standard 2019."),
    (
        "en",
        "The MSSQL edition matters here. Let me know which one you run.",
        "Standard. The rest is as planned.",
        "Standard. The rest is as planned.",
    ),
]


@pytest.mark.parametrize(("language", "answer", "reply", "shown"), ASKED)
def test_a_closing_question_brings_the_beginning_of_the_reply(
    language: Language, answer: str, reply: str, shown: str
) -> None:
    exchanges = [("DB 이전 계획을 세워 줘", answer), (reply + " 길게 이어집니다." * 200, "알겠습니다.")]
    result = search(past_of([*exchanges, ("날씨", "맑음")], [1]), "MSSQL 에디션", language)
    assert whole_turns(result) == [1]
    assert [text.text for text in recalled_texts(result) if text.turn == 2] == [shown]
    found = look_up(past_of([*exchanges, ("날씨", "맑음")], [1]), "DB 이전 계획은?", {1}, language, max_tokens=900)
    assert [text.text for text in recalled_texts(found) if text.turn == 2] == [shown]


@pytest.mark.parametrize("answer", ["에디션은 Standard입니다.", "무엇일까요? 답은 하나입니다. 둘입니다. 셋입니다. 끝."])
def test_an_answer_that_asks_nothing_at_its_end_brings_no_reply(answer: str) -> None:
    exchanges = [("DB 이전", answer), ("Standard예요.", "네.")]
    assert recalled_numbers(search(past_of(exchanges, [1]), "에디션")) == (1,)


def test_a_reply_is_not_repeated_and_never_the_open_turn_or_a_forgotten_one() -> None:
    exchanges = [("DB 이전", "에디션은 무엇인가요?"), ("Standard예요.", "언제 옮길까요?")]
    assert search(past_of(exchanges, [1, 2]), "에디션").count("Standard예요.") == 1
    assert recalled_numbers(search(past_of(exchanges, [2]), "언제")) == (2,)
    by_line = search(past_of([*exchanges, *exchanges], [3, 4, 1]), "에디션")
    assert [text.text for text in recalled_texts(by_line) if text.turn == 2] == ["Standard예요."]


def test_words_that_nobody_said_are_named() -> None:
    exchanges = [("예산은 120만 원이에요.", "네.")]
    assert "대화에 없는 말: 여권, KX-7781." in search(past_of(exchanges, [1], unsaid=("여권", "KX-7781")), "여권 예산")
    result = search(past_of(exchanges, [1], unsaid=("passport",)), "passport", "en")
    assert "Not said anywhere: passport." in result
    assert "Not said" not in search(past_of(exchanges, [1]), "예산", "en")


MEASURES: list[Callable[[int], str]] = [
    lambda number: "가나다 " * number,
    lambda number: "word. " * number,
    lambda number: "1234567890" * number,
    lambda number: "<turn number='1'> { } [ ] \n" * number,
    lambda number: "😀한a1 " * number,
]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 2_000), st.integers(1, 2_000)), min_size=1, max_size=12),
    st.sampled_from([1_000, 3_000, 10_000]),
    st.sampled_from(["ko", "en"]),
)
def test_a_search_has_at_most_its_tokens_and_a_tool_result_its_characters(
    sizes: list[tuple[int, int, int]], result_chars: int, language: Language
) -> None:
    exchanges = [(MEASURES[kind](asked), MEASURES[kind](answered) + "\n무엇인가요?") for kind, asked, answered in sizes]
    found = list(range(len(exchanges), 0, -1))
    past = past_of(exchanges, found, result_chars=result_chars, unsaid=["낙하산"] * 12)
    result = search(past, "가나다 word 무엇", language)
    assert estimate_tokens(result) <= SEARCH_TOKENS
    assert len(result) <= result_chars
    assert result.count("<turn ") == result.count("</turn>")


def test_turns_that_are_read_by_number_may_fill_a_tool_result() -> None:
    result = str(build_recall(past_of(KOREAN, []), "ko").invoke({"turns": "1-12"}))
    assert estimate_tokens(result) > SEARCH_TOKENS
    assert 9_000 < len(result) <= 10_000
    both = str(build_recall(past_of(KOREAN, [3, 5]), "ko").invoke({"turns": "3-5", "query": "예산"}))
    assert whole_turns(both) == [3, 5]


def test_what_does_not_fit_before_a_question_is_left_out() -> None:
    assert look_up(past_of(KOREAN, [1]), "1번 안건의 예산", {1}, "ko", max_tokens=200) == ""
    assert 0 < estimate_tokens(look_up(past_of(KOREAN, [1, 2]), "안건의 예산", {1, 2}, "ko", max_tokens=600)) <= 600
    assert recalled_numbers(look_up(past_of(KOREAN, [1, 2]), "안건의 예산", {1, 2}, "ko", max_tokens=5_000)) == (1, 2)


# A query, what was said of it turn by turn, and the turns: whole, and by a line.
UPDATES: list[tuple[Language, str, list[str], list[int], list[int]]] = [
    (
        "ko",
        "사진 몇 점",
        [
            "전시할 사진은 모두 48점이에요.",
            "도록에는 사진을 안 실어요.",
            "겹치는 사진 9점을 빼서 39점이 남았어요.",
            "사진 두 점을 더 찾았어요. 그래서 41점이에요.",
        ],
        [4, 2],
        [3, 1],
    ),
    (
        "en",
        "how many photos",
        [
            "We hang 48 photos in all.",
            "No photos in the catalogue.",
            "Nine photos are double, which leaves 39 photos.",
            "I found two more photos. So now there are 41 photos.",
        ],
        [4, 2],
        [3, 1],
    ),
    ("ko", "회의 시각", ["회의는 3시예요.", "회의를 4시로 옮겼어요."], [2], [1]),
    ("en", "budget", ["The budget is $900.", "We raised the budget to $1,200."], [2], [1]),
    ("ko", "예산", ["숙소 예산은 50만 원이에요.", "식비 예산은 30만 원이에요."], [1, 2], []),
    ("en", "budget", ["The budget for food is $900.", "The budget for rooms is $1,200."], [1, 2], []),
]


@pytest.mark.parametrize(("language", "query", "said", "whole", "lines"), UPDATES)
def test_of_turns_on_one_thing_the_newest_is_whole_and_the_older_ones_are_what_was_before(
    language: Language, query: str, said: list[str], whole: list[int], lines: list[int]
) -> None:
    exchanges = [(text, "적어 두었습니다." if language == "ko" else "I noted it.") for text in said]
    result = search(past_of(exchanges, range(1, len(said) + 1)), query, language)
    order = [int(line.split('"')[1]) for line in result.splitlines() if line.startswith("<turn")]
    assert (order, whole_turns(result)) == ([*whole, *lines], whole)
    assert [f'<turn number="{number}" date="2026-11-27" before="{whole[0]}">' in result for number in lines] == [
        True
    ] * len(lines)
    assert (words.recall_before(dict.fromkeys(lines, whole[0]), language) in result) or not lines


@pytest.mark.parametrize(
    ("language", "query", "answer", "shown"),
    [
        (
            "ko",
            "패널 몇 장",
            "패널은 튼튼하고 패널 걸이는 따로예요. 겹치는 것을 뺐어요. 그래서 패널이 17장이에요. 좋지요.",
            "그래서 패널이 17장이에요.",
        ),
        (
            "en",
            "number of panels",
            "Panels and their hooks are sold apart, panels are heavy. In the end it is 17 panels. Fine.",
            "In the end it is 17 panels.",
        ),
        (
            "en",
            "when is the opening",
            "The opening is well prepared. Doors at 7 pm on March 8.",
            "Doors at 7 pm on March 8.",
        ),
    ],
)
def test_an_excerpt_is_the_sentence_with_the_asked_value(
    language: Language, query: str, answer: str, shown: str
) -> None:
    exchanges = [("다른 이야기", "네."), ("또 다른 이야기", "네."), ("계속하죠", answer)]
    result = search(past_of(exchanges, [1, 2, 3]), query, language)
    assert [text.text for text in recalled_texts(result) if text.turn == 3] == [shown]


def test_each_turn_has_the_day_when_it_was_said_in_the_users_zone() -> None:
    past = replace(past_of([("예산은 120만 원이에요.", "네.")] * 3, [1]), time_zone="America/New_York")
    assert '<turn number="1" date="2026-11-26">' in search(past, "예산")
    assert '<turn number="2" date="2026-11-26">' in str(build_recall(past, "ko").invoke({"turns": "2-3"}))
    assert recalled_numbers(str(build_recall(past, "ko").invoke({"turns": "2-3"}))) == (2, 3)
