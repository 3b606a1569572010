from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graph.search.stem import stem
from tests.fake.drawn import at_most

ENDINGS = (
    "s ss sses ies eed ed ing at bl iz y ational tional enci anci izer logi bli alli entli eli ousli ization ation "
    "ator alism iveness fulness ousness aliti iviti biliti ical ness icate iciti ful ative alize al ance ence er ic "
    "able ible ant ement ment ent ion sion tion ou ism ate iti ous ive ize e ll yy ay oy"
)
PARTS = st.sampled_from(ENDINGS.split())
LETTERS = st.sampled_from("abcdefghijklmnopqrstuvwxyz") | st.sampled_from("aeiouylstз가त9")
WORDS = st.builds(str.__add__, st.text(LETTERS, max_size=8), st.lists(PARTS, max_size=3).map("".join)).filter(bool)


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE said USING fts5(word, tokenize='porter ascii')")
        connection.execute("CREATE VIRTUAL TABLE term USING fts5vocab(said, row)")
        yield connection


@settings(max_examples=at_most(4_000))
@given(WORDS)
@example("a" * 62 + "ing")
@example("a" * 61 + "ing")
@example("nationalities")
@example("caresses")
@example("agreed")
@example("aed")
@example("hopping")
@example("filing")
@example("sses")
@example("ies")
@example("가ing")
def test_a_stem_is_what_sqlite_makes_of_the_word(index: sqlite3.Connection, word: str) -> None:
    index.execute("DELETE FROM said")
    index.execute("INSERT INTO said VALUES (?)", (word,))
    (found,) = index.execute("SELECT CAST(term AS BLOB) FROM term").fetchone()
    assert stem(word) == found.decode(errors="replace")
