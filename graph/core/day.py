"""Days: of messages in a time zone, of a record's label, and of words such as "yesterday" or 다음 주 월요일."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from graph.core.remembered import remembered
from prompt.system.framing import Language

_WEEKDAYS: Final[Mapping[Language, Sequence[str]]] = {
    "ko": "월화수목금토일",
    "en": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
}
_KO_DAYS: Final = {
    "그저께": -2, "그제": -2, "엊그제": -2, "어제": -1, "어저께": -1, "간밤": -1,
    "오늘": 0, "내일": 1, "모레": 2, "글피": 3,
}  # fmt: skip
_KO_COUNTS: Final = {
    "하루": 1,
    "이틀": 2,
    "사흘": 3,
    "나흘": 4,
    "닷새": 5,
    "엿새": 6,
    "일주일": 7,
    "열흘": 10,
    "보름": 15,
}
_KO_WEEKS: Final = {"지지난": -2, "지난": -1, "저번": -1, "이번": 0, "금": 0, "다음": 1, "내": 1, "다다음": 2}
_EN_DAYS: Final = {
    "the day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "this morning": 0,
    "this afternoon": 0, "this evening": 0, "tomorrow": 1, "the day after tomorrow": 2,
}  # fmt: skip
_EN_COUNTS: Final = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "ten": 10,
}


def _either(words: Mapping[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_RELATIVE: Final = re.compile(
    rf"(?<![가-힣])(?:(?P<ko_day>{_either(_KO_DAYS)})"
    rf"|(?:(?P<ko_week>{_either(_KO_WEEKS)})\s?주\s)?(?P<ko_weekday>[월화수목금토일])요일"
    rf"|(?P<ko_count>[0-9]{{1,3}}\s?일|[0-9]{{1,2}}\s?주일?|{_either(_KO_COUNTS)})\s?(?P<ko_way>뒤|후|전))"
    rf"|(?i:\b(?:(?P<en_day>{_either(_EN_DAYS)})"
    r"|(?:(?P<en_week>last|this|next)\s)?(?P<en_weekday>Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
    rf"|(?P<en_in>in\s)?(?P<en_count>[0-9]{{1,3}}|{_either(_EN_COUNTS)})\s(?P<en_unit>day|week)s?(?P<en_way>\sago|\sfrom\snow)?)\b)"
)
_WEEK: Final = 7
_RANGE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:/[0-9]{4}-[0-9]{2}-[0-9]{2})?")


def zone_named(name: str) -> tzinfo:
    """Returns the time zone with this IANA name; UTC for "" and for an unknown one."""
    try:
        return ZoneInfo(name) if name else UTC
    except (KeyError, ValueError, OSError):
        return UTC


def day_of(moment: datetime, zone: tzinfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%d}"


def range_of(days: Sequence[str]) -> str:
    """Returns the days as a record stores them: 2026-11-25, or the first and the last, 2026-11-25/2026-11-27."""
    known = sorted(filter(None, days))
    return "/".join(dict.fromkeys((known[0], known[-1]))) if known else ""


def is_range(days: str) -> bool:
    """Returns False for what `range_of` can't have written: an import may have anything there."""
    return _RANGE.fullmatch(days) is not None


def written(days: str, language: Language | None = None) -> str:
    """Renders stored days as a label has them: 2026-11-25 ~ 11-27; with a language and the weekday of one day."""
    first, _, last = days.partition("/")
    if language and first:
        first += f" ({_WEEKDAYS[language][date.fromisoformat(first).weekday()]})"
    return f"{first} ~ {last[5:] if last[:5] == days[:5] else last}" if last else first


def has_relative_day(text: str) -> bool:
    return _RELATIVE.search(text) is not None


@remembered
def days_meant(text: str, day: str) -> Sequence[str]:
    """Returns the dates that the words of a text said on a day may mean: 내일, last Friday, in two weeks."""
    return tuple(dict.fromkeys(_days_meant(text, date.fromisoformat(day))))


def _days_meant(text: str, said: date) -> Iterator[str]:
    for match in _RELATIVE.finditer(text):
        for offset in _offsets(match, said.weekday()):
            try:
                yield f"{said + timedelta(days=offset):%Y-%m-%d}"
            except OverflowError:
                continue


def _offsets(match: re.Match[str], weekday: int) -> Sequence[int]:
    found = {name: text.lower() for name, text in match.groupdict().items() if text}
    day, count = found.get("ko_day") or found.get("en_day"), found.get("ko_count")
    if day is not None:
        return ({**_KO_DAYS, **_EN_DAYS}[day],)
    if "ko_weekday" in found:
        ahead = _WEEKDAYS["ko"].index(found["ko_weekday"]) - weekday
        return (ahead + _WEEK * _KO_WEEKS[found["ko_week"]],) if "ko_week" in found else _nearest(ahead)
    if "en_weekday" in found:
        name = found["en_weekday"][:3].capitalize()
        return _english_weekday(_WEEKDAYS["en"].index(name) - weekday, found.get("en_week", ""))
    if count is not None:
        return (-_counted(count) if found["ko_way"] == "전" else _counted(count),)
    return _english_span(found)


def _english_weekday(ahead: int, week: str) -> Sequence[int]:
    if not week:
        return _nearest(ahead)
    # Of "next Friday" it isn't sure which week is meant.
    sign = {"last": -1, "this": 0, "next": 1}[week]
    return tuple(each for each in (ahead, ahead + _WEEK * sign) if each * sign >= 0)


def _english_span(found: Mapping[str, str]) -> Sequence[int]:
    if "en_in" not in found and "en_way" not in found:
        return ()
    count = _EN_COUNTS.get(found["en_count"]) or int(found["en_count"])
    count *= _WEEK if found["en_unit"] == "week" else 1
    return (-count if found.get("en_way", "").strip() == "ago" else count,)


def _counted(words: str) -> int:
    if words in _KO_COUNTS:
        return _KO_COUNTS[words]
    return int("".join(filter(str.isdigit, words))) * (_WEEK if "주" in words else 1)


def _nearest(ahead: int) -> Sequence[int]:
    """Returns a weekday's days before and behind: the word alone doesn't say which is meant."""
    return ahead % _WEEK, ahead % _WEEK - _WEEK
