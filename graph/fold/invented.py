"""Finds the figures of a summary that nothing before it has."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, permutations
from typing import Final, NamedTuple

from graph.core.remembered import remembered
from graph.fold.fact_compare import Values
from graph.fold.fact_key import narrow
from graph.fold.figure import (
    HALF_DAY,
    MONEY,
    PEOPLE,
    SPAN,
    Figure,
    figures_in,
    loose_figures_in,
    numbers_in,
    words_in,
)

_KNOWN_SOURCES: Final = 16
# Marks of turns, numbers of lists: the summary's own.
_OWN_MARK: Final = re.compile(
    r"\[?\(?(?:[0-9]{1,4}(?:\s?[-–~,·]\s?[0-9]{1,4}){0,5}\s?턴|(?<![A-Za-z])[Tt]urns?\s[0-9]{1,4}(?:(?:\s?[-–,]\s?|\sand\s)[0-9]{1,4}){0,5})"
    r"(?=[\s)\]:,.에의]|$)|^[ \t>*-]{0,8}[0-9]{1,3}[.)](?=\s)",
    re.MULTILINE,
)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?。])\s|\n")
_RUNS: Final = re.compile(r"[a-z0-9]+")
_VERSION: Final = re.compile(r"(?<![a-z0-9])v(?=[0-9])")
_BETWEEN_DIGITS: Final = re.compile(r"(?<=[0-9])[ ().-]{1,3}(?=[0-9])")
_PART_MARK: Final = re.compile(r"[/:\\]+")
_RANGE_MARK: Final = re.compile(r"\s?(?:[-–~∼]|부터|에서|to|until)\s?")
_DOTTED: Final = re.compile(r"([0-9]{1,2})\.([0-9]{1,2})(?![0-9.])")
# In lower case, as units are.
_MEASURED_LIST: Final = """
kg mg g km cm mm ml l kb mb gb tb kib mib gib tib wh kwh w kw mw v hz khz mhz ghz fps ppm 대 석 층 호 평 잔 병 권 장
톤 마리 리터 킬로 도
"""
_MEASURED: Final = frozenset(_MEASURED_LIST.split())
# Units of one measure, each a thousand of the one before it; of bytes also 1,024.
_SCALES: Final = tuple(
    map(str.split, ("b kb mb gb tb", "b kib mib gib tib", "mg g kg 톤", "mm m km", "ml l", "hz khz mhz ghz"))
)
_BASES: Final = (1_000, 1_024)
# A summary counts what it lists: "3 options", "두 가지".
_MOST_OWN_COUNT: Final = 12
_MOST_TIMES: Final = 1_000
_ROUNDED_SHARE: Final = 0.05
_MOST_OPERANDS: Final = 12
_LEAST_CHANGE: Final = 100
_DAY_SECONDS: Final = 86_400


@dataclass(frozen=True)
class _Said:
    """What texts say: their values, and loosely their numbers and characters."""

    values: Values
    words: set[float]
    numbers: set[float]
    runs: str
    digits: str

    def counts_of(self, unit: str) -> set[float]:
        return {count for count, each in self.values.counts | self.values.parts if each == unit}

    @cached_property
    def spans(self) -> set[float]:
        return self.counts_of(SPAN)

    @cached_property
    def sorted_numbers(self) -> Sequence[float]:
        return sorted(self.numbers)

    @cached_property
    def stretches(self) -> set[float]:
        """Seconds between two times of day, or two dates of a month (the last day counted or not)."""
        times = sorted({minutes for minutes, _ in self.values.times})[:_MOST_OPERANDS]
        dates = sorted({date[1:] for date in self.values.dates})[:_MOST_OPERANDS]
        days = {last[1] - first[1] for first, last in combinations(dates, 2) if first[0] == last[0]}
        hours = {(last - first) % HALF_DAY * 60 for first, last in permutations(times, 2)}
        return hours | {(day + extra) * _DAY_SECONDS for day in days for extra in (0, 1)}


class _Line(NamedTuple):
    """The figures of a line, and the numbers that it may be read to have, in words and in all."""

    figures: tuple[Figure, ...]
    words: frozenset[float]
    numbers: frozenset[float]


def invented_in(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Returns the numbers, dates, amounts and identifiers of a text that no known text has, each once, in order.

    A value may be written in another form, rounded if the text says so, or be computed from others of its sentence. A
    small count without a unit of its own isn't compared, as a summary counts what it lists.
    """
    said = _said(narrow("\n".join(known)))
    plain = _OWN_MARK.sub(lambda match: " " * len(match[0]), text)
    found = dict.fromkeys(figure.text for sentence in _SENTENCE_END.split(plain) for figure in _unknown(sentence, said))
    return tuple(found)


def _unknown(sentence: str, said: _Said) -> Iterator[Figure]:
    figures = [figure for figure in figures_in(sentence) if not figure.is_in_words]
    unknown: list[Figure] = []
    operands: set[float] = set()
    known_dates: dict[int, Figure] = {}
    last_time: Figure | None = None
    for figure in figures:
        if not (_is_known(figure, said) or (last_time and _is_end(figure, last_time, sentence, said))):
            unknown.append(figure)
        elif figure.kind == "amount":
            operands.update(figure.values)
        elif figure.kind == "date":
            known_dates[figure.start] = figure
        last_time = figure if figure.kind == "time" else last_time
    amounts = sorted(operands)[-_MOST_OPERANDS:]
    computed = _computed(amounts) if unknown else set()
    for figure in unknown:
        if (
            figure.kind == "date"
            and figure.start in known_dates
            and _is_day_of(figure, known_dates[figure.start], said)
        ):
            continue
        is_computed = not computed.isdisjoint(figure.values) or _is_change(figure, amounts, said)
        if figure.kind != "amount" or not is_computed:
            yield figure


def _is_known(figure: Figure, said: _Said) -> bool:
    first, *others = figure.values or (0.0,)
    match figure.kind:
        case "time":
            known = said.values.has_time(first, figure.is_exact)
        case "date":
            known = _is_date(first, others[0], others[1], said)
        case "slash":
            day = others[0]
            known = said.numbers >= {first, day} or _is_date(0, first, day, said) or _is_date(0, day, first, said)
        case "day":
            known = first in said.numbers
        case "month":
            known = not figure.values or first in said.values.months or first in said.numbers
        case "span":
            known = first in said.spans or not said.numbers.isdisjoint(others) or first in said.stretches
        case "digits":
            known = "".join(filter(str.isdigit, figure.text)) in said.digits or _has_identifier(figure, said)
        case "identifier":
            known = _has_identifier(figure, said)
        case "amount":
            known = _has_amount(figure, said)
    return known


def _is_date(year: float, month: float, day: float, said: _Said) -> bool:
    values = said.values
    is_said = any((month, day) == date[1:] and 0 in (year, date[0], year - date[0]) for date in values.dates)
    return is_said or (month in values.months and day in values.days)


def _is_day_of(figure: Figure, known: Figure, said: _Said) -> bool:
    """Returns True for another day of a range, if a number of the source is this day, or a span leads to it."""
    apart = abs(figure.values[2] - known.values[2])
    return figure.values[2] in said.numbers or not said.spans.isdisjoint(
        (apart * _DAY_SECONDS, (apart + 1) * _DAY_SECONDS)
    )


def _is_end(figure: Figure, first: Figure, sentence: str, said: _Said) -> bool:
    """Returns True for the end of a range that lasts as long as the source says."""
    if figure.kind != "time" or not _RANGE_MARK.fullmatch(sentence, first.end, figure.start):
        return False
    return (figure.values[0] - first.values[0]) % HALF_DAY * 60 in said.spans


def _has_identifier(figure: Figure, said: _Said) -> bool:
    def is_said(part: str) -> bool:
        runs = _runs(part)
        return not runs or f" {runs} " in said.runs

    return is_said(figure.text) or all(map(is_said, _PART_MARK.split(figure.text)))


def _has_amount(figure: Figure, said: _Said) -> bool:
    small = all(value <= _MOST_OWN_COUNT and value.is_integer() for value in figure.values)
    if small and figure.unit == PEOPLE:
        people = said.counts_of(PEOPLE)
        return not people or not people.isdisjoint(figure.values) or figure.values[0] in said.words
    is_own_count = small and figure.unit not in MONEY and figure.unit not in _MEASURED
    if is_own_count or not said.numbers.isdisjoint(figure.values):
        return True
    dotted = _DOTTED.match(figure.text)
    if dotted and figure.unit not in MONEY and figure.unit not in _MEASURED:
        first, last = float(dotted[1]), float(dotted[2])
        if _is_date(0, first, last, said) or said.values.has_time(first * 60 + last, is_exact=False):
            return True
    if _is_scaled(figure, said):
        return True
    return not figure.is_exact and any(_is_rounded(value, said.sorted_numbers) for value in figure.values)


def _is_scaled(figure: Figure, said: _Said) -> bool:
    """Returns True for an amount in a larger or smaller unit, rounded as it is written: 1.8 GB of 1841 MB."""
    for units in _SCALES:
        for unit in units if figure.unit in units else ():
            power = units.index(unit) - units.index(figure.unit)
            values = [
                value * base**power
                for value in said.counts_of(unit)
                for base in (_BASES if "b" in units else _BASES[:1])
            ]
            if power and any(abs(value - figure.values[0]) <= figure.step / 2 for value in values):
                return True
    return False


def _is_rounded(value: float, numbers: Sequence[float]) -> bool:
    """Returns True if a number is near one that has more digits."""
    first, last = bisect_left(numbers, value * (1 - _ROUNDED_SHARE)), bisect_left(numbers, value * (1 + _ROUNDED_SHARE))
    return any(_size(value) < _size(number) for number in numbers[first:last])


def _size(number: float) -> int:
    """Counts the significant digits of a number."""
    return len(f"{number:.6f}".replace(".", "").strip("0"))


def _is_change(figure: Figure, amounts: Sequence[float], said: _Said) -> bool:
    """Returns True for money between an amount of the sentence and another one that was said: 300원 올려 3,500원."""
    least = [value for value in figure.values if figure.unit in MONEY and value >= _LEAST_CHANGE]
    return any(
        round(amount + sign * value, 6) in said.numbers for value in least for amount in amounts for sign in (1, -1)
    )


def _computed(operands: Sequence[float]) -> set[float]:
    """Returns the sums, differences and products of two amounts of a sentence, and the sum of all."""
    results = {sum(operands)}
    for first, last in combinations(operands, 2):
        results |= {first + last, last - first, *([first * last] if first <= _MOST_TIMES else [])}
    return {round(result, 6) for result in results}


@lru_cache(maxsize=_KNOWN_SOURCES)
def _said(text: str) -> _Said:
    values, words, numbers = Values(), set[float](), set[float]()
    values.note(text)
    for line in dict.fromkeys(text.split("\n")):
        read = _read(line)
        values.take(read.figures, line)
        words |= read.words
        numbers |= read.numbers
    return _Said(values, words, numbers, f" {_runs(text)} ", _BETWEEN_DIGITS.sub("", text))


@remembered
def _read(line: str) -> _Line:
    figures = (*figures_in(line), *loose_figures_in(line))
    return _Line(figures, frozenset(words_in(line)), frozenset(numbers_in(line)))


def _runs(text: str) -> str:
    return " ".join(_RUNS.findall(_VERSION.sub("", text.casefold())))
