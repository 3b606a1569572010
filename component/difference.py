"""Compares two texts by their words."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple

# With the white space behind it: alone, that would be found everywhere, and part what was changed as one.
_WORD = re.compile(r"\S+\s*|\s+")


class Piece(NamedTuple):
    """A run of a text; `is_changed` if the other text doesn't have it there."""

    text: str
    is_changed: bool


def differences(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    """Returns both texts whole, in pieces: what is changed in the old one is gone, in the new one it was added.

    White space alone is no difference.
    """
    before, after = _WORD.findall(old), _WORD.findall(new)
    left: list[Piece] = []
    right: list[Piece] = []
    matcher = SequenceMatcher(None, [*map(str.strip, before)], [*map(str.strip, after)], autojunk=False)
    for kind, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        is_changed = kind != "equal"
        for pieces, words in ((left, before[old_from:old_to]), (right, after[new_from:new_to])):
            if words:
                pieces.append(Piece("".join(words), is_changed))
    return left, right
