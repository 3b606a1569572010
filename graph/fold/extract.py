"""Summarises a source deterministically by extracting the highest-scoring sentences."""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from math import fsum, log
from typing import Final, TypeGuard

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.language import ASKING, DATE, INTRODUCTION, content_terms, is_casual, split_sentences
from graph.core.turn import is_note, is_recalled, text_of
from graph.fold.fact_rule import is_rule

_LONG_CHARS: Final = 120
_Scalar = str | int | float | bool


@dataclass(frozen=True)
class Row:
    """A record of a JSON text.

    Attributes:
        label: The key of the record or of the list around the record, "" at the top.
        keys: The names of the values, "" for the key of the record; empty for a list of values.
    """

    label: str
    keys: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def head(self) -> str:
        """Label with keys, printed before the first of several rows with the same label and keys."""
        keys = ", ".join(key or "key" for key in self.keys)
        return f"{self.label} ({keys})" if self.label and keys else self.label or keys

    @property
    def text(self) -> str:
        values = ", ".join(self.values)
        return f"{self.label}: {values}" if self.label else values


def read_rows(text: str) -> list[Row | str]:
    """Returns the records and long texts of a JSON object or array in order; empty for other text.

    An object with short values only joins the record around it; an object with object values only is read as a list.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return []
    with suppress(ValueError, RecursionError):
        return list(_walk(json.loads(text), ""))
    return []


def _walk(value: object, label: str) -> Iterator[Row | str]:
    if isinstance(value, dict):
        yield from _of_object(value, label)
    elif isinstance(value, list):
        plain = [_written(item) for item in value if _is_short(item)]
        if plain:
            yield Row(label, (), tuple(plain))
        for item in value:
            if not _is_short(item):
                yield from _walk(item, label)
    elif isinstance(value, str):
        yield value


def _of_object(entries: Mapping[str, object], label: str) -> Iterator[Row | str]:
    if len(entries) > 1 and all(isinstance(entry, dict) for entry in entries.values()):
        for key, entry in entries.items():
            named = entry if isinstance(entry, dict) and key in entry.values() else {"": key, **_mapping(entry)}
            yield from _of_object(named, label)
        return
    row, rest = _flattened(entries)
    if row:
        yield Row(label, tuple(row), tuple(row.values()))
    for key, entry in rest:
        yield from _walk(entry, key)


def _flattened(entries: Mapping[str, object]) -> tuple[dict[str, str], list[tuple[str, object]]]:
    row: dict[str, str] = {}
    rest: list[tuple[str, object]] = []
    for key, entry in entries.items():
        inner = entry if isinstance(entry, dict) and all(map(_is_short, entry.values())) else {key: entry}
        for name, item in inner.items():
            if _is_short(item):
                row[name if name not in row else f"{key}.{name}"] = _written(item)
            elif item is not None:
                rest.append((key, item))
    return row, rest


def _mapping(entry: object) -> Mapping[str, object]:
    return entry if isinstance(entry, dict) else {}


def _is_short(value: object) -> TypeGuard[_Scalar]:
    if isinstance(value, str):
        return len(value) <= _LONG_CHARS and "\n" not in value
    return isinstance(value, int | float)


def _written(value: _Scalar) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_EMPHASIS: Final = re.compile(r"\*\*(?=\S)([^*\n]+)(?<=\S)\*\*")
_QUESTION_ENDS: Final = ("?", "？")
_USER_WEIGHT: Final = 1.5
_TOOL_WEIGHT: Final = 1.1
_REQUEST_WEIGHT: Final = 0.6
_ANSWERED_WEIGHT: Final = 0.3
_RULE_WEIGHT: Final = 2.0
_OPEN_WEIGHT: Final = 1.5


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

    The user's statements weigh more than the assistant's, rules and prohibitions most; answered questions weigh little.
    Results of `recall` and of the project's note tools are skipped: they repeat earlier turns or the project.
    """
    useful: list[Statement] = []
    dull: list[Statement] = []
    seen: set[str] = set()
    last = len(messages) - 1
    for index, (message, is_answered) in enumerate(zip(messages, _answered(messages), strict=True)):
        for text, head in _split("" if is_recalled(message) or is_note(message) else text_of(message)):
            key = text.casefold().rstrip(".!?… ")
            if key in seen:
                continue
            seen.add(key)
            weight = _weigh(message, text, is_answered=is_answered, is_last=index == last)
            statement = Statement(len(seen), text, frozenset(content_terms(text)), weight, head)
            (dull if not statement.terms or is_dull(text) else useful).append(statement)
    return useful, dull


def _split(text: str) -> Iterator[tuple[str, str]]:
    for part in read_rows(text) or [text]:
        if isinstance(part, Row):
            yield " ".join(part.text.split()), " ".join(part.head.split())
        else:
            for sentence in split_sentences(_EMPHASIS.sub(r"\1", part)):
                yield sentence, ""


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
    return weight * (_REQUEST_WEIGHT if ASKING.search(text) else 1)


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


def rank_sentences(texts: Sequence[str]) -> list[int]:
    """Returns the indexes of a text's sentences by score, highest first; those without content terms last."""
    statements = [Statement(index, text, frozenset(content_terms(text)), 1.0) for index, text in enumerate(texts, 1)]
    ranked = _Ranking([each for each in statements if each.terms], count_terms(texts)).by_score
    return [each.position - 1 for each in (*ranked, *(each for each in statements if not each.terms))]


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
        facts = self._facts[statement.position] * len(fresh) / len(statement.terms)
        late = 1 + _LATE_WEIGHT * statement.position / self._last
        size: float = (max(_LEAST_CHARS, len(statement.text)) / _TYPICAL_CHARS) ** _CHARS_EXPONENT
        return statement.weight * late * (about + facts) / size
