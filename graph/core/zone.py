"""Finds the time zone of a place that a text names."""

from __future__ import annotations

import re
from typing import Final

_PLACES: Final = (
    ("Asia/Seoul", "서울", "Seoul", r"서울|한국|대한민국|\bseoul\b|\bkorea\b|\bkst\b"),
    ("Asia/Tokyo", "도쿄", "Tokyo", r"도쿄|동경|일본|\btokyo\b|\bjapan\b|\bjst\b"),
    ("Asia/Shanghai", "베이징", "Beijing", r"베이징|북경|상하이|중국|\bbeijing\b|\bshanghai\b|\bchina\b"),
    ("Asia/Singapore", "싱가포르", "Singapore", r"싱가포르|\bsingapore\b"),
    ("Asia/Kolkata", "인도", "India", r"인도(?!네)|뭄바이|델리|\bindia\b|\bmumbai\b|\bdelhi\b"),
    ("Europe/London", "런던", "London", r"런던|영국|\blondon\b|\bbritain\b|\bthe uk\b"),
    ("Europe/Paris", "파리", "Paris", r"파리|프랑스|\bparis\b|\bfrance\b"),
    ("Europe/Berlin", "베를린", "Berlin", r"베를린|독일|\bberlin\b|\bgermany\b"),
    ("America/New_York", "뉴욕", "New York", r"뉴욕|\bnew york\b|\bnyc\b|\bboston\b"),
    ("America/Los_Angeles", "로스앤젤레스", "Los Angeles", r"로스앤젤레스|\blos angeles\b|\bsan francisco\b"),
    ("America/Chicago", "시카고", "Chicago", r"시카고|\bchicago\b"),
    ("Australia/Sydney", "시드니", "Sydney", r"시드니|\bsydney\b"),
    ("UTC", "UTC", "UTC", r"\butc\b|\bgmt\b|협정\s?세계시"),
)
# ASCII, so that `\b` also matches between a Latin name and a Korean particle.
_PATTERNS: Final = tuple((zone, re.compile(pattern, re.IGNORECASE | re.ASCII)) for zone, _, _, pattern in _PLACES)
_IANA: Final = re.compile(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?\b", re.ASCII)


def find_zone(text: str) -> str:
    """Returns the IANA name of the first time zone or place in the text, "" if there is none."""
    if iana := _IANA.search(text):
        return iana.group()
    found = ((match.start(), zone) for zone, pattern in _PATTERNS if (match := pattern.search(text)))
    return min(found, default=(0, ""))[1]


def without_places(text: str) -> str:
    """Returns the text without the places and zones that `find_zone` knows."""
    text = _IANA.sub(" ", text)
    for _, pattern in _PATTERNS:
        text = pattern.sub(" ", text)
    return text


def name_of(zone: str, *, is_korean: bool) -> str:
    """Returns the common name of a zone, e.g. Seoul for Asia/Seoul."""
    named = next(((korean, english) for known, korean, english, _ in _PLACES if known == zone), None)
    if named is None:
        return zone.rsplit("/", 1)[-1].replace("_", " ")
    return named[0] if is_korean else named[1]
