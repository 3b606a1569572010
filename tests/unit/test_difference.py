from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.value.matcher import Piece, differences

TEXTS = st.text(max_size=60) | st.lists(
    st.sampled_from(["가격은", "100만", "원", "👍", "\x00", "\n", " ", "  ", "not", "", "가" * 200]), max_size=40
).map(" ".join)


def compared(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    sides = differences(old, new)
    assert sides is not None
    return sides


@given(TEXTS, TEXTS)
def test_both_texts_come_back_whole(old: str, new: str) -> None:
    before, after = compared(old, new)
    assert "".join(piece.text for piece in before) == old
    assert "".join(piece.text for piece in after) == new


@given(TEXTS, TEXTS)
def test_the_same_words_stand_unmarked_in_both(old: str, new: str) -> None:
    retained = ["".join(piece.text for piece in side if not piece.is_changed).split() for side in compared(old, new)]
    assert retained[0] == retained[1]


@given(TEXTS)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert not any(piece.is_changed for side in compared(text, text) for piece in side)


def test_whole_words_are_marked_and_what_was_changed_as_one_is_marked_as_one() -> None:
    before, after = compared("배포는 14일이다.\n담당은 민수", "배포는 이번 달 21일이다.\n담당은 민수")
    assert [piece.text for piece in before] == ["배포는 ", "14일이다.\n", "담당은 민수"]
    assert [piece.text for piece in before if piece.is_changed] == ["14일이다.\n"]
    assert [piece.text for piece in after if piece.is_changed] == ["이번 달 21일이다.\n"]


def repeated(parts: str, between: str, count: int, seed: int) -> str:
    return between.join(random.Random(seed).choices(parts, k=count))  # noqa: S311  # the same each time, for a test


REFERENCES = "a [a]: b\n" * 1_600


# Compared by words, the first pair takes ten minutes.
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (REFERENCES, REFERENCES[::-1]),
        ("a\n" * 7_200, "a b\n" * 3_600),
        (repeated("abcd", " ", 7_200, 1), repeated("abcd", " ", 7_200, 2)),
    ],
    ids=["references", "all the same word", "four words"],
)
def test_words_that_repeat_too_often_are_compared_by_lines(old: str, new: str) -> None:
    before, after = compared(old, new)
    assert (before, after) == ([Piece(old, is_changed=True)], [Piece(new, is_changed=True)])
    before, after = compared(f"The same first line.\n{old}", f"The same first line.\n{new}")
    assert before[0] == after[0] == Piece("The same first line.\n", is_changed=False)
    assert (before[1:], after[1:]) == ([Piece(old, is_changed=True)], [Piece(new, is_changed=True)])


def test_lines_that_repeat_too_often_are_not_compared() -> None:
    assert differences(repeated("abcd", "\n", 7_200, 1), repeated("abcd", "\n", 7_200, 2)) is None


def test_a_long_text_in_which_words_repeat_as_in_any_other_is_compared_by_words() -> None:
    numbers = [f"word{random.Random(index).paretovariate(0.5):.0f}" for index in range(5_000)]  # noqa: S311  # as above
    before, after = compared(" ".join(numbers), " ".join([*numbers[:2_000], "added ", *numbers[2_000:]]))
    assert [piece.text.strip() for piece in (*before, *after) if piece.is_changed] == ["added"]
