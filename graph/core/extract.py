"""Summarises a source deterministically by its own highest-scoring sentences."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from math import fsum
from typing import Final

from langchain_core.messages import AnyMessage

from graph.core.casual import is_casual
from graph.core.sentence import content_terms
from graph.core.statement import Statement, read_statements
from graph.core.turn import text_of
from graph.core.weight import TermCounts, count_terms, weigh_kinds

_ELLIPSIS: Final = "…"
_ENDS: Final = frozenset(".!?…。！？,;:—")
_LATE_WEIGHT: Final = 0.1
_REDUNDANT_SHARE: Final = 0.85
_ENOUGH_SHARE: Final = 0.8
_LEAST_SHARE: Final = 0.6
_TYPICAL_CHARS: Final = 60
_LEAST_CHARS: Final = 30
# Terms are summed (0) or averaged (1), and a score is divided by the length not at all (0) or in full (1).
_TERMS_EXPONENT: Final = 0.75
_CHARS_EXPONENT: Final = 0.65
# So many terms more, or a fragment of one rare word would be the best of all.
_SMOOTHING_TERMS: Final = 4


def extract_summary(
    messages: Sequence[AnyMessage],
    target_chars: int,
    *,
    counts: TermCounts | None = None,
    is_dull: Callable[[str], bool] = is_casual,
) -> str:
    """Returns the highest-scoring statements in source order, about `target_chars` characters together.

    The result has 50 to 110 % of the target if the source is long enough; it is empty only if the source has no words.
    A statement is a sentence or a row of JSON. It scores by the terms that no better one has, the rarer in the session
    the more, and by its numbers, dates, identifiers, names and decisions; times its weight (`read_statements`), for its
    length. Repetitions and dull sentences come last. A sentence too long for the target is cut and ends in "…".

    Args:
        messages: What to condense, tool results included.
        target_chars: Length to aim at; less than 1 counts as 1.
        counts: The terms of the whole session's messages; None counts those of `messages`.
        is_dull: Whether a sentence is useless in a summary; by default greetings and thanks are.
    """
    pick = _Pick(max(1, target_chars))
    useful, dull = read_statements(messages, is_dull)
    ranking = _Ranking(useful, counts or count_terms(text_of(message) for message in messages))
    ranking.fill(pick)
    if pick.share < _ENOUGH_SHARE:
        pick.take(ranking.by_score)
    if pick.share < _LEAST_SHARE:
        pick.take_cut(ranking.by_score)
    if not pick.chosen:
        pick.take(dull)
        pick.take_cut(dull)
    return pick.text()


def rank_sentences(texts: Sequence[str]) -> list[int]:
    """Returns the places of the sentences of one text by their score, highest first; those without words come last."""
    told = [Statement(place, text, frozenset(content_terms(text)), 1.0) for place, text in enumerate(texts, 1)]
    ranked = _Ranking([each for each in told if each.terms], count_terms(texts)).by_score
    return [each.position - 1 for each in (*ranked, *(each for each in told if not each.terms))]


class _Pick:
    """The statements picked so far, within a number of characters."""

    def __init__(self, target_chars: int) -> None:
        self.chosen: dict[int, Statement] = {}
        self._target_chars = target_chars
        self._chars = 0
        self._heads: set[str] = set()

    @property
    def share(self) -> float:
        """The filled share of the target."""
        return self._chars / self._target_chars

    def take(self, statements: Iterable[Statement]) -> None:
        """Takes each statement that still fits, in the given order."""
        for statement in statements:
            self.add(statement)

    def take_cut(self, statements: Iterable[Statement]) -> None:
        """Fills the remaining length with the beginning of the first statement not yet taken."""
        missing = next((statement for statement in statements if statement.position not in self.chosen), None)
        if missing is not None:
            left_chars = self._target_chars - self._chars - (1 if self.chosen else 0)
            self.add(replace(missing, text=cut_at_word(missing.text, left_chars), head=""))

    def add(self, statement: Statement) -> bool:
        """Takes a statement if it fits and isn't taken yet; returns whether it did."""
        text = statement.text if statement.head in self._heads else statement.headed_text
        chars = self._chars + len(_ended(text)) + 1 if self.chosen else len(text)
        if statement.position in self.chosen or not text or chars > self._target_chars:
            return False
        self._chars = chars if self.chosen else len(_ended(text))
        self._heads.add(statement.head)
        self.chosen[statement.position] = statement
        return True

    def text(self) -> str:
        """Returns the picked statements in source order; all but the last get a full stop where they have no end."""
        said: set[str] = set()
        ordered: list[str] = []
        for _, statement in sorted(self.chosen.items()):
            ordered.append(statement.text if statement.head in said else statement.headed_text)
            said.add(statement.head)
        return " ".join([*(_ended(text) for text in ordered[:-1]), *ordered[-1:]])


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


class _Ranking:
    """Scores statements by what each adds to those that are taken already."""

    def __init__(self, statements: Sequence[Statement], counts: TermCounts) -> None:
        self._rarity = {term: counts.rarity(term) for statement in statements for term in statement.terms}
        self._last = max((statement.position for statement in statements), default=1)
        self._facts = {statement.position: weigh_kinds(statement.text) for statement in statements}
        # By score on its own, highest first; of equals the earlier one first.
        self.by_score = sorted(statements, key=lambda statement: (-self._score(statement, set()), statement.position))

    def fill(self, pick: _Pick) -> None:
        """Takes the best statement that fits, again and again; leaves out those that say nearly nothing new."""
        known: set[str] = set()
        taken = 0
        # A score only falls as more is known, so an old one is an upper bound and few have to be computed anew.
        heap = [(-self._score(each, known), each.position, taken, each) for each in self.by_score]
        heapq.heapify(heap)
        while heap:
            _, position, taken_then, best = heapq.heappop(heap)
            if len(best.terms & known) >= _REDUNDANT_SHARE * len(best.terms):
                continue
            if taken_then != taken:
                heapq.heappush(heap, (-self._score(best, known), position, taken, best))
            elif pick.add(best):
                known |= best.terms
                taken += 1

    def _score(self, statement: Statement, known: AbstractSet[str]) -> float:
        fresh = statement.terms - known
        # fsum gives the same sum in any order: a set has none.
        spread: float = (len(statement.terms) + _SMOOTHING_TERMS) ** _TERMS_EXPONENT
        about = fsum(self._rarity[term] for term in fresh) / spread
        facts = self._facts[statement.position] * len(fresh) / len(statement.terms)
        late = 1 + _LATE_WEIGHT * statement.position / self._last
        size: float = (max(_LEAST_CHARS, len(statement.text)) / _TYPICAL_CHARS) ** _CHARS_EXPONENT
        return statement.weight * late * (about + facts) / size
