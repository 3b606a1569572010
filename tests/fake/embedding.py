"""Vectors without a model: words that mean the same, and forms of a word, point in the same direction."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from typing import Final

SIZE: Final = 64
# Each word, by how it begins, stands for the first of its group.
_SYNONYMS: Final = (
    ("예산", "비용", "경비", "budget", "cost", "expense"),
    ("숙소", "호텔", "묵을", "hotel", "lodging", "stay"),
    ("자동차", "차량", "렌터카", "car", "vehicle", "rental"),
    ("의사", "병원", "진료", "doctor", "physician", "clinic"),
)
_GROUP: Final[Mapping[str, str]] = {word: group[0] for group in _SYNONYMS for word in group}
_WORD: Final = re.compile(r"[가-힣]+|[a-z]+|\d+")


def meaning_of(text: str) -> list[float]:
    """Returns the vector of a text: a hashed bag of its words, those of a group as one."""
    vector = [0.0] * SIZE
    for word in _WORD.findall(text.lower()):
        stem = next((group for begin, group in _GROUP.items() if word.startswith(begin)), word[:2])
        digest = hashlib.sha256(stem.encode()).digest()
        vector[digest[0] % SIZE] += 1.0 if digest[1] % 2 else -1.0
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]
