"""Summarises a source deterministically by extracting the highest-scoring sentences."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice
from math import fsum, log
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.language import ASKING, DATE, INTRODUCTION, content_terms, is_casual, split_sentences
from graph.core.turn import is_note, is_recalled, telling_calls, text_of, without_days
from graph.fold.fact_find import facts_in, is_instruction
from graph.fold.listing import Row, read_pairs, read_rows, rows_of
from graph.fold.replaced import changed_in, superseded_in
from graph.fold.word_kind import is_rule

_EMPHASIS: Final = re.compile(r"\*\*(?=\S)([^*\n]+)(?<=\S)\*\*")
_QUESTION_ENDS: Final = ("?", "？")
_USER_WEIGHT: Final = 1.5
_TOOL_WEIGHT: Final = 1.1
_REQUEST_WEIGHT: Final = 0.6
_ANSWERED_WEIGHT: Final = 0.3
_RULE_WEIGHT: Final = 2.0
_OPEN_WEIGHT: Final = 1.5
_REPLACED_WEIGHT: Final = 0.3


@dataclass(frozen=True)
class Statement:
    """A sentence of a text, or a row of JSON.

    Attributes:
        position: Number among all statements, from 1.
        weight: Factor for the speaker and the kind of statement; 1 for an assertion by the assistant.
        head: Label and keys, printed before the first of several rows; "" for a sentence.
    """

    position: int
    text: str
    terms: frozenset[str]
    weight: float
    head: str = ""

    @property
    def headed_text(self) -> str:
        if not self.head:
            return self.text
        label = self.head.partition(" (")[0]
        return f"{self.head}: {self.text.removeprefix(f'{label}: ')}"


def read_statements(
    messages: Sequence[AnyMessage], is_dull: Callable[[str], bool]
) -> tuple[list[Statement], list[Statement]]:
    """Returns the useful and the dull statements in order, without duplicates.

    The user's statements weigh more than the assistant's, rules and prohibitions most; answered questions, and what has
    only values that the user replaced, weigh little.
    Results of `recall` and of the project's note tools are skipped: they repeat earlier turns or the project.
    """
    useful: list[Statement] = []
    dull: list[Statement] = []
    seen: set[str] = set()
    last = len(messages) - 1
    said = "\n".join(map(text_of, messages))
    replaced = superseded_in(messages)
    for index, (message, is_answered) in enumerate(zip(messages, _answered(messages), strict=True)):
        for text, head in (*_split(message), *_calls(message, said)):
            key = text.casefold().rstrip(".!?… ")
            if key in seen:
                continue
            seen.add(key)
            weight = _weigh(message, text, is_answered=is_answered, is_last=index == last)
            weight *= _REPLACED_WEIGHT if replaced and _is_replaced(text, replaced) else 1
            statement = Statement(len(seen), text, frozenset(content_terms(text)), weight, head)
            (dull if not statement.terms or is_dull(text) else useful).append(statement)
    return useful, dull


def _is_replaced(text: str, replaced: AbstractSet[tuple[str, str]]) -> bool:
    """Returns True if all values of a sentence were replaced, and not by that sentence."""
    values = [fact for fact in facts_in(text) if not (fact.kind == "vague" or is_instruction(fact))]
    return bool(values) and all(fact.identity in replaced for fact in values) and not changed_in(text)


def _split(message: AnyMessage) -> Iterator[tuple[str, str]]:
    text = "" if is_recalled(message) or is_note(message) else without_days(text_of(message))
    for part in read_rows(text) or [text]:
        for row in read_pairs(part) if isinstance(message, ToolMessage) and isinstance(part, str) else [part]:
            if isinstance(row, Row):
                yield _row(row)
            else:
                for sentence in split_sentences(_EMPHASIS.sub(r"\1", row)):
                    yield sentence, ""


def _row(row: Row) -> tuple[str, str]:
    return " ".join(row.text.split()), " ".join(row.head.split())


def _calls(message: AnyMessage, said: str) -> Iterator[tuple[str, str]]:
    """Yields the calls that were given an identifier or a path that no text has, such as that of a written file."""
    for call in telling_calls(message):
        for row in rows_of(call["args"], call["name"]):
            if any(value not in said and _is_named(value) for value in row.values):
                yield _row(row)


def _is_named(value: str) -> bool:
    return "/" in value or _IDENTIFIER.search(value) is not None


def _answered(messages: Sequence[AnyMessage]) -> list[bool]:
    """Returns for each message whether a later message of the opposite side makes a statement, not only asks."""
    answered: list[bool] = []
    user_follows = assistant_follows = False
    for message in reversed(messages):
        is_user = isinstance(message, HumanMessage)
        answered.append(assistant_follows if is_user else user_follows)
        if is_user:
            user_follows = user_follows or _states(message)
        elif isinstance(message, AIMessage):
            assistant_follows = assistant_follows or _states(message)
    return answered[::-1]


def _states(message: AnyMessage) -> bool:
    return any(not ASKING.search(sentence) for sentence in split_sentences(text_of(message)))


def _weigh(message: AnyMessage, text: str, *, is_answered: bool, is_last: bool) -> float:
    if isinstance(message, ToolMessage):
        return _TOOL_WEIGHT
    is_own = isinstance(message, AIMessage)
    is_question = text.endswith(_QUESTION_ENDS)
    if is_last and is_question:
        return _OPEN_WEIGHT
    if is_answered and (ASKING.search(text) if is_own else is_question):
        return _ANSWERED_WEIGHT
    if is_own:
        return 1.0
    weight = _USER_WEIGHT if isinstance(message, HumanMessage) else 1.0
    if is_rule(text):
        return weight * _RULE_WEIGHT
    return weight * (_REQUEST_WEIGHT if ASKING.search(text) and not changed_in(text) else 1)


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


@dataclass(frozen=True)
class TermCounts:
    """Document frequency of content terms over this number of texts."""

    texts: int
    by_term: Mapping[str, int]

    def rarity(self, term: str) -> float:
        """Returns the smoothed inverse document frequency, `ln(1 + N / (1 + n))`, above 0."""
        return log(1 + self.texts / (1 + self.by_term.get(term, 0)))


def count_terms(texts: Iterable[str], before: TermCounts | None = None) -> TermCounts:
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
# Added to the number of terms: otherwise a fragment with one rare term would score highest.
_SMOOTHING_TERMS: Final = 4


def extract_summary(
    messages: Sequence[AnyMessage],
    target_chars: int,
    *,
    counts: TermCounts | None = None,
    is_dull: Callable[[str], bool] = is_casual,
) -> str:
    """Returns the highest-scoring statements in source order, about `target_chars` characters in all.

    The result has 50 to 110 % of the target if the source is long enough, and is empty only if the source has no words.
    The score adds the rarity of terms that no better statement has (over `counts`, or the messages) and the weight of
    numbers, dates, identifiers, names and decisions, multiplied by the statement's weight and reduced with length.
    Repetitions and dull sentences come last.
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


class _Pick:
    def __init__(self, target_chars: int) -> None:
        self.chosen: dict[int, Statement] = {}
        self._target_chars = target_chars
        self._chars = 0
        self._heads: set[str] = set()

    @property
    def share(self) -> float:
        return self._chars / self._target_chars

    def take(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            self.add(statement)

    def take_cut(self, statements: Iterable[Statement]) -> None:
        """Fills the remaining length with the beginning of the first statement not yet picked."""
        missing = next((statement for statement in statements if statement.position not in self.chosen), None)
        if missing is not None:
            left_chars = self._target_chars - self._chars - (1 if self.chosen else 0)
            self.add(replace(missing, text=cut_at_word(missing.text, left_chars), head=""))

    def add(self, statement: Statement) -> bool:
        text = statement.text if statement.head in self._heads else statement.headed_text
        chars = self._chars + len(_ended(text)) + 1 if self.chosen else len(text)
        if statement.position in self.chosen or not text or chars > self._target_chars:
            return False
        self._chars = chars if self.chosen else len(_ended(text))
        self._heads.add(statement.head)
        self.chosen[statement.position] = statement
        return True

    def text(self) -> str:
        """Joins the picked statements in source order; all but the last get a full stop where they have no end."""
        written: set[str] = set()
        ordered: list[str] = []
        for _, statement in sorted(self.chosen.items()):
            ordered.append(statement.text if statement.head in written else statement.headed_text)
            written.add(statement.head)
        return " ".join([*(_ended(text) for text in ordered[:-1]), *ordered[-1:]])


def _ended(sentence: str) -> str:
    return sentence if sentence[-1:] in _ENDS else f"{sentence}."


def cut_at_word(text: str, limit_chars: int) -> str:
    """Cuts a text to `limit_chars` characters, between words or inside a long word, with "…" at the end."""
    if len(text) <= limit_chars:
        return text
    if limit_chars <= 1:
        return text[: max(0, limit_chars)]
    body = text[: limit_chars - 1]
    space = body.rfind(" ") if text[limit_chars - 1] != " " else len(body)
    return (body[:space] if space >= limit_chars // 2 else body) + _ELLIPSIS


class _Ranking:
    def __init__(self, statements: Sequence[Statement], counts: TermCounts) -> None:
        self._rarity = {term: counts.rarity(term) for statement in statements for term in statement.terms}
        self._last = max((statement.position for statement in statements), default=1)
        self._facts = {statement.position: weigh_kinds(statement.text) for statement in statements}
        # Those of a row are one of many, and known words tell the rows apart.
        self._identifiers = {each.position: set() if each.head else _identifiers(each.terms) for each in statements}
        # By score on its own, highest first; of equals the earlier one first.
        self.by_score = sorted(statements, key=lambda statement: (-self._score(statement, set()), statement.position))

    def fill(self, pick: _Pick) -> None:
        """Repeatedly picks the best statement that fits, skipping statements with nearly no new terms."""
        known: set[str] = set()
        taken = 0
        # A score only falls as more is known, so an old one is an upper bound and few have to be recomputed.
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
        # "The number is B" says as much as "The number is A" before it, whose words are known.
        is_named = not fresh.isdisjoint(self._identifiers[statement.position])
        facts = self._facts[statement.position] * (1 if is_named else len(fresh) / len(statement.terms))
        late = 1 + _LATE_WEIGHT * statement.position / self._last
        size: float = (max(_LEAST_CHARS, len(statement.text)) / _TYPICAL_CHARS) ** _CHARS_EXPONENT
        return statement.weight * late * (about + facts) / size


def _identifiers(terms: AbstractSet[str]) -> set[str]:
    return {term for term in terms if any(map(str.isdigit, term)) and any(map(str.isalpha, term))}
