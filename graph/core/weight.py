"""Weighs sentences: by how rare their terms are in the session, and by the kinds of things that they say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from math import log
from typing import Final

from graph.core.fact_wish import is_rule
from graph.core.sentence import DATE, INTRODUCTION, content_terms

_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NUMBER_WORD: Final = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|dozen)\b"
    r"|(?<![가-힣])(?:한|두|세|네|다섯|여섯|일곱|여덟|아홉|열|스무)\s?(?:개|명|번|시|살|장|권|대|달|주|가지|곳|분)(?![가-힣]{2})",
    re.IGNORECASE,
)
_IDENTIFIER: Final = re.compile(
    r"https?://|\b\w+[_/@]\w+|\b[A-Za-z]+-?\d+|\b\d+\.\d+|\b[a-z]+[A-Z]\w+|`[^`]+`|\b[A-Z]{2,}\b"
)
_NAME: Final = re.compile(
    r"(?<=[a-z,;:’'—] )[A-Z][a-z][\w’'-]*|[가-힣]{2,4}(?:님|씨)(?![가-힣])"
    r"|[「『《“‘][^「」『』《》“”‘’]{2,40}[」』》”’]"
)
_DECISION: Final = re.compile(
    r"결정|확정|하기로|정했|예정|마감|변경|바꾸|바꿔|바꿀|취소|선호|예산|기한"
    r"|\b(?:decided|decision|agreed|chose|chosen|settled on|go(?:ing)? with|confirmed|deadline|due|cancel|instead of"
    r"|budget)",
    re.IGNORECASE,
)
# A pattern, the weight of a match, and how many matches in a sentence count.
_KINDS: Final = (
    (_NUMBER, 1.0, 3),
    (_NUMBER_WORD, 1.0, 2),
    (DATE, 0.7, 1),
    (_IDENTIFIER, 0.7, 1),
    (_NAME, 0.7, 3),
    (INTRODUCTION, 0.7, 1),
    (_DECISION, 1.2, 1),
)
_RULE_WEIGHT: Final = 2.0


@dataclass(frozen=True)
class TermCounts:
    """In how many texts each content term occurs.

    Attributes:
        texts: How many texts were counted.
        by_term: The number of texts with the term; terms of no text may be absent.
    """

    texts: int
    by_term: Mapping[str, int]

    def rarity(self, term: str) -> float:
        """Returns how much a term says: its smoothed inverse document frequency, `ln(1 + N / (1 + n))`, above 0."""
        return log(1 + self.texts / (1 + self.by_term.get(term, 0)))


def count_terms(texts: Iterable[str], before: TermCounts | None = None) -> TermCounts:
    """Counts the terms of texts, e.g. of all messages of a session.

    Args:
        texts: The texts.
        before: Earlier texts' counts, to be added to.
    """
    by_term = Counter(before.by_term if before else ())
    number = before.texts if before else 0
    for text in texts:
        by_term.update(content_terms(text))
        number += 1
    return TermCounts(number, by_term)


def weigh_kinds(sentence: str) -> float:
    """Returns the weight of numbers, dates, identifiers, names, introductions, decisions and rules in a sentence."""
    found = ((weight, islice(pattern.finditer(sentence), most)) for pattern, weight, most in _KINDS)
    return _RULE_WEIGHT * is_rule(sentence) + sum(weight * sum(1 for _ in matches) for weight, matches in found)
