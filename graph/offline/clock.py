"""Tells what the clock's tool returned as a sentence."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from graph.core.zone import name_of
from graph.offline.phrase import PHRASES, Language
from prompt.tool.result import WEEKDAYS

_CLOCK: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):\d\d \w+, (\S+) \((UTC\S*)\)")


def tell_clock(result: str, language: Language) -> str:
    """Returns the sentence; "" if the result names no time."""
    found = _CLOCK.search(result)
    if found is None:
        return ""
    year, month, day, hour, minute, zone, offset = found.groups()
    try:
        weekday = date(int(year), int(month), int(day)).weekday()
    except ValueError:
        return ""
    place = name_of(zone, is_korean=language == "ko")
    return PHRASES[language]["time"].format(
        place=place,
        topic=_topic(place),
        year=int(year),
        month=int(month),
        day=int(day),
        weekday=WEEKDAYS[language][weekday],
        half="오전" if int(hour) < 12 else "오후",  # noqa: PLR2004  # noon
        hour=(int(hour) - 1) % 12 + 1,
        minute=int(minute),
        clock=f"{hour}:{minute}",
        date=f"{year}-{month}-{day}",
        zone=zone,
        offset=offset,
    )


def _topic(word: str) -> str:
    """Returns the Korean topic particle for a word: 은 after a final consonant, else 는."""
    last = ord(word[-1]) - ord("가")
    return "은" if 0 <= last < 11172 and last % 28 else "는"  # noqa: PLR2004  # how many Hangul syllables and finals there are
