from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graph.search.fusion import fuse

RANKING = st.lists(st.integers(1, 60), unique=True, max_size=40)


def test_what_both_rankings_have_goes_before_the_best_of_one() -> None:
    assert fuse([1, 2, 3], [4, 3, 5]) == [3, 1, 4, 2, 5]
    assert fuse([], [2, 1]) == [2, 1]
    assert fuse([2, 1], []) == [2, 1]


def test_ranks_behind_the_tenth_count_nothing() -> None:
    words, meaning = list(range(1, 21)), [100, *range(101, 110), *range(11, 21)]
    fused = fuse(words, meaning)
    assert fused[:4] == [1, 100, 2, 101]
    assert fused[20:] == list(range(11, 21))


@given(RANKING, RANKING)
def test_each_item_is_there_once_and_the_same_ranking_twice_changes_nothing(
    words: list[int], meaning: list[int]
) -> None:
    fused = fuse(words, meaning)
    assert len(fused) == len(set(fused))
    assert set(fused) == {*words, *meaning[:10]}
    assert fuse(words, words) == words
