"""Compares two texts by their words or, if that takes too long, by their lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from graph.value.matcher import BoundedMatcher, TooManyStepsError

# With the white space behind it: alone, that would be found everywhere, and part what was changed as one.
_WORD: Final = re.compile(r"\S+\s*|\s+")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


class Piece(NamedTuple):
    """A run of a text; `is_changed` if the other text doesn't have it there."""

    text: str
    is_changed: bool


def differences(old: str, new: str) -> tuple[list[Piece], list[Piece]] | None:
    """Returns both texts whole, in pieces: what is changed in the old one is gone, in the new one it was added.

    White space alone is no difference. Texts that take too long to compare by words are compared by lines; None if that
    takes too long, too.
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
