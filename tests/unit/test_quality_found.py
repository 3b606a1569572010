from __future__ import annotations

from pathlib import Path

from bench.quality.archive import search_over
from bench.quality.found import Wanted, noun_queries, ranks, share_within

SENTENCES = ("서울에서 예산을 정했다.", "부산에서 숙소를 골랐다.", "그냥 그랬다.", "좋아하는 사람은 많다.")


def test_the_rank_is_that_of_the_first_right_turn_of_the_real_search(tmp_path: Path) -> None:
    with search_over(tmp_path / "a.db", {"korean": SENTENCES, "other": ("예산은 비밀이다.",)}) as search:
        wanted = [
            Wanted("korean", "예산이", frozenset({1})),
            Wanted("korean", "예산이", frozenset({2})),
            Wanted("korean", "부산의 숙소도", frozenset({2, 3})),
            Wanted("other", "예산까지", frozenset({1})),
            Wanted("korean", "낙하산", frozenset({1})),
        ]
        assert ranks(search, wanted) == [1, 0, 1, 1, 0]


def test_two_nouns_of_a_sentence_are_asked_for_with_other_particles() -> None:
    queries = list(noun_queries(SENTENCES))
    assert [query.turns for query in queries] == [{1}, {2}]
    assert queries == list(noun_queries(SENTENCES))
    first, second = queries[0].query.split()
    assert sorted((first[:2], second[:2])) == ["서울", "예산"]
    assert not {"서울에서", "예산을"} & {first, second}


def test_a_share_counts_places_from_one() -> None:
    assert [share_within([1, 3, 0, 6], most) for most in (1, 3, 5, 10)] == [0.25, 0.5, 0.5, 0.75]
