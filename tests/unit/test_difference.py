from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from component.difference import differences

TEXTS = st.text(max_size=60) | st.lists(
    st.sampled_from(["가격은", "100만", "원", "👍", "\x00", "\n", " ", "  ", "not", "", "가" * 200]), max_size=40
).map(" ".join)


@given(TEXTS, TEXTS)
def test_both_texts_come_back_whole(old: str, new: str) -> None:
    before, after = differences(old, new)
    assert "".join(piece.text for piece in before) == old
    assert "".join(piece.text for piece in after) == new


@given(TEXTS, TEXTS)
def test_the_same_words_stand_unmarked_in_both(old: str, new: str) -> None:
    kept = ["".join(piece.text for piece in side if not piece.is_changed).split() for side in differences(old, new)]
    assert kept[0] == kept[1]


@given(TEXTS)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert not any(piece.is_changed for side in differences(text, text) for piece in side)


def test_whole_words_are_marked_and_what_was_changed_as_one_is_marked_as_one() -> None:
    before, after = differences("배포는 14일이다.\n담당은 민수", "배포는 이번 달 21일이다.\n담당은 민수")
    assert [piece.text for piece in before] == ["배포는 ", "14일이다.\n", "담당은 민수"]
    assert [piece.text for piece in before if piece.is_changed] == ["14일이다.\n"]
    assert [piece.text for piece in after if piece.is_changed] == ["이번 달 21일이다.\n"]
