from __future__ import annotations

import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.turn import closing_messages
from graph.search.term import (
    MAX_PHRASES,
    broad_words,
    closeness,
    count_content_of,
    count_marks,
    cut_around,
    excerpt,
    has_words,
    index_terms,
    searchable_text,
    strict_words,
    weighed,
    written_words,
)
from tests.fake.term_index import empty_index, indexed, positions_of, ranked

NOUNS = ["예산", "숙소", "회의", "서울", "부산", "여행", "서버", "사과", "나이", "고양이", "제주도", "데이터베이스"]
PARTICLES = ["은", "는", "이", "가", "을", "를", "에", "에서", "으로", "와", "과", "도", "만", "의", "부터", "까지"]


def found(query: str, *texts: str) -> list[str]:
    """Which of the texts SQLite finds by any word of the query, the best first."""
    with empty_index("sqlite://") as connection, indexed(connection, *texts):
        return [texts[position - 1] for position in ranked(connection, query, len(texts))]


def has_all(query: str, text: str) -> bool:
    with empty_index("sqlite://") as connection, indexed(connection, text):
        return bool(positions_of(connection, query)) and has_words(text, strict_words(query))


@given(st.sampled_from(NOUNS), st.sampled_from(["", *PARTICLES]), st.sampled_from(["", *PARTICLES]))
def test_a_noun_is_found_with_and_without_its_particles(noun: str, said: str, asked: str) -> None:
    text = f"그날 {noun}{said} 정했습니다."
    assert found(f"{noun}{asked}", text, "다른 말입니다.") == [text]
    assert has_all(f"{noun}{asked}", text)


@pytest.mark.parametrize("said", ["booking", "booked", "books", "book", "Books"])
@pytest.mark.parametrize("asked", ["booking", "booked", "BOOKS"])
def test_an_english_word_is_found_in_its_other_forms(said: str, asked: str) -> None:
    assert found(asked, f"I have {said} it.", "Nothing here.") == [f"I have {said} it."]


def test_terms_are_those_that_are_in_the_index() -> None:
    """A test that fails here needs a migration that rebuilds the index."""
    text = (
        "Agreed, possibly happily RUNNING relational databases' technologies; hopping filing news universities"
        " s as is os ids URLs k8s mp3s 1990s ies naïve Straße ﬃ добрый ёлка 예산은 집 3월 東京へ OPS-12 user_id"
        " ＡＢＣ㈜ｶﾞｽ"
    )
    assert index_terms(f"{text} {'a' * 70}ing {'a' * 61}ing") == (
        "agre possibl happili run relat databas technolog hop file news universiti"
        " s as is os id url k8s mp3s 1990s ie naiv strass ffi добрыи елка 예산 산은 집 3 월 東京 京へ op 12 user id"
        f" abc 주 ガス {'a' * 64} {'a' * 61}"
    )


def test_threads_that_index_at_once_get_the_same_terms() -> None:
    signs = "bcdfghjklmnpqrstvz"
    texts = [[f"wo{first}{second}{last}rking" for second in signs for last in signs] for first in signs]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            stems = list(threads.map(index_terms, map(" ".join, texts)))
    finally:
        sys.setswitchinterval(interval)
    assert stems == [" ".join(words).replace("ing", "") for words in texts]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("야간버스", "야간 버스를 탔다."),
        ("야간 버스", "야간버스를 탔다."),
        ("돈은 얼마야?", "돈이 모자라다."),
        ("집", "집에서 쉬었다."),
        ("OPS-12는?", "Ticket ops-12 is open."),
        ("user_id", "the user_id column"),
        ("예산", "예산"),
        ("東京", "来週は東京へ行く"),
        ("naïve", "a naive idea"),
        ("3월에", "3월 중순"),
    ],
)
def test_a_word_is_found_however_it_is_written(query: str, text: str) -> None:
    assert found(query, text, "아무것도 아니다.") == [text]


def test_the_text_with_more_of_the_words_comes_first() -> None:
    texts = ["서버를 샀다.", "서버 이전은 10월이다.", "서버 이전 예산은 120만 원이다."]
    assert found("서버 이전 예산", *texts)[0] == texts[2]


def test_stop_words_count_only_where_there_is_nothing_else() -> None:
    assert found("what was the budget?", "what was the plan", "budget: 100") == ["budget: 100"]
    assert broad_words("예산이 얼마였지? 알려줘") == [["예산이", "예산"]]
    assert broad_words("나이에서 알려주세요") == [["나이에서", "나이"]]
    assert found("The Who", "The Who played", "somebody else") == ["The Who played"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("다크모드", "다크 모드로 바꿨다."),
        ("다크모드를", "다크 모드는 나중에 한다."),
        ("다크 모드", "다크모드로 바꿨다."),
        ("데이터베이스이전", "데이터베이스 이전은 금요일이다."),
        ("2.3.1", "v2.3.1-rc.4 is out"),
        ("v2.3.1", "v2.3.1-rc.4 is out"),
        ("deploy", "the deployment on Friday"),
        ("deployment", "we deploy on Friday"),
        ("universities", "a university"),
    ],
)
def test_a_strict_search_finds_other_spellings_of_the_whole_word(query: str, text: str) -> None:
    assert has_all(query, text)
    assert not has_all(query, "다른 모델, 4.5.6")


def test_a_strict_search_needs_every_word() -> None:
    assert has_all("서버 예산은", "서버의 예산을 정했다.")
    assert not has_all("서버 예산은", "서버를 정했다.")


def test_a_strict_search_needs_a_korean_word_whole() -> None:
    apart = "야간 근무, 시간버섯, 버스"
    assert found("야간버스", apart) == [apart]
    assert not has_all("야간버스", apart)
    assert has_all("야간버스는", "야간버스에 탔다.")
    assert has_all("예산은", unicodedata.normalize("NFD", "예산을 정했다."))


COMPATIBLE = [
    ("ＡＢＣ１２３", "ABC123"),
    ("㈜한국", "(주)한국"),
    ("제１조", "제1조"),
    ("ｶﾀｶﾅ", "カタカナ"),
    ("ﾌﾟﾛｸﾞﾗﾑ", "プログラム"),
    ("50㎏", "50kg"),
    ("84㎡", "84m2"),
    ("Ⅳ", "IV"),
    ("②번", "2번"),
    ("㍿", "株式会社"),
    ("㋿", "令和"),
    ("ﾡￂ방", "가방"),
    ("ｏｐｓ－１２", "OPS-12"),
    ("ｕｓｅｒ＠ｅｘａｍｐｌｅ．ｃｏｍ", "user@example.com"),
    ("𝐁𝐮𝐝𝐠𝐞𝐭", "budget"),
    ("ﷺ", "صلى الله عليه وسلم"),
]


@pytest.mark.parametrize(("written", "ordinary"), COMPATIBLE)
def test_compatibility_forms_are_found_by_ordinary_characters_and_the_other_way_round(
    written: str, ordinary: str
) -> None:
    for said, asked in ((written, ordinary), (ordinary, written), (written, written)):
        text = f"그날 {said} 말했다."
        assert has_all(asked, text)
        assert found(asked, text, "아무것도 아니다.") == [text]
        assert count_content_of(text, asked)[0] > 0
        words = broad_words(asked)
        assert closeness(text, weighed(words, [1.0] * len(words)), 100) > 0
        shown = excerpt("가나다 " * 100 + text + " 라마바" * 100, broad_words(asked), 60)
        assert said in shown  # as written, not as searched
        assert said in cut_around("가나다 " * 100 + text + " 라마바" * 100, broad_words(asked), 60)
    assert not has_all(ordinary, "아무것도 아니다.")


@pytest.mark.parametrize(
    ("search", "text", "marks"),
    [
        ("ABC123", "번호는 ＡＢＣ１２３이다", {"ＡＢＣ１２３"}),
        ("한국", "담당은 ㈜한국입니다", {"한국"}),
        ("주", "담당은 ㈜한국입니다", {"㈜"}),
        ("1조", "제１조와 제1조", {"１조", "1조"}),
        ("カタカナ", "これはｶﾀｶﾅです", {"ｶﾀｶﾅ"}),
        ("ＡＢＣ", "the ABC", {"ABC"}),
    ],
)
def test_compatibility_forms_are_marked_as_they_stand(search: str, text: str, marks: set[str]) -> None:
    written = written_words(text, search)
    assert {mark for mark in written if mark in text} == marks


@pytest.mark.parametrize("word", ["x\u1c90y", "\U0001e900z", "a\u0301b", "ǅ", "ﬃ", "x\u09f4"])
def test_a_word_of_signs_that_sqlite_does_not_know_is_one_term(word: str) -> None:
    assert found(word, f"the {word} here", "x y z a b") == [f"the {word} here"]
    assert has_all(word, f"the {word} here")


@pytest.mark.parametrize(
    "query",
    ["", "   ", '"', '""', "AND", "a AND NOT b", "NEAR(a b)", "a*", "^a", "terms:a", "-a", "(", "a)", "{a b}:c", "\x00",
     "'; DROP TABLE said; --", "가*", "*", "🙂", "\u3164", "a" * 10_000, "가" * 10_000, "a b " * 2_500,
     '"가" OR ' * 1_500],
)  # fmt: skip
def test_no_query_breaks_the_search(query: str) -> None:
    found(query, "어떤 말", "a AND b")
    has_all(query, "어떤 말")


@given(st.text(max_size=60))
def test_any_text_is_found_by_its_own_words(text: str) -> None:
    assert found(f"{text} 표지어", f"{text} 표지어", "다른 말") == [f"{text} 표지어"]


@given(st.text(max_size=400))
def test_a_query_has_no_more_phrases_than_the_bound(text: str) -> None:
    assert sum(len(phrases) for phrases in broad_words(text)) <= MAX_PHRASES


@given(st.lists(st.sampled_from([f"{noun}{particle}" for noun in NOUNS for particle in PARTICLES]), min_size=1))
def test_every_word_keeps_its_own_form_before_any_gets_another(words: list[str]) -> None:
    retained = broad_words(" ".join(words))
    assert [phrases[0] for phrases in retained] == list(dict.fromkeys(words))[:MAX_PHRASES]
    assert sum(len(phrases) for phrases in retained) <= MAX_PHRASES


def test_what_recall_found_and_what_nobody_said_is_not_searchable() -> None:
    (closed,) = closing_messages(
        [HumanMessage("안녕")], status="failed", code="x", partial_text="", language="ko", message_id="m"
    )
    silent: list[AnyMessage] = [ToolMessage("3턴: 예산", tool_call_id="c", name="recall"), closed]
    assert [searchable_text(message) for message in silent] == ["", ""]
    said: list[AnyMessage] = [ToolMessage("맑음", tool_call_id="c", name="web_search"), AIMessage("예산은 120만 원")]
    assert [searchable_text(message) for message in said] == ["맑음", "예산은 120만 원"]


def test_an_excerpt_is_the_sentence_that_was_meant() -> None:
    text = "안녕하세요. 회의는 금요일입니다. 서버 예산은 120만 원입니다. 또 봐요."
    assert excerpt(text, broad_words("서버 예산이"), 60) == "서버 예산은 120만 원입니다."
    assert excerpt("We talked. She booked a room.", broad_words("booking"), 60) == "She booked a room."


@given(st.text(max_size=300), st.text(max_size=60), st.integers(min_value=5, max_value=80))
def test_an_excerpt_has_its_length(text: str, query: str, limit_chars: int) -> None:
    assert len(excerpt(text, broad_words(query), limit_chars)) <= limit_chars


@pytest.mark.parametrize("before", [0, 1, 37, 399, 400])
@pytest.mark.parametrize("limit_chars", [30, 100, 777])
def test_a_text_is_cut_around_its_words_wherever_they_stand(before: int, limit_chars: int) -> None:
    text = "가나다 " * before + "예산은 120만 원. " + "라마바 " * (400 - before)
    shown = cut_around(text, broad_words("예산"), limit_chars)
    assert "예산은 120만 원" in shown
    assert len(shown) <= limit_chars
    assert (shown.startswith("…"), shown.endswith("…")) == (
        not text.startswith(shown[:5]),
        not text.endswith(shown[-5:]),
    )


def test_a_long_sentence_is_shown_from_its_word_on_to_its_last() -> None:
    text = "가나다 " * 100 + "예산은 120만 원 " + "라마바 " * 100
    shown = excerpt(text, broad_words("예산"), 60)
    assert "예산은 120만 원" in shown
    assert shown.startswith("…")
    assert excerpt("가나다 " * 100 + "예산은 120만 원 그대로", broad_words("예산"), 40).endswith(
        "예산은 120만 원 그대로"
    )


@pytest.mark.parametrize(
    ("search", "text", "marks"),
    [
        ("10월", "10월 14일부터 10주", {"10월"}),
        ("10월", "월말에 10개", {"10", "월"}),
        ("10월 예산", "10월 예산은 10원", {"10월", "예산"}),
        ("3차", "3차 회의는 13차보다", {"3차"}),
        ("budget", "budgets and a budget", {"budget", "budgets"}),
    ],
)
def test_what_is_searched_in_one_is_marked_in_one(search: str, text: str, marks: set[str]) -> None:
    assert written_words(text, search) == marks


def test_marks_are_counted_as_the_page_marks_them() -> None:
    text = "10월 14일부터 10주, 10월의 예산. Budgets, a budget, and a budgeteer"
    assert [count_marks(text, {mark}) for mark in ("10월", "10", "예산", "budget")] == [2, 3, 1, 1]
    assert count_marks(text, {"budget", "budgets", "10월"}) == 4
    assert count_marks(text, ()) == 0
