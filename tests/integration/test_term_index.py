from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from graph.store.postgres.vector_index import split_terms
from tests.fake.drawn import at_most
from tests.fake.postgres import PostgresServer
from tests.fake.term_index import SESSION, empty_index, indexed, positions_of, ranked

KOREAN = (
    "예산 예산은 서버 서버의 야간버스 야간 버스에서 비밀 비밀번호 번호 밀번 집 집에 한강 강가 3월 120만 東京へ 京都"
)
ENGLISH = "booking booked books the what OPS-12 user_id naïve naive ﬃ relational relate"
WORDS = st.sampled_from(f"{KOREAN} {ENGLISH}".split())
TEXTS = st.lists(WORDS | st.text(max_size=8), max_size=12).map(" ".join)
SIGNS = "\" ' '' \\ \\' ':* ( ) !b <-> :* * % $1 {a} :a 강* ''; \x00 🙂 \u202e"
LONG = ["", " ", "a & b", "a | !b", "a <-> b", "x" * 10_000, "가" * 10_000, "가나 " * 3_000, "a b " * 2_500]


@pytest.fixture(scope="module")
def postgres_connection(postgres: PostgresServer) -> Iterator[Connection]:
    url = postgres.make_database()
    with empty_index(url) as connection:
        yield connection
    postgres.drop_database(url)


@pytest.fixture(scope="module")
def sqlite() -> Iterator[Connection]:
    with empty_index("sqlite://") as connection:
        yield connection


@pytest.mark.slow
@pytest.mark.postgres
@settings(max_examples=at_most(300), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TEXTS, max_size=6), TEXTS)
@example(["비밀 밀번 번호", "비밀번호"], "비밀번호")
@example(["한강", "강가", "강"], "강은")
@example(["a'b\\c", "x"], "a'b\\c")
def test_both_databases_find_the_same_messages_and_the_same_one_first(
    sqlite: Connection, postgres_connection: Connection, texts: list[str], query: str
) -> None:
    found = []
    for connection in (sqlite, postgres_connection):
        with indexed(connection, *texts):
            found.append((ranked(connection, query, len(texts)), positions_of(connection, query)))
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.postgres
def test_no_query_and_no_text_breaks_the_search(postgres_connection: Connection) -> None:
    for query in (*SIGNS.split(" "), *LONG):
        with indexed(postgres_connection, query, f"{query} 표지어"):
            ranked(postgres_connection, query, 2)
            positions_of(postgres_connection, query)
            assert positions_of(postgres_connection, "표지어") == [2]


def long_text(words: int) -> str:
    """Korean of ever different pairs of signs, as no vector has room for."""
    signs = [chr(ord("가") + number * 7_919 % 11_172) for number in range(words)]
    return "".join(f"{first}{chr(ord('가') + number % 11_171)} " for number, first in enumerate(signs))


@pytest.mark.slow
@pytest.mark.postgres
def test_a_message_that_no_vector_holds_is_found_by_words_of_its_beginning_middle_and_end(
    postgres_connection: Connection,
) -> None:
    said = f"처음말 {long_text(120_000)} 가운뎃말 {long_text(120_000)[::-1]} 마지막말"
    with indexed(postgres_connection, "다른 말", said):
        parts = text("SELECT count(*), min(part), max(part) FROM message_search WHERE position = 2")
        assert tuple(postgres_connection.execute(parts).one()) == (3, 1, 3)
        for query in ("처음말", "가운뎃말", "마지막말", "처음말 마지막말", "처음말 가운뎃말 마지막말"):
            assert ranked(postgres_connection, query, 2)[0] == 2
            assert positions_of(postgres_connection, query) == [2]
        assert positions_of(postgres_connection, "처음말 낙하산") == []


@given(
    st.lists(
        st.sampled_from(["가나", "running", "x"]) | st.text(st.characters(categories=["Ll", "Lo"]), min_size=1),
        max_size=50,
    )
)
def test_a_message_of_few_terms_has_each_of_them_once_in_one_part(terms: list[str]) -> None:
    parts = list(split_terms(" ".join(terms)))
    assert len(parts) <= 1
    assert all(len(set(part)) == len(part) for part in parts)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_session_that_is_deleted_takes_its_rows_along(postgres_connection: Connection) -> None:
    with indexed(postgres_connection, "예산"):
        postgres_connection.execute(text("DELETE FROM session WHERE session_id = :it"), {"it": SESSION})
        assert positions_of(postgres_connection, "예산") == []
