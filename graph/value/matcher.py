"""Sequence matching with a bounded number of steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import Final, TypeVar

# At most a third of a second. Two different texts of 5,000 words of prose take fewer.
_STEPS: Final = 6_000_000
_T = TypeVar("_T", bound=Hashable)


class TooManyStepsError(Exception):
    """The lists can't be compared in time."""


class BoundedMatcher(SequenceMatcher[_T]):
    """A `SequenceMatcher` that raises `TooManyStepsError` after too many comparisons.

    Without repeated items, time can grow with the cube of the length: there is a search for each run of equal items.
    """

    def __init__(self, before: Sequence[_T], after: Sequence[_T]) -> None:
        super().__init__(None, before, after, autojunk=False)
        counts = Counter(after)
        self._steps = list(accumulate((1 + counts[item] for item in before), initial=0))
        self._left = _STEPS

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        self._left -= self._steps[-1 if ahi is None else ahi] - self._steps[alo]
        if self._left < 0:
            raise TooManyStepsError
        return super().find_longest_match(alo, ahi, blo, bhi)
