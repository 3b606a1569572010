"""Reads the figures of a text by their value, in digits or words: dates, times, spans, amounts and identifiers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from graph.fold.fact_key import NOUN_END, PARTICLE, narrow, one_of

FigureKind = Literal["date", "day", "month", "slash", "time", "span", "amount", "identifier", "digits"]
"""What is written; "slash" is 3/15, a date or two numbers; "digits" are groups of digits such as a phone number."""


@dataclass(frozen=True)
class Figure:
    """A figure of a text.

    Attributes:
        start: Where it stands in the text; `end` likewise.
        values: Year (0 for none), month and day of a date; minutes of the day; seconds, or months below zero, of a span
            of time; each value that an amount may mean, the likeliest first.
        is_exact: False for a time that may be of either half of the day, and for an amount that the text hedges.
        unit: The sign of a currency, "%", or what is counted, in one form of several: "명" for people.
        step: The value of an amount's last digit.
    """

    kind: FigureKind
    text: str
    start: int
    end: int
    values: tuple[float, ...] = ()
    is_exact: bool = True
    unit: str = ""
    step: float = 1

    @property
    def is_in_words(self) -> bool:
        return self.kind != "identifier" and _EACH_DIGIT.search(self.text) is None


HALF_DAY: Final = 720
_DAY: Final = 2 * HALF_DAY
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAME: Final = (
    r"(?P<name>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)(?![a-z])\.?"
)
_NTH: Final = r"(?:st|nd|rd|th)?"
_NEXT: Final = (
    r"(?:,\s?(?=[0-9]{1,2}(?!\s(?!and|or|of|to)[a-z]))|,?\s(?:and|or|to|until|through)\s(?:the\s)?|\s?[-–~]\s?)"
)
_DAYS: Final = (
    rf"(?P<days>[0-9]{{1,2}}{_NTH}(?:{_NEXT}[0-9]{{1,2}}{_NTH}(?![0-9]|[.,:][0-9]|\s?[ap]\.?m)){{0,8}})"
    r"(?![0-9]|:[0-9])"
)
_KO_DAYS: Final = r"(?P<days>(?:[0-9]{1,2}일?\s?(?:[-~–∼,·]|에서|부터|와|과|및)\s?){0,8}[0-9]{1,2})일"
_EN_YEAR: Final = r"(?:,?\s(?P<year>(?:19|20)[0-9]{2})(?![0-9]))?"
_LINK: Final = re.compile(r"(?<![A-Za-z0-9])[a-z][a-z0-9]{1,10}://[!#-&(*-;=?-Z^-_a-z|~]{1,300}(?<![.,;:!?)])")
_EMAIL: Final = re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}+@[A-Za-z0-9.-]{1,80}(?<![-.])")
_DATES: Final = (
    re.compile(
        r"(?<![0-9A-Za-z_.,/-])(?P<year>[0-9]{4})(?:[-./]|\. )(?P<month>[0-9]{1,2})(?:[-./]|\. )(?P<days>[0-9]{1,2})"
        r"(?![0-9-]|[A-SU-Za-z])"
    ),
    re.compile(
        r"(?<![0-9A-Za-z_.,/-])(?P<year>20[0-9]{2})(?P<month>0[1-9]|1[0-2])(?P<days>[0-3][0-9])(?![0-9A-Za-z-])"
    ),
    re.compile(r"(?<![0-9.])(?P<month>[0-9]{1,2})\.\s?(?P<days>[0-9]{1,2})\.?(?=\s?\([월화수목금토일]\))"),
    re.compile(rf"(?:(?<![0-9])(?P<year>[0-9]{{4}}|[0-9]{{2}})년\s?)?(?<![0-9])(?P<month>[0-9]{{1,2}})월\s?{_KO_DAYS}"),
    re.compile(rf"(?<![A-Za-z]){_MONTH_NAME}\s{_DAYS}{_EN_YEAR}"),
    re.compile(rf"(?<![0-9A-Za-z_.,/:-]){_DAYS}\s(?:of\s)?{_MONTH_NAME}{_EN_YEAR}"),
)
_LONE_DAYS: Final = (
    re.compile(r"(?<![A-Za-z0-9])[Tt]he\s(?P<days>[0-9]{1,2}(?:st|nd|rd|th))(?![A-Za-z])"),
    re.compile(rf"(?<![0-9월.,]){_KO_DAYS}(?!간|\s?(?:이내|안에|동안|보관|전|후|뒤))"),
)
_BARE_YEAR: Final = re.compile(rf"(?<![A-Za-z]){_MONTH_NAME}\s(?:19|20)[0-9]{{2}}(?![0-9])|(?:19|20)[0-9]{{2}}년")
_BARE_MONTH: Final = re.compile(r"(?<![0-9])(?P<month>[0-9]{1,2})월(?!드)")
_SLASH: Final = re.compile(r"(?<![0-9A-Za-z/.,])(?P<month>[0-9]{1,2})/(?P<day>[0-9]{1,2})(?![0-9A-Za-z/])")

_PART: Final = r"(?:(?P<part>오전|오후|새벽|아침|저녁|밤|낮)\s?)?"
_HOURS: Final = re.compile(
    rf"{_PART}(?<![0-9.:])(?P<first>[0-9]{{1,2}})시?\s?(?:[-~–∼]|부터|에서|to|until|till)\s?(?P<last>[0-9]{{1,2}})"
    r"(?:시(?!간|즌|\s?[0-9반])|\s?(?P<half>[apAP])\.?[mM](?![A-Za-z]))"
)
_LOOSE_HOURS: Final = re.compile(r"(?<![0-9.:])([0-9]{1,2}) (?:to|until|till) ([0-9]{1,2})(?![0-9:])")
_LOOSE_SHARE: Final = re.compile(r"(?<![0-9.:])([0-9]{1,2}) 대 ([0-9]{1,2})(?![0-9:])")
_LOOSE_DATE: Final = re.compile(r"(?<![0-9.])([0-9]{1,2})\.([0-9]{1,2})(?![0-9.])")
_TIMES: Final = (
    re.compile(
        rf"{_PART}(?<![0-9A-SU-Za-z.:])(?P<hour>[0-9]{{1,2}}):(?P<minute>[0-9]{{2}})(?::[0-9]{{2}})?(?![0-9]|:[0-9])"
        r"(?:\s?(?P<half>[apAP])\.?[mM](?![A-Za-z]))?"
    ),
    re.compile(
        r"(?<![0-9A-Za-z.:])(?P<hour>[0-9]{1,2})(?:\.(?P<minute>[0-9]{2}))?\s?(?P<half>[apAP])\.?[mM](?![A-Za-z])"
    ),
    re.compile(
        rf"{_PART}(?<![0-9])(?P<hour>[0-9]{{1,2}})시(?!간|즌)"
        rf"(?:\s?(?P<minute>[0-9]{{1,2}})분|\s?(?P<thirty>반){NOUN_END})?"
    ),
)
_NOON: Final = re.compile(
    r"(?<![A-Za-z])(?i:(?P<noon>noon)|midnight)(?![A-Za-z])|(?<![가-힣])(?:(?P<midday>정오)|자정)"
)
_SHIFTS: Final[Mapping[str, int]] = {"half past": 30, "quarter past": 15, "quarter to": -15}
_EN_NUMBERS: Final = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety
"""
_ENGLISH: Final = dict(zip(_EN_NUMBERS.split(), (*range(1, 20), *range(20, 100, 10)), strict=True))
_KO_ONES: Final = {
    "하나": 1, "한": 1, "둘": 2, "두": 2, "셋": 3, "세": 3, "넷": 4, "네": 4,
    "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9,
}  # fmt: skip
_KO_TENS: Final = {
    "열": 10, "스물": 20, "스무": 20, "서른": 30, "마흔": 40, "쉰": 50, "예순": 60, "일흔": 70, "여든": 80, "아흔": 90,
}  # fmt: skip
_KOREAN: Final = {
    f"{tens}{ones}": n + m for tens, n in {"": 0, **_KO_TENS}.items() for ones, m in {"": 0, **_KO_ONES}.items()
}
_KO_NUMBER: Final = rf"(?:(?:{'|'.join(_KO_TENS)})(?:{'|'.join(_KO_ONES)})?|(?:{'|'.join(_KO_ONES)}))"
_WORD_TIME: Final = re.compile(
    r"(?<![A-Za-z])(?i:(?P<shift>half past|quarter past|quarter to) (?P<english>[a-z]{3,6}))"
    rf"|(?<![가-힣]){_PART}(?P<korean>{_KO_NUMBER})\s?시(?![간즌])(?:\s?(?P<minute>[0-9]{{1,2}})분|(?P<thirty>\s?반){NOUN_END})?"
)
_NATIVE: Final = re.compile(rf"(?<![가-힣]){_KO_NUMBER}(?=\s?[가-힣]|\s|[,.]|$)")
_SINO: Final = re.compile(
    r"(?<![가-힣])[일이삼사오육칠팔구십백천만억]{1,12}(?=\s?(?:원|달러|엔|명|개|건|석|장|대|여|[년월일시분]))"
)
_SINO_DIGITS: Final = str.maketrans("일이삼사오육칠팔구", "123456789")
_SHARES: Final = (
    (50.0, re.compile(r"절반|(?<![A-Za-z])(?i:half)(?![A-Za-z])")),
    (25.0, re.compile(r"(?<![A-Za-z])(?i:quarter)(?![A-Za-z])")),
)
_ENGLISH_RUN: Final = re.compile(r"[A-Za-z]+")
_WORD_COUNT: Final = re.compile(
    rf"(?<![가-힣])(?P<korean>{_KO_NUMBER})\s?(?P<counter>[가-힣]{{1,2}}?{NOUN_END})"
    rf"|(?<![A-Za-z])(?P<english>(?i:{one_of(' '.join(_ENGLISH))}))[\s-](?P<thing>[a-z]{{2,14}})(?![A-Za-z0-9_])"
)

_DIGITS: Final = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,5}(?![0-9])|[0-9]{1,15})(?:\.[0-9]{1,6})?"
_MAGNITUDES: Final = "[십백천만억조]{1,3}"
_AMOUNT: Final = re.compile(
    rf"(?<![0-9])(?<![0-9][.,]){_DIGITS}(?:{_MAGNITUDES}(?:\s?{_DIGITS}(?![0-9A-Za-z.:]|\s?[월일시])){{0,1}}){{0,4}}"
)
_AMOUNT_PART: Final = re.compile(rf"(?P<digits>{_DIGITS})?(?P<magnitudes>{_MAGNITUDES})?")
_SMALL: Final[Mapping[str, int]] = {"십": 10, "백": 100, "천": 1_000}
_LARGE: Final[Mapping[str, int]] = {"만": 10**4, "억": 10**8, "조": 10**12}
_TIMES_BEHIND: Final = re.compile(r"(?:\s?(?P<word>million|billion|thousand|bn)|(?P<letter>[kKM]))(?![A-Za-z0-9])")
_SHARE_BEHIND: Final = re.compile(r"\s?(?:%|퍼센트|(?i:percent|per cent)(?![A-Za-z]))")
# 10~15만 원
_SHARED_MAGNITUDE: Final = re.compile(rf"\s?[-~–∼]\s?{_DIGITS}(?P<magnitudes>{_MAGNITUDES})")
_FACTORS: Final[Mapping[str, int]] = {
    "k": 10**3, "K": 10**3, "M": 10**6, "thousand": 10**3, "million": 10**6, "bn": 10**9, "billion": 10**9,
}  # fmt: skip
_MONEY_BEFORE: Final = re.compile(r"([$€£¥₩]|(?<![A-Za-z])(?:USD|KRW|EUR|JPY|GBP))\s?\Z")
_NO_UNIT: Final = r"(?!(?:a|an|and|as|at|by|for|from|in|is|of|on|or|per|the|to|was|were|with)(?![A-Za-z]))"
_NO_PARTICLE: Final = rf"(?!(?!도|인(?!데)|대로){PARTICLE}(?![가-힣]))"
_UNIT_BEHIND: Final = re.compile(
    r"(?:여(?![기러]))?[\s-]?(원|달러|엔(?![터진])|유로(?!파)|위안|파운드|%|퍼센트|[㎡㎥]|킬로미터|킬로그램"
    rf"|(?i:per cent)(?![A-Za-z])|{_NO_UNIT}[A-Za-z]{{1,12}}|{_NO_PARTICLE}[가-힣]{{1,2}}?{NOUN_END})"
)
_MONEY_UNITS: Final = {
    "$": "$ 달러 dollar dollars usd bucks",
    "₩": "₩ 원 won krw",
    "€": "€ 유로 euro euros eur",
    "£": "£ 파운드 pound pounds gbp",
    "¥": "¥ 엔 yen jpy 위안",
    "%": "% 퍼센트 프로 percent pct",
}
_OTHER_UNITS: Final = {
    "명": "명 분 인 사람 people person persons guest guests patient patients employee employees adult adults children",
    "km": "km 킬로미터",
    "kg": "kg 킬로그램",
    "곳": "곳 군데",
}
_UNITS: Final = {name: unit for unit, names in (_MONEY_UNITS | _OTHER_UNITS).items() for name in names.split()} | {
    "per cent": "%"
}
MONEY: Final = frozenset(_MONEY_UNITS)
PEOPLE: Final = "명"
SPAN: Final = "s"
"""Unit of a span of time: seconds, or months below zero."""
_ENDS_IN_ES: Final = ("ches", "xes", "sses")
_HEDGE: Final = re.compile(
    r"(?:약|대략|거의|(?<![A-Za-z])(?i:around|about|roughly|nearly|almost|over|some)|~|≈)\s?[$€£¥₩]?\Z"
)
_HEDGE_BEHIND: Final = re.compile(r"\s?[가-힣%]{0,3}\s?(?:쯤|정도|남짓|가량|안팎)|여(?![기러])")
_SPAN_UNIT: Final = (
    r"(?:시간|분(?!기|의|야|들)|초(?!등|반|순|안)|일(?=간|\s?(?:이내|안에|동안|보관|전|후|뒤))"
    r"|주(?=간|일|\s?(?:이내|동안|전|후|뒤))|개월|년(?!도)|박(?![가-힣]{2})"
    r"|(?:hours?|hrs?|h|minutes?|mins?|seconds?|secs?|s|ms|days?|nights?|weeks?|months?|years?)(?![A-Za-z0-9]))"
)
_SPAN: Final = re.compile(
    rf"(?<![0-9])(?<![0-9][.,])(?P<digits>{_DIGITS})[\s-]?(?P<unit>{_SPAN_UNIT})"
    rf"(?:\s(?:and\s)?(?P<more>[0-9]{{1,2}})\s?(?P<smaller>{_SPAN_UNIT}))?(?P<half>\s?반{NOUN_END}|\sand a half)?"
)
_SECONDS: Final[Mapping[str, float]] = {
    "시간": 3_600, "분": 60, "초": 1, "일": 86_400, "박": 86_400, "주": 604_800, "개월": -1, "년": -12,
    "hour": 3_600, "hr": 3_600, "h": 3_600, "minute": 60, "min": 60, "second": 1, "sec": 1, "s": 1, "ms": 0.001,
    "day": 86_400, "night": 86_400, "week": 604_800, "month": -1, "year": -12,
}  # fmt: skip

_WORD_SPAN: Final = re.compile(
    rf"(?<![A-Za-z가-힣])(?:(?P<english>[Hh]alf an|[A-Za-z]{{1,9}})[ -]|(?P<korean>{_KO_NUMBER})\s?)"
    rf"(?!분)(?P<unit>{_SPAN_UNIT})(?P<half>\s?반{NOUN_END}|\sand a half)?"
)
_COUNTS: Final[Mapping[str, float]] = {**_ENGLISH, **_KOREAN, "a": 1, "an": 1, "half an": 0.5}
# A comma is part of a run only as the mark of thousands.
_RUN: Final = re.compile(r"(?:[A-Za-z0-9_./@+#:~\\-]|(?<=[0-9]),(?=[0-9]{3}(?![0-9]))){2,300}")
_RUN_ENDS: Final = ".:/-,~+#@"
_QUANTITY: Final = re.compile(
    r"[+~#-]?[0-9][0-9.,]{0,20}[A-Za-z]{0,5}(?:[/-][0-9][0-9.,]{0,20}[A-Za-z]{0,4}){0,8}(?:[/-][A-Za-z-]{1,30})?"
)
_DOTTED: Final = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,5}){2,5}(?:[:/][0-9]{1,5})?")
_FILE_END: Final = re.compile(r"[A-Za-z0-9_]\.[A-Za-z][A-Za-z0-9]{1,5}\Z")
_LETTER: Final = re.compile(r"[A-Za-z]")
_EACH_DIGIT: Final = re.compile(r"[0-9]")
_LEAST_RUN: Final = 4
_DIGIT_GROUPS: Final = re.compile(
    r"(?<![0-9A-Za-z.,-])\+?\(?[0-9]{1,4}\)?(?:[ -][0-9]{2,5}){2,5}(?![0-9A-Za-z]|,[0-9]{3})"
)
_LEAST_DIGITS: Final = 7
# A whole number that is no part of a decimal, of thousands or of a word.
_EACH_NUMBER: Final = re.compile(
    r"(?<![0-9A-Za-z_])(?<![0-9]\.)(?!(?<=[0-9],)[0-9]{3}(?![0-9]))[0-9]{1,15}(?![0-9]|,[0-9]{3}(?![0-9])|\.[0-9]{1,6}(?![0-9.]))"
)
_EACH_DAY: Final = re.compile(r"[0-9]{1,2}")
_MOST_MONTHS, _MOST_DAYS, _MOST_HOURS, _MOST_MINUTES = 12, 31, 24, 59


def figures_in(text: str) -> list[Figure]:
    """Returns the figures of a text in order; no two overlap."""
    plain = narrow(text)
    taken = bytearray(len(plain))
    found: list[Figure] = []
    for pattern, read in _READERS if _EACH_DIGIT.search(plain) else _WITHOUT_DIGITS:
        for match in pattern.finditer(plain):
            start, end = match.span()
            if taken.find(1, start, end) < 0 and (figures := read(match)):
                taken[start:end] = b"\x01" * (end - start)
                found += figures
    return sorted(found, key=lambda figure: figure.start)


def numbers_in(text: str) -> set[float]:
    """Returns every number that a text may be read to have, also within other figures and in words."""
    plain = narrow(text)
    found = {float(match[0]) for match in _EACH_NUMBER.finditer(plain)}
    for match in _AMOUNT.finditer(plain):
        found.update(_amounts(match, _TIMES_BEHIND.match(plain, match.end()))[0])
        if not match[0].isdecimal():
            found.update(_value(part["digits"], "") for part in _AMOUNT_PART.finditer(match[0]) if part["digits"])
    shares = {share for share, pattern in _SHARES if pattern.search(plain)}
    return found | words_in(plain) | shares | {share / 100 for share in shares}


def words_in(text: str) -> set[float]:
    """Returns the numbers that a text has in words."""
    found = {float(_KOREAN[match[0]]) for match in _NATIVE.finditer(text)}
    found |= {_evaluated(match[0].translate(_SINO_DIGITS))[0] for match in _SINO.finditer(text)}
    so_far = 0
    for match in _ENGLISH_RUN.finditer(text):
        word = match[0].lower()
        if word in _ENGLISH:
            so_far = so_far + _ENGLISH[word] if so_far >= _ENGLISH["twenty"] else _ENGLISH[word]
            found.add(float(so_far))
        elif word in ("hundred", "thousand"):
            so_far = max(1, so_far) * (100 if word == "hundred" else 1_000)
            found.add(float(so_far))
        elif word != "and":
            so_far = 0
    return found


def loose_figures_in(text: str) -> Iterator[Figure]:
    """Yields what numbers of a text may be as well: 9 to 5, the decimal 5.3 for 3 May, a share that is no time."""
    for match in _LOOSE_SHARE.finditer(text):
        yield _figure("time", match, float(match[1]) * 60 + float(match[2]))
    for match in _LOOSE_HOURS.finditer(text):
        hours = (hour for hour in map(float, match.groups()) if hour <= _MOST_HOURS)
        yield from (_figure("time", match, hour * 60 % _DAY, is_exact=False) for hour in hours)
    for match in _LOOSE_DATE.finditer(narrow(text)):
        yield _figure("date", match, 0, *map(int, match.groups()))


def _date(match: re.Match[str]) -> list[Figure]:
    named = match.groupdict()
    month = int(named["month"]) if "month" in named else 1 + _MONTHS.index(named["name"][:3].lower())
    year = int(named.get("year") or 0)
    days = [int(day) for day in _EACH_DAY.findall(match["days"])]
    if not 1 <= month <= _MOST_MONTHS or not all(1 <= day <= _MOST_DAYS for day in days):
        return []
    year += 2_000 if 0 < year < 100 else 0  # noqa: PLR2004  # two digits
    return [_figure("date", match, year, month, day) for day in days]


def _hours(match: re.Match[str]) -> list[Figure]:
    hours = int(match["first"]), int(match["last"])
    if max(hours) > _MOST_HOURS:
        return []
    part = match["part"] or (match["half"] or "").lower()
    minutes = [_of_day(hour, 0, part) for hour in hours]
    return [_figure("time", match, each, is_exact=is_exact and not part) for each, is_exact in minutes]


def _days(match: re.Match[str]) -> list[Figure]:
    return [_figure("day", match, int(day)) for day in _EACH_DAY.findall(match["days"])]


def _time(match: re.Match[str]) -> list[Figure]:
    named = match.groupdict()
    hour, minute = int(named["hour"]), int(named["minute"] or 0)
    if hour > _MOST_HOURS or minute > _MOST_MINUTES:
        return []
    written = "0" if named["hour"].startswith("0") else ""
    part = named.get("part") or (named.get("half") or "").lower() or written
    minutes, is_exact = _of_day(hour, minute, part, shift=30 if named.get("thirty") else 0)
    return [_figure("time", match, minutes, is_exact=is_exact)]


def _word_time(match: re.Match[str]) -> list[Figure]:
    hour = _COUNTS.get(match["korean"] or match["english"].lower(), _MOST_HOURS + 1)
    if hour > _MOST_HOURS:
        return []
    shift = _SHIFTS.get((match["shift"] or "").lower(), 30 if match["thirty"] else int(match["minute"] or 0))
    minutes, is_exact = _of_day(int(hour), 0, match["part"], shift=shift)
    return [_figure("time", match, minutes, is_exact=is_exact)]


def _noon(match: re.Match[str]) -> list[Figure]:
    return [_figure("time", match, HALF_DAY if match["noon"] or match["midday"] else 0)]


def _of_day(hour: int, minute: int, part: str | None, *, shift: int = 0) -> tuple[float, bool]:
    is_exact = bool(part) or hour == 0 or hour > 12  # noqa: PLR2004  # hours of half a day
    if part in ("오후", "저녁", "밤", "낮", "p") and hour < 12:  # noqa: PLR2004
        hour += 0 if (part == "밤" and hour < 6) or (part == "낮" and hour > 10) else 12  # noqa: PLR2004
    elif part in ("오전", "새벽", "아침", "밤", "a") and hour == 12:  # noqa: PLR2004
        hour = 0
    return float((hour * 60 + minute + shift) % _DAY), is_exact


def _span(match: re.Match[str]) -> list[Figure]:
    count = _value(match["digits"], "") + (0.5 if match["half"] else 0)
    seconds = count * _seconds(match["unit"])
    if match["more"]:
        seconds += int(match["more"]) * _seconds(match["smaller"])
    return [_figure("span", match, round(seconds, 6), *(() if match["more"] else (count,)))]


def _seconds(unit: str) -> float:
    return _SECONDS.get(unit) or _SECONDS[unit.removesuffix("s")]


def _run(match: re.Match[str]) -> list[Figure]:
    """Returns the identifier, path or version of a run of characters; [] for words, numbers and quantities."""
    if match[0].isalpha():
        return []
    left = match[0].lstrip(_RUN_ENDS.replace("/", "").replace("~", ""))
    text = left.rstrip(_RUN_ENDS)
    has_digit, has_letter = _EACH_DIGIT.search(text), _LETTER.search(text)
    is_path = text.startswith(("/", "~/", "./")) or bool(_FILE_END.search(text)) or "_" in text.strip("_")
    is_word = not has_letter or not (has_digit or is_path) or bool(_QUANTITY.fullmatch(text))
    if not _DOTTED.fullmatch(text) and (is_word or sum(map(str.isalnum, text)) < _LEAST_RUN):
        return []
    start = match.end() - len(left)
    return [Figure("identifier", text, start, start + len(text))]


def _digits(match: re.Match[str]) -> list[Figure]:
    return [_figure("digits", match)] if len(_EACH_DIGIT.findall(match[0])) >= _LEAST_DIGITS else []


def _word_span(match: re.Match[str]) -> list[Figure]:
    count = _COUNTS.get((match["english"] or match["korean"]).lower(), 0) + (0.5 if match["half"] else 0)
    return [_figure("span", match, round(count * _seconds(match["unit"]), 6), count)] if count >= 0.5 else []  # noqa: PLR2004  # a half


def _word_count(match: re.Match[str]) -> list[Figure]:
    count = _COUNTS[match["korean"] or match["english"].lower()]
    return [_figure("amount", match, count, unit=_unit(match["counter"] or match["thing"]))]


def _amount(match: re.Match[str]) -> list[Figure]:
    text, (start, end) = match.string, match.span()
    before = text[max(0, start - 12) : start]
    times = _TIMES_BEHIND.match(text, end)
    last = times.end() if times else end
    sign = _MONEY_BEFORE.search(before)
    behind = None if sign else _UNIT_BEHIND.match(text, last)
    first = start - len(sign[0]) if sign else start
    values, step = _amounts(match, times)
    found = sign or behind
    return [
        Figure(
            "amount",
            text[first : behind.end() if behind else last].strip(),
            first,
            end,
            values,
            is_exact=not (_HEDGE.search(before) or _HEDGE_BEHIND.match(text, end)),
            unit=_unit(found[1]) if found else "",
            step=step,
        )
    ]


def _unit(written: str) -> str:
    unit = written.casefold()
    if unit in _UNITS or len(unit) <= 2:  # noqa: PLR2004  # s, ms
        return _UNITS.get(unit, unit)
    if unit.endswith("ies"):
        return f"{unit[:-3]}y"
    return unit[:-2] if unit.endswith(_ENDS_IN_ES) else unit.removesuffix("s")


def _amounts(match: re.Match[str], times: re.Match[str] | None) -> tuple[tuple[float, ...], float]:
    """Returns each value that an amount may mean, and the value of its last digit."""
    value, step = _evaluated(match[0])
    if _SHARE_BEHIND.match(match.string, match.end()):
        return (value, round(value / 100, 6)), step
    if times:
        factor = _FACTORS[times["word"] or times["letter"]]
        return (round(value * factor, 6), value), step * factor
    shared = _SHARED_MAGNITUDE.match(match.string, match.end())
    if shared:
        larger, step = _evaluated(f"{match[0]}{shared['magnitudes']}")
        return (larger, value), step
    return (value,), step


def _evaluated(written: str) -> tuple[float, float]:
    """Returns the value of digits with Korean magnitudes (3억 5천만, 2만 1,906), and that of its last digit."""
    if written.isdecimal():
        return float(written), 1.0
    total = section = 0.0
    step = 1.0
    for part in _AMOUNT_PART.finditer(written):
        if part[0]:
            marks, digits = part["magnitudes"] or "", part["digits"] or "1"
            section += _value(digits, marks)
            large = next((_LARGE[mark] for mark in marks if mark in _LARGE), 1)
            step = _value("1", marks) * large / 10 ** len(digits.partition(".")[2])
            if large > 1:
                total, section = total + section * large, 0.0
    return round(total + section, 6), step


def _value(digits: str, marks: str) -> float:
    value = float(digits.replace(",", ""))
    for mark in marks:
        value *= _SMALL.get(mark, 1)
    return value


def _figure(kind: FigureKind, match: re.Match[str], *values: float, is_exact: bool = True, unit: str = "") -> Figure:
    return Figure(kind, match[0].strip(), *match.span(), values, is_exact, unit)


_Reader = Callable[[re.Match[str]], list[Figure]]


def _plain(kind: FigureKind, *groups: str) -> _Reader:
    """Returns a reader of the whole match, with the numbers of its groups; a year has none, as a summary may add it."""
    return lambda match: [_figure(kind, match, *(int(match[group]) for group in groups))]


_Readers = tuple[tuple[re.Pattern[str], _Reader], ...]
_ADDRESSES: Final[_Readers] = ((_LINK, _plain("identifier")), (_EMAIL, _plain("identifier")))
_WORDS: Final[_Readers] = (
    (_WORD_TIME, _word_time),
    (_NOON, _noon),
    (_WORD_SPAN, _word_span),
    (_WORD_COUNT, _word_count),
)
_WITHOUT_DIGITS: Final[_Readers] = (*_ADDRESSES, (_RUN, _run), *_WORDS)
_READERS: Final[_Readers] = (
    *_ADDRESSES,
    *((pattern, _date) for pattern in _DATES),
    (_HOURS, _hours),
    *((pattern, _time) for pattern in _TIMES),
    (_RUN, _run),
    (_DIGIT_GROUPS, _digits),
    (_BARE_YEAR, _plain("month")),
    (_SPAN, _span),
    *((pattern, _days) for pattern in _LONE_DAYS),
    (_BARE_MONTH, _plain("month", "month")),
    (_SLASH, _plain("slash", "month", "day")),
    (_AMOUNT, _amount),
    *_WORDS,
)
