"""Tells which facts a text holds, by their words or by their values in whatever form they are written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple, cast

from graph.fold.fact_find import Fact, is_instruction
from graph.fold.fact_key import key_of, narrow
from graph.fold.fact_pattern import RANK, SETTING, TITLE
from graph.fold.fact_rule import Clause, clauses_of, holds_instruction
from graph.fold.figure import HALF_DAY, MONEY, SPAN, Figure, figures_in
from graph.fold.word_kind import WordKind

_YEAR: Final = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")
_WEEKDAYS: Final = "월화수목금토일"
_EN_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAY: Final = re.compile(
    r"(?<![가-힣])(?P<whole>[월화수목금토일])요일"
    r"|[(（\[]\s?(?P<bracketed>[월화수목금토일](?:\s?[·,/~∼–-]\s?[월화수목금토일]){0,6})(?=\s?[)）\],·/]|\s[0-9오])"
    r"|(?<![가-힣])(?P<list>[월화수목금토일](?:[·,/~∼–-]\s?[월화수목금토일]){1,6})(?![가-힣]{2})"
    r"|(?<![A-Za-z])(?P<english>Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:s|nes|rs|ur|urs)?(?:day)?s?(?![A-Za-z0-9_])"
)
_ADDRESS: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:[:/][0-9]{1,5})?")
_PORT_MARK: Final = re.compile("[:/]")
_PERSON: Final = re.compile(
    rf"(?<![가-힣])(?P<surname>[가-힣])(?P<given>[가-힣]{{1,2}}|모)?\s?(?P<title>{TITLE}|{RANK})"
)
# Before a part of an identifier, a version or a longer number; of a range.
_INNER: Final = re.compile(r"[0-9A-Za-z.,:]")
_RANGE: Final = re.compile("[-~∼–]")
# Of money as it is mostly written without its unit: 132만, 1,320,000.
_MAGNITUDE: Final = re.compile(r"[십백천만억조]|,[0-9]{3}(?![0-9])")
_NEAR_SHARE: Final = 0.01
_KNOWN_TEXTS: Final = 4_096


class Money(NamedTuple):
    """An amount, "" for a currency that isn't said, and the step that it is rounded to."""

    amount: float
    currency: str
    step: float


class Values:
    """The values of a text; other texts may be added.

    Attributes:
        counts: Numbers with their units; spans of time in seconds, or months below zero, as `SPAN`.
        parts: Likewise, of numbers that may be a part: the end of a range, of a version.
        is_whole: False if a figure of the text is none of these values.
    """

    def __init__(self, text: str = "") -> None:
        self.times: set[tuple[float, bool]] = set()
        self.dates: set[tuple[float, ...]] = set()
        self.days: set[float] = set()
        self.months: set[float] = set()
        self.years: set[int] = set()
        self.weekdays: set[int] = set()
        self.money: set[Money] = set()
        self.counts: set[tuple[float, str]] = set()
        self.parts: set[tuple[float, str]] = set()
        self.addresses: set[str] = set()
        self.persons: set[tuple[str, str, str]] = set()
        self.is_whole = True
        self.add(text)

    def add(self, text: str) -> None:
        self.note(text)
        self.take(figures_in(text), text)

    def note(self, text: str) -> None:
        """Adds what is no figure: years, persons, weekdays."""
        self.years.update(int(year) for year in _YEAR.findall(text))
        self.persons.update(
            (match["surname"], match["given"] or "", match["title"]) for match in _PERSON.finditer(text)
        )
        for match in _WEEKDAY.finditer(text):
            if match["english"]:
                self.weekdays.add(_EN_WEEKDAYS.index(match["english"].lower()))
            else:
                written = match["whole"] or match["bracketed"] or match["list"]
                self.weekdays.update(_WEEKDAYS.index(char) for char in written if char in _WEEKDAYS)

    def take(self, figures: Iterable[Figure], text: str) -> None:
        month, since = 0.0, 0
        for figure in figures:
            match figure.kind:
                case "date":
                    self.dates.add(figure.values)
                    month, since = figure.values[1], figure.end
                    self.months.add(month)
                case "slash":
                    self.dates.update({(0, *figure.values), (0, *figure.values[::-1])})
                case "day" if month and "\n" not in text[since : figure.start]:
                    # It has the month of the date before it in its line.
                    self.dates.add((0, month, *figure.values))
                case "day":
                    self.days.update(figure.values)
                case "month":
                    self.months.update(figure.values)
                    month, since = next(iter(figure.values), month), figure.end
                    self.is_whole = False
                case "time":
                    self.times.add((figure.values[0], figure.is_exact))
                case "span" | "amount":
                    self._count(figure, text)
                case "identifier" if _ADDRESS.fullmatch(figure.text):
                    self.addresses.update(_PORT_MARK.split(figure.text))
                case _:
                    self.is_whole = False

    def _count(self, figure: Figure, text: str) -> None:
        amount, unit = figure.values[0], SPAN if figure.kind == "span" else figure.unit
        before = text[max(0, figure.start - 1) : figure.start]
        is_bare_money = not unit and figure.kind == "amount" and bool(_MAGNITUDE.search(figure.text))
        is_money = unit != "%" and (unit in MONEY or is_bare_money)
        is_inner = bool(_INNER.match(before) or (_RANGE.match(before) and not is_money and unit != "%"))
        self.is_whole &= (is_money or bool(unit)) and not is_inner
        if is_money and not is_inner:
            self.money.add(Money(amount, unit, figure.step))
        elif unit:
            (self.parts if is_inner else self.counts).add((amount, unit))

    def hold(self, values: Values) -> bool:
        """Returns True if other values, which say at least something, are all among these."""
        asked = [
            *(self.has_time(*time) for time in values.times),
            *(self.has_date(*date) for date in values.dates),
            *(any(_is_same_money(money, known) for known in self.money) for money in values.money),
            values.weekdays <= self.weekdays,
            values.counts <= self.counts,
            values.addresses <= self.addresses,
        ]
        return bool(values.sorts) and not values.days and all(asked)

    @property
    def sorts(self) -> frozenset[str]:
        """What is said at all: a time, a date, a weekday, an amount, a count of some unit."""
        sets = (self.times, self.dates | self.days, self.weekdays, self.money, self.addresses)
        return frozenset([str(index) for index, found in enumerate(sets) if found] + [unit for _, unit in self.counts])

    def has_person(self, name: str) -> bool:
        """Returns True if someone with this surname and title ("송 과장") is named in full."""
        asked = _PERSON.fullmatch(name)
        if asked is None or asked["given"]:
            return False
        return any(
            given and (surname, title) == asked.group("surname", "title") for surname, given, title in self.persons
        )

    def has_time(self, minutes: float, is_exact: bool) -> bool:  # noqa: FBT001  # as in `times`
        return any(
            minutes == known or (not (is_exact and is_known_exact) and (minutes - known) % HALF_DAY == 0)
            for known, is_known_exact in self.times
        )

    def has_date(self, year: float, month: float, day: float) -> bool:
        return any(
            date[1:] == (month, day) and (not year or date[0] == year or (not date[0] and year in self.years))
            for date in self.dates
        )


@lru_cache(maxsize=_KNOWN_TEXTS)
def values_of(text: str) -> Values | None:
    """Returns the values of a fact; None if a figure of it is no part of a value."""
    values = Values(text)
    return values if values.is_whole else None


def _is_same_money(first: Money, second: Money) -> bool:
    """Whether amounts are equal, or one is the other rounded, by at most one per cent."""
    if first.currency != second.currency and first.currency and second.currency:
        return False
    apart = abs(first.amount - second.amount)
    return apart <= max(first.step, second.step) / 2 * (apart <= _NEAR_SHARE * max(first.amount, second.amount))


_VALUED: Final = ("date", "money", "number", "count")
# How far behind a setting's name its value may stand.
_VALUE_CHARS: Final = 40
_LEAST_DIGITS: Final = 2
_SETTING_VALUE: Final = re.compile(r" (true|false|on|off|null|none|[0-9][^ ]*) ")


class HeldFacts:
    """Index of a text for looking up many facts; lines may be added."""

    def __init__(self, text: str = "") -> None:
        self._keys = ""
        self._lines: list[str] = []
        self._clauses: list[Clause] = []
        self._clause_lines = 0
        self._values = Values()
        self._value_lines = 0
        for line in dict.fromkeys(text.split("\n")):
            self.add(line)

    def add(self, line: str) -> None:
        self._keys += f"{key_of(line)}\n"
        self._lines.append(line)

    def has(self, fact: Fact) -> bool:
        """Returns True if the text contains a fact.

        Spacing, case, separators and particles are ignored. Times, dates, amounts and counts may be written in another
        way, and an amount may be rounded. A rule or prohibition is compared clause by clause (`holds_instruction`).
        """
        if is_instruction(fact):
            return self._has_instruction(fact)
        return fact.key in self._keys or self._has_value(fact)

    def _has_instruction(self, fact: Fact) -> bool:
        for line in self._lines[self._clause_lines :]:
            self._clauses += clauses_of(line)
        self._clause_lines = len(self._lines)
        return holds_instruction(fact.text, self._clauses, cast("WordKind", fact.kind))

    def _has_value(self, fact: Fact) -> bool:
        """Whether the text has the fact in another form: 18:40 for 오후 6시 40분, 5명 for 다섯 명."""
        if fact.kind == "code":
            return self._has_setting(fact.text)
        if fact.kind != "name" and fact.kind not in _VALUED:
            return False
        if fact.kind == "number" and self._has_counted(fact.key):
            return True
        self._values.add(narrow("\n".join(self._lines[self._value_lines :])))
        self._value_lines = len(self._lines)
        if fact.kind == "name":
            return self._values.has_person(fact.text)
        values = values_of(narrow(fact.text))
        return fact.text in self._values.addresses or (values is not None and self._values.hold(values))

    def _has_counted(self, key: str) -> bool:
        """Whether a text says what a bare number leaves out (4,800만 원), or counts by another word (690칸, 690개)."""
        number, _, unit = key.strip().partition(" ")
        if not number.isdigit() or len(number) < _LEAST_DIGITS:
            return False
        return (unit == "개" and f" {number} " in self._keys) or (
            not unit and any(f" {number}{magnitude}" in self._keys for magnitude in "십백천만억조")
        )

    def _has_setting(self, text: str) -> bool:
        setting = SETTING.fullmatch(text)
        if setting is None:
            return False
        name, wanted = key_of(setting["name"]), key_of(setting["value"])
        start = self._keys.find(name)
        while start >= 0:
            behind = start + len(name) - 1
            found = _SETTING_VALUE.search(self._keys, behind, behind + _VALUE_CHARS)
            if found and "\n" not in self._keys[behind : found.start()] and found[0] == wanted:
                return True
            start = self._keys.find(name, behind)
        return False


def missing_from(facts: Iterable[Fact], text: str) -> tuple[Fact, ...]:
    """Returns the facts that a text hasn't (`HeldFacts.has`), in order."""
    held = HeldFacts(text)
    return tuple(fact for fact in facts if not held.has(fact))
