"""Reads the values that are written in several ways: times, dates, weekdays, amounts, counts, addresses, persons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from graph.fold.fact_key import AMOUNT, one_of
from graph.fold.fact_pattern import TITLE

_ONES: Final = ("", "한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉")
_TENS: Final = {"": 0, "열": 10, "스물": 20, "서른": 30, "마흔": 40, "쉰": 50}
_NATIVE: Final[Mapping[str, int]] = {
    **{
        f"{tens}{ones}": value + unit
        for tens, value in _TENS.items()
        for unit, ones in enumerate(_ONES)
        if tens or ones
    },
    "스무": 20,
    "하나": 1,
    "둘": 2,
    "셋": 3,
    "넷": 4,
}
_TEENS: Final = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
_ENGLISH: Final[Mapping[str, int]] = {
    **{word: number for number, word in enumerate(_TEENS, start=1)},
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
}
_KO_NUMBER: Final = one_of(" ".join(_NATIVE))
_EN_NUMBER: Final = one_of(" ".join(_ENGLISH))

_NOON_HOUR: Final = 12
_DAY_HOURS: Final = 24
_HOUR_MINUTES: Final = 60
_HALF_DAY: Final = _NOON_HOUR * _HOUR_MINUTES
# 밤 6시 is late, 밤 1시 isn't.
_EVENING_HOUR: Final = 6
_MOST_MONTHS: Final = 12
_MOST_DAYS: Final = 31
_LEAST_PLURAL: Final = 3
_HOUR: Final = re.compile(
    rf"(?:(?P<part>오전|오후|새벽|아침|저녁|밤|낮)\s?)?(?<![0-9:.,])(?:(?P<figures>[0-9]{{1,2}})|(?<![가-힣])(?P<word>{_KO_NUMBER}))"
    r"\s?시(?![간즌])(?:\s?(?P<minute>[0-9]{1,2})\s?분|\s?(?P<half>반)(?![가-힣]{2}))?"
    r"|(?:(?P<before>오전|오후|새벽|아침|저녁|밤|낮)\s?)?(?<![0-9:.])(?P<hour>[0-9]{1,2})(?::(?P<minutes>[0-5][0-9])(?::[0-5][0-9])?(?![0-9:])"
    r"(?:\s?(?P<mark>[apAP])\.?[mM](?![A-Za-z]))?|\s?(?P<sign>[apAP])\.?[mM](?![A-Za-z]))"
)
_NOON: Final = re.compile(r"(?<![가-힣])(?P<noon>정오)|(?<![가-힣])자정|(?i:\b(?P<midday>noon)\b|\bmidnight\b)")

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_DAY: Final = r"[0-9]{1,2}(?:st|nd|rd|th)?"
_DATE: Final = re.compile(
    r"(?<![0-9.])(?P<year>[0-9]{4})(?:\s?[-./년]\s?)(?P<month>[0-9]{1,2})(?:\s?[-./월]\s?)(?P<day>[0-9]{1,2})(?![0-9:])"
    r"|(?<![0-9])(?P<ko_month>[0-9]{1,2})\s?월\s?(?P<ko_day>[0-9]{1,2})\s?일"
    r"|(?<![0-9A-Za-z./-])(?P<slash_month>[0-9]{1,2})/(?P<slash_day>[0-9]{1,2})(?![0-9/.A-Za-z])"
    r"|(?<![0-9.])(?P<more>[0-9]{1,2})\s?일(?!간|치|차|동안|마다|에\s?한)"
    rf"|(?<![A-Za-z])(?P<name>{_MONTH})\s(?P<days>{_DAY}(?:\s?(?:,|and|&|or|to|[-–])\s?{_DAY}(?![0-9:])){{0,6}})(?:,?\s(?P<name_year>[0-9]{{4}}))?(?![0-9:])"
    rf"|(?<![0-9:])(?P<days_before>{_DAY}(?:\s?(?:,|and|&|or|to|[-–])\s?{_DAY}){{0,6}})\s(?:of\s)?(?P<name_behind>{_MONTH})(?:,?\s(?P<year_behind>[0-9]{{4}}))?"
)
_NUMBER: Final = re.compile(r"[0-9]+")
_YEAR: Final = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")

_WEEKDAYS: Final = "월화수목금토일"
_EN_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAY: Final = re.compile(
    r"(?<![가-힣])(?P<whole>[월화수목금토일])요일"
    r"|[(（\[]\s?(?P<bracketed>[월화수목금토일](?:\s?[·,/~∼–-]\s?[월화수목금토일]){0,6})(?=\s?[)）\],·/]|\s[0-9오])"
    r"|(?<![가-힣])(?P<list>[월화수목금토일](?:[·,/~∼–-]\s?[월화수목금토일]){1,6})(?![가-힣]{2})"
    r"|(?<![A-Za-z])(?P<english>Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:s|nes|rs|ur|urs)?(?:day)?s?(?![A-Za-z0-9_])"
)

_CURRENCIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("$", "달러", "dollar", "dollars", "usd", "bucks"), "$"),
    **dict.fromkeys(("₩", "원", "won", "krw"), "₩"),
    **dict.fromkeys(("€", "유로", "euro", "euros", "eur"), "€"),
    **dict.fromkeys(("£", "파운드", "gbp"), "£"),
    **dict.fromkeys(("¥", "엔", "yen", "jpy", "위안"), "¥"),
}
_SHORT: Final[Mapping[str, int]] = {
    "k": 10**3,
    "thousand": 10**3,
    "m": 10**6,
    "million": 10**6,
    "bn": 10**9,
    "billion": 10**9,
}
_FIGURE: Final = rf"(?:[0-9]{{1,9}}\.[0-9]{{1,4}}[만억조천]?|{AMOUNT})"
_SCALE: Final = r"(?:\s?(?P<scale{0}>[kKmM]|bn|million|billion|thousand)(?![A-Za-z]))?"
_MONEY: Final = re.compile(
    rf"(?P<sign>[$€£¥₩])\s?(?P<signed>{_FIGURE}){_SCALE.format(1)}"
    rf"|(?<![0-9A-Za-z.,])(?P<amount>{_FIGURE}){_SCALE.format(2)}\s?여?\s?(?P<unit>원|달러|엔(?![터진])|유로(?!파)|위안|파운드|(?:won|dollars?|euros?|yen|USD|KRW|EUR|JPY|GBP|bucks)(?![A-Za-z]))"
    rf"|(?<![A-Za-z])(?P<code>USD|KRW|EUR|JPY|GBP)\s?(?P<coded>{_FIGURE}){_SCALE.format(3)}"
    rf"|(?<![0-9A-Za-z.,])(?P<bare>[0-9][0-9,.]{{0,12}}[천백]?[만억](?:\s?[0-9]{{1,4}}[천백]?만)?)(?=[은는이을를도과와의로에까]|[\s.,;)]|$)(?!\s?(?:명|개|건|회|번|톤|대|권|장|부|표|호))"
)
_STEP: Final = re.compile(r"(?P<number>[0-9][0-9,]*(?:\.[0-9]+)?)?(?P<small>[십백천]{0,3})(?P<large>[만억조]?)")
_LARGE: Final = {"": 1, "만": 10**4, "억": 10**8, "조": 10**12}
_SMALL: Final = {"십": 10, "백": 100, "천": 1_000}
_NEAR_SHARE: Final = 0.01
_KNOWN_TEXTS: Final = 4_096

_UNITS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("명", "분", "사람", "people", "person", "persons"), "명"),
    **dict.fromkeys(("%", "퍼센트", "프로", "percent", "pct"), "%"),
    **dict.fromkeys(("개월", "달", "month", "months"), "개월"),
    **dict.fromkeys(("주", "주일", "week", "weeks"), "주"),
    **dict.fromkeys(("시간", "hour", "hours", "hr", "hrs", "h"), "h"),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), "min"),
    **dict.fromkeys(("초", "second", "seconds", "sec", "secs", "s"), "s"),
    **dict.fromkeys(("ms", "밀리초", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("km", "킬로미터"), "km"),
    **dict.fromkeys(("kg", "킬로그램"), "kg"),
    **dict.fromkeys(("곳", "군데"), "곳"),
}
_COUNTER: Final = one_of("""
명 분 사람 개월 개 달 주일 주 시간 초 퍼센트 프로 곳 군데 건 대 마리 권 장 병 잔 살 층 박 채 통 쪽 줄 표 방 팀 켤레 벌
세트 자리 밀리초 킬로미터 킬로그램
""")
_COUNT: Final = re.compile(
    rf"(?<![0-9A-Za-z.,:])(?P<number>[0-9][0-9,]{{0,15}}(?:\.[0-9]{{1,4}})?)\s?(?P<percent>%)"
    rf"|(?<![0-9A-Za-z.,:~∼–-])(?P<figures>[0-9][0-9,]{{0,15}}(?:\.[0-9]{{1,4}})?)\s?(?!분)(?P<counter>{_COUNTER})"
    rf"|(?<![가-힣])(?P<word>{_KO_NUMBER})\s?(?P<counted>{_COUNTER})"
    rf"|(?<![0-9A-Za-z.,:~∼–-])(?P<digits>[0-9][0-9,]{{0,15}}(?:\.[0-9]{{1,4}})?)[\s-]?(?P<thing>[a-z]{{1,14}})(?![A-Za-z0-9_])"
    rf"|(?<![A-Za-z])(?P<english>(?i:{_EN_NUMBER}))[\s-](?P<things>[a-z]{{2,14}})(?![A-Za-z0-9_])"
)
_ADDRESS: Final = re.compile(
    r"(?<![0-9.])(?P<host>[0-9]{1,3}(?:\.[0-9]{1,3}){3})(?:[:/](?P<port>[0-9]{1,5}))?(?![0-9.]*[0-9])"
)
_PERSON: Final = re.compile(rf"(?<![가-힣])(?P<surname>[가-힣])(?P<given>[가-힣]{{1,2}}|모)?\s?(?P<title>{TITLE})")


class Clock(NamedTuple):
    """A time of day in minutes; not certain if morning and afternoon can't be told."""

    minutes: int
    is_certain: bool


class Money(NamedTuple):
    """An amount, "" for a currency that isn't said, and the step that it is rounded to."""

    amount: float
    currency: str
    step: float


class Values:
    """The values of a text; lines may be added."""

    def __init__(self, text: str = "") -> None:
        self.clocks: set[Clock] = set()
        self.dates: set[tuple[int, int, int]] = set()
        self.years: set[int] = set()
        self.weekdays: set[int] = set()
        self.money: set[Money] = set()
        self.counts: set[tuple[float, str]] = set()
        self.addresses: set[str] = set()
        self.persons: set[tuple[str, str, str]] = set()
        for line in text.split("\n"):
            self.add(line)

    def add(self, line: str) -> str:
        """Adds the values of a line and returns the line with spaces in their places."""
        self.years.update(int(year) for year in _YEAR.findall(line))
        for match in _ADDRESS.finditer(line):
            self.addresses.update(part for part in match.groups() if part)
        self.persons.update(
            (match["surname"], match["given"] or "", match["title"]) for match in _PERSON.finditer(line)
        )
        left = _ADDRESS.sub(_blank, line)
        # Each kind is read from what the ones before it left: "6 pm" is no count.
        self.dates.update(_dates(left))
        left = _DATE.sub(_blank, left)
        self.clocks.update(_clocks(left))
        left = _NOON.sub(_blank, _HOUR.sub(_blank, left))
        self.money.update(_money(left))
        left = _MONEY.sub(_blank, left)
        self.weekdays.update(_weekdays(left))
        self.counts.update(_counts(left))
        return _COUNT.sub(_blank, left)

    def hold(self, values: Values) -> bool:
        """Returns True if other values, which say at least something, are all among these."""
        asked: list[bool] = [
            *(any(_is_same_clock(clock, known) for known in self.clocks) for clock in values.clocks),
            *(self._has_date(*date) for date in values.dates),
            *(day in self.weekdays for day in values.weekdays),
            *(any(_is_same_money(money, known) for known in self.money) for money in values.money),
            *(count in self.counts for count in values.counts),
            *(address in self.addresses for address in values.addresses),
        ]
        return bool(asked) and all(asked)

    @property
    def sorts(self) -> frozenset[str]:
        """What is said at all: a time, a date, a weekday, an amount, a count of some unit."""
        sets = (self.clocks, self.dates, self.weekdays, self.money, self.addresses)
        return frozenset([str(index) for index, found in enumerate(sets) if found] + [unit for _, unit in self.counts])

    def has_person(self, name: str) -> bool:
        """Returns True if someone with this surname and title ("송 과장") is named in full."""
        asked = _PERSON.fullmatch(name)
        if asked is None or asked["given"]:
            return False
        return any(
            given and (surname, title) == asked.group("surname", "title") for surname, given, title in self.persons
        )

    def _has_date(self, year: int, month: int, day: int) -> bool:
        return any(
            (known_month, known_day) == (month, day)
            and (not year or known_year == year or (not known_year and year in self.years))
            for known_year, known_month, known_day in self.dates
        )


@lru_cache(maxsize=_KNOWN_TEXTS)
def values_of(text: str) -> Values | None:
    """Returns the values of a fact; None if a figure of it is no part of a value."""
    values = Values()
    return None if _NUMBER.search(values.add(text)) else values


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _clocks(line: str) -> Iterator[Clock]:
    for match in _HOUR.finditer(line):
        part = match["part"] or match["before"] or (match["mark"] or match["sign"] or "").lower()
        written = match["figures"] or match["hour"]
        hour = int(written) if written else _NATIVE[match["word"]]
        minute = 30 if match["half"] else int(match["minute"] or match["minutes"] or 0)
        if hour <= _DAY_HOURS and minute < _HOUR_MINUTES:
            yield _clock(hour, minute, part, is_padded=bool(written) and written.startswith("0"))
    for match in _NOON.finditer(line):
        yield Clock(_HALF_DAY if match["noon"] or match["midday"] else 0, is_certain=True)


def _clock(hour: int, minute: int, part: str, *, is_padded: bool) -> Clock:
    is_late = part in ("오후", "저녁", "p") or (part in ("밤", "낮") and (part == "밤") == (hour >= _EVENING_HOUR))
    if is_late and hour < _NOON_HOUR:
        hour += _NOON_HOUR
    elif part in ("오전", "새벽", "밤", "a") and hour == _NOON_HOUR:
        hour = 0
    minutes = (hour % _DAY_HOURS) * _HOUR_MINUTES + minute
    return Clock(minutes, is_certain=bool(part) or is_padded or hour >= _NOON_HOUR)


def _is_same_clock(first: Clock, second: Clock) -> bool:
    if first.is_certain and second.is_certain:
        return first.minutes == second.minutes
    return (first.minutes - second.minutes) % _HALF_DAY == 0


def _dates(line: str) -> Iterator[tuple[int, int, int]]:
    """Yields year (0 if it isn't said), month and day; a day alone has the month of the date before it."""
    month = 0
    for match in _DATE.finditer(line):
        year = int(match["year"] or match["name_year"] or match["year_behind"] or 0)
        name = match["name"] or match["name_behind"]
        if name:
            month = _MONTHS.index(name[:3].lower()) + 1
        elif not match["more"]:
            month = int(match["month"] or match["ko_month"] or match["slash_month"])
        days = (
            match["days"]
            or match["days_before"]
            or match["day"]
            or match["ko_day"]
            or match["slash_day"]
            or match["more"]
        )
        for day in map(int, _NUMBER.findall(days)):
            if 1 <= month <= _MOST_MONTHS and 1 <= day <= _MOST_DAYS:
                yield year, month, day


def _weekdays(line: str) -> Iterator[int]:
    for match in _WEEKDAY.finditer(line):
        if match["english"]:
            yield _EN_WEEKDAYS.index(match["english"].lower())
        else:
            yield from map(_WEEKDAYS.index, _only_weekdays(match["whole"] or match["bracketed"] or match["list"]))


def _only_weekdays(text: str) -> Iterable[str]:
    return (char for char in text if char in _WEEKDAYS)


def _money(line: str) -> Iterator[Money]:
    for match in _MONEY.finditer(line):
        written = match["signed"] or match["amount"] or match["coded"] or match["bare"]
        currency = (match["sign"] or match["unit"] or match["code"] or "").lower()
        scale = _SHORT.get((match["scale1"] or match["scale2"] or match["scale3"] or "").lower(), 1)
        amount, step = _amount(written)
        yield Money(amount * scale, _CURRENCIES.get(currency, ""), step * scale)


def _amount(written: str) -> tuple[float, float]:
    """Returns an amount with Korean magnitudes, and the value of its last digit."""
    total = below = 0.0
    step = 1.0
    for match in _STEP.finditer(written):
        if not match[0]:
            continue
        number = match["number"] or "1"
        factor = 1
        for small in match["small"]:
            factor *= _SMALL[small]
        decimals = len(number.partition(".")[2])
        below += float(number.replace(",", "")) * factor
        large = _LARGE[match["large"]]
        step = factor * large / 10**decimals
        if large > 1:
            total, below = total + below * large, 0.0
    return total + below, step


def _is_same_money(first: Money, second: Money) -> bool:
    """Whether amounts are equal, or one is the other rounded, by at most one per cent."""
    if first.currency != second.currency and first.currency and second.currency:
        return False
    apart = abs(first.amount - second.amount)
    return apart <= max(first.step, second.step) / 2 * (apart <= _NEAR_SHARE * max(first.amount, second.amount))


def _counts(line: str) -> Iterator[tuple[float, str]]:
    for match in _COUNT.finditer(line):
        written = match["number"] or match["figures"] or match["digits"]
        if written:
            number = float(written.replace(",", ""))
        else:
            number = float(_NATIVE[match["word"]] if match["word"] else _ENGLISH[match["english"].lower()])
        unit = match["percent"] or match["counter"] or match["counted"] or match["thing"] or match["things"]
        yield number, _UNITS.get(unit) or _singular(unit)


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("ches", "xes", "sses")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and len(word) >= _LEAST_PLURAL else word
