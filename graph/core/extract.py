"""Summarises a source deterministically by its own highest-scoring sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from graph.core.casual import is_casual
from graph.core.sentence import ASKING, DATE, INTRODUCTION, content_terms, split_sentences
from graph.core.turn import text_of

_ELLIPSIS: Final = "…"
_ENDS: Final = frozenset(".!?…。！？,;:—")
_NUMBER: Final = re.compile(r"\d")
_IDENTIFIER: Final = re.compile(
    r"https?://|\b\w+[_/@]\w+|\b[A-Za-z]+-?\d+|\b\d+\.\d+|\b[a-z]+[A-Z]\w+|`[^`]+`|\b[A-Z]{2,}\b"
)
_NAME: Final = re.compile(r"(?<=[a-z,;:] )[A-Z][a-z]+|[가-힣]{2,4}(?:님|씨)\b")
_DECISION: Final = re.compile(
    r"결정|확정|하기로|예정|마감|변경|바꾸|바꿔|바꿀|취소|선택|필요|반드시|중요|선호|좋아|싫어|원해|목표|예산|기한"
    r"|\b(?:decid|agree|choos|chose|must|need|deadline|due|prefer|cancel|chang|final|budget|goal|plan|will)",
    re.IGNORECASE,
)
_FACTS: Final = (
    (_NUMBER, 0.8),
    (DATE, 0.6),
    (_IDENTIFIER, 0.6),
    (_NAME, 0.6),
    (INTRODUCTION, 0.6),
    (_DECISION, 0.7),
)
_USER_WEIGHT: Final = 1.5
_TOOL_WEIGHT: Final = 0.9
_ASKING_WEIGHT: Final = 0.6
_LATE_WEIGHT: Final = 0.2
_REDUNDANT_SHARE: Final = 0.85
_ENOUGH_SHARE: Final = 0.8
_LEAST_SHARE: Final = 0.6
_TYPICAL_CHARS: Final = 60


@dataclass(frozen=True)
class _Sentence:
    """A sentence of the source, its place there (from 1), and the terms that it is about."""

    position: int
    text: str
    terms: frozenset[str]
    speaker_weight: float


def extract_summary(
    messages: Sequence[AnyMessage], target_chars: int, *, is_dull: Callable[[str], bool] = is_casual
) -> str:
    """Returns the highest-scoring sentences in source order, about `target_chars` characters together.

    The result has 50 to 110 % of the target if the source is long enough; it is empty only if the source has no words.
    Sentences with numbers, dates, identifiers, names or decisions score higher, and so do the user's own; repetitions
    and dull sentences come last. A sentence too long for the target is cut and ends in "…".

    Args:
        messages: What to condense, tool results included.
        target_chars: Length to aim at; less than 1 counts as 1.
        is_dull: Whether a sentence is useless in a summary; by default greetings and thanks are.
    """
    pick = _Pick(max(1, target_chars))
    useful, dull = _collect(messages, is_dull)
    ranked = _rank(useful)
    pick.take(_without_repetition(ranked))
    if pick.share < _ENOUGH_SHARE:
        pick.take(ranked)
    if pick.share < _LEAST_SHARE:
        pick.take_cut(ranked)
    if not pick.chosen:
        pick.take(dull)
        pick.take_cut(dull)
    return pick.text()


def rank_sentences(texts: Sequence[str]) -> list[int]:
    """Returns the places of the sentences of one text by their score, highest first."""
    sentences = [_Sentence(place, text, frozenset(content_terms(text)), 1.0) for place, text in enumerate(texts)]
    return [sentence.position for sentence in _rank(sentences)]


class _Pick:
    """The sentences picked so far, within a number of characters."""

    def __init__(self, target_chars: int) -> None:
        self.chosen: dict[int, str] = {}
        self._target_chars = target_chars
        self._chars = 0

    @property
    def share(self) -> float:
        """The filled share of the target."""
        return self._chars / self._target_chars

    def take(self, sentences: Iterable[_Sentence]) -> None:
        """Takes each sentence that still fits, in the given order."""
        for sentence in sentences:
            if sentence.position not in self.chosen:
                self._add(sentence.position, sentence.text)

    def take_cut(self, sentences: Iterable[_Sentence]) -> None:
        """Fills the remaining length with the beginning of the first sentence not yet taken."""
        missing = next((sentence for sentence in sentences if sentence.position not in self.chosen), None)
        if missing is not None:
            left_chars = self._target_chars - self._chars - (1 if self.chosen else 0)
            self._add(missing.position, cut_at_word(missing.text, left_chars))

    def text(self) -> str:
        """Returns the picked sentences in source order; all but the last get a full stop where they have no end."""
        ordered = [self.chosen[position] for position in sorted(self.chosen)]
        return " ".join([*(_ended(sentence) for sentence in ordered[:-1]), *ordered[-1:]])

    def _add(self, position: int, text: str) -> None:
        chars = self._chars + len(_ended(text)) + 1 if self.chosen else len(text)
        if text and chars <= self._target_chars:
            self._chars = chars if self.chosen else len(_ended(text))
            self.chosen[position] = text


def _ended(sentence: str) -> str:
    return sentence if sentence[-1:] in _ENDS else f"{sentence}."


def cut_at_word(text: str, limit_chars: int) -> str:
    """Cuts a text to that many characters, between words or inside a long one, with "…" at the end."""
    if len(text) <= limit_chars:
        return text
    if limit_chars <= 1:
        return text[: max(0, limit_chars)]
    body = text[: limit_chars - 1]
    space = body.rfind(" ") if text[limit_chars - 1] != " " else len(body)
    return (body[:space] if space >= limit_chars // 2 else body) + _ELLIPSIS


def _collect(messages: Sequence[AnyMessage], is_dull: Callable[[str], bool]) -> tuple[list[_Sentence], list[_Sentence]]:
    """Returns the useful and the dull sentences in order, without duplicates."""
    useful: list[_Sentence] = []
    dull: list[_Sentence] = []
    seen: set[str] = set()
    for message in messages:
        for text in split_sentences(text_of(message)):
            key = text.casefold().rstrip(".!?… ")
            if key in seen:
                continue
            seen.add(key)
            sentence = _Sentence(len(seen), text, frozenset(content_terms(text)), _speaker_weight(message, text))
            if not sentence.terms or is_dull(text):
                dull.append(sentence)
            else:
                useful.append(sentence)
    return useful, dull


def _speaker_weight(message: AnyMessage, text: str) -> float:
    if isinstance(message, ToolMessage):
        return _TOOL_WEIGHT
    if isinstance(message, HumanMessage):
        return _USER_WEIGHT * (_ASKING_WEIGHT if ASKING.search(text) else 1)
    return 1.0


def _rank(sentences: Sequence[_Sentence]) -> list[_Sentence]:
    """Returns the sentences by score, highest first; of equals the earlier one first."""
    counts = Counter(term for sentence in sentences for term in sentence.terms)
    last = max((sentence.position for sentence in sentences), default=1) or 1
    scores = {s.position: _score(s, counts) * (1 + _LATE_WEIGHT * s.position / last) for s in sentences}
    return sorted(sentences, key=lambda sentence: (-scores[sentence.position], sentence.position))


def _score(sentence: _Sentence, counts: Counter[str]) -> float:
    """Scores a sentence by how frequent its terms are in the source and by the kinds of facts in it."""
    text = sentence.text
    about = sum(log(1 + counts[term]) for term in sentence.terms) / sqrt(len(sentence.terms) + 4)
    facts = sum(weight for pattern, weight in _FACTS if pattern.search(text))
    # Per length, as a long sentence takes the place of several; softened so that fragments don't win.
    return sentence.speaker_weight * (about + facts) / sqrt(max(_TYPICAL_CHARS, len(text)) / _TYPICAL_CHARS)


def _without_repetition(ranked: Iterable[_Sentence]) -> list[_Sentence]:
    """Leaves out sentences whose terms nearly all occur in better ones, e.g. an answer that repeats the question."""
    known: set[str] = set()
    fresh: list[_Sentence] = []
    for sentence in ranked:
        if len(sentence.terms & known) < _REDUNDANT_SHARE * len(sentence.terms):
            fresh.append(sentence)
            known |= sentence.terms
    return fresh
