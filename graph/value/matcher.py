"""Sequence matching with a bounded number of steps, and the differences of two texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import Final, NamedTuple, TypeVar

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


# Including the white space after it, which alone would match everywhere and split changes.
_WORD: Final = re.compile(r"\S+\s*|\s+")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


class Piece(NamedTuple):
    text: str
    is_changed: bool


def differences(old: str, new: str) -> tuple[list[Piece], list[Piece]] | None:
    """Splits both texts into equal and changed pieces: deleted ones in the old text, added ones in the new.

    White space alone is no difference. Texts that take too long to compare by words are compared by lines; None if
    lines take too long, too.
    """
    for part in (_WORD, _LINE):
        try:
            return _differences(part.findall(old), part.findall(new))
        except TooManyStepsError:
            continue
    return None


def _differences(before: Sequence[str], after: Sequence[str]) -> tuple[list[Piece], list[Piece]]:
    left: list[Piece] = []
    right: list[Piece] = []
    matcher = BoundedMatcher([*map(str.strip, before)], [*map(str.strip, after)])
    for kind, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        is_changed = kind != "equal"
        for pieces, parts in ((left, before[old_from:old_to]), (right, after[new_from:new_to])):
            if parts:
                pieces.append(Piece("".join(parts), is_changed))
    return left, right
