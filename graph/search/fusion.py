"""Merges the rankings of two searches of the same items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Final

# Of Cormack, Clarke and Büttcher (2009), who introduced the method and found that other values change little.
_K: Final = 60
# Further down, two rankings agree by chance, which would put such an item before the best of one of them.
_FUSED: Final = 10


def fuse(by_words: Sequence[int], by_meaning: Sequence[int]) -> list[int]:
    """Returns the first ten of both rankings by reciprocal rank fusion, then the rest of the first ranking.

    An item's score is the sum of 1 / (60 + rank), ranks from 1. Of equal ones that of the first ranking goes first.
    """
    scores: dict[int, float] = defaultdict(float)
    for ranking in (by_words, by_meaning):
        for rank, item in enumerate(ranking[:_FUSED], start=1):
            scores[item] += 1 / (_K + rank)
    fused = sorted(scores, key=lambda item: -scores[item])
    return list(dict.fromkeys(chain(fused, by_words)))
