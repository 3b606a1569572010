"""Merges rankings of the same items by different searches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

# Of Cormack, Clarke and Büttcher (2009), who introduced the method and found that other values change little.
_K: Final = 60


def fuse(*rankings: Iterable[int]) -> list[int]:
    """Returns the items of all rankings by reciprocal rank fusion: the sum of 1 / (60 + rank), ranks from 1.

    Of equal items the one of the earlier ranking goes first.
    """
    scores: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] += 1 / (_K + rank)
    return sorted(scores, key=lambda item: -scores[item])
