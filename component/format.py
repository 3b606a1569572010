"""Pure functions that format values as labels and group sessions by day."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime, tzinfo
from decimal import Decimal
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from graph.value.view import SessionItem

DayGroup = Literal["today", "yesterday", "last_week", "older"]
SessionGroup = Literal["pinned", DayGroup]
SESSION_GROUPS: tuple[SessionGroup, ...] = ("pinned", "today", "yesterday", "last_week", "older")

_TWO_DIGITS = 10
_KILOBYTE = 1024
_CENT = Decimal("0.01")
_SMALLEST_SHOWN = Decimal("0.0001")
_INLINE_MARKS = re.compile(r"([\\`*_\[\]~<$:&|])")
_LEADING_MARK = re.compile(r"^([#>+-]|\d+(?=[.)]))")


def format_turns(turns: Sequence[int]) -> str:
    """Returns `1-3` for turns 1, 2, 3, and `5` for turn 5 alone."""
    return f"{turns[0]}-{turns[-1]}" if len(turns) > 1 else f"{turns[0]}"


def format_count(number: int) -> str:
    """Returns `1,500`; with a true minus sign."""
    return f"{number:,}".replace("-", "−")


def format_tokens(tokens: int, *, is_usage: bool) -> str:
    """Returns a token count, marked with ≈ for an estimate."""
    return format_count(tokens) if is_usage else f"≈{format_count(tokens)}"


def format_money(amount: Decimal, currency: str, *, is_estimate: bool) -> str:
    """Returns an amount as Markdown, `12.35 USD`, `0.0123 USD` or `$0.0123`, marked with ≈ for an estimate."""
    size = abs(amount)
    unit, sign = _SMALLEST_SHOWN if size < 1 else _CENT, "−" if amount < 0 else ""
    digits = f"{size.quantize(unit):,f}" if size else "0"
    if 0 < size < _SMALLEST_SHOWN:
        sign, digits = f"{sign}<" if amount > 0 else ">−", f"{_SMALLEST_SHOWN:f}"
    named = escape_label(currency)
    shown = f"{sign}{digits} {named}" if currency[-1].isalnum() else f"{sign}{named}{digits}"
    return f"≈{shown}" if is_estimate else shown


def format_bytes(size: int) -> str:
    if size < _KILOBYTE:
        return f"{size} B"
    return f"{size / _KILOBYTE:.1f} KB" if size < _TWO_DIGITS * _KILOBYTE else f"{format_count(size // _KILOBYTE)} KB"


def format_about(number: int) -> str:
    """Returns a number rounded to two significant digits: `370` for 372, `1,200` for 1240."""
    return format_count(round(number, 2 - len(str(number))) if number >= _TWO_DIGITS else number)


def count_lines(text: str, line_ems: float) -> int:
    """Estimates the lines of a text at this width; wide characters are one em, others half."""
    ems = (sum(1 if unicodedata.east_asian_width(sign) in "WF" else 0.5 for sign in line) for line in text.splitlines())
    return sum(max(1, math.ceil(width / line_ems)) for width in ems)


def format_percent(part: int, whole: int) -> int:
    """Returns the rounded percentage: at least 1 for a positive part, 0 without a whole."""
    return max(round(100 * part / whole), 1) if part > 0 and whole > 0 else 0


def zone_of(name: str | None) -> tzinfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def day_group(moment: datetime, now: datetime, zone: tzinfo) -> DayGroup:
    """Returns the group of a time by calendar days in the user's zone; a future time counts as today."""
    days = (now.astimezone(zone).date() - moment.astimezone(zone).date()).days
    if days <= 0:
        return "today"
    if days == 1:
        return "yesterday"
    return "last_week" if days <= 7 else "older"  # noqa: PLR2004 - the group is called "last 7 days"


def group_sessions(
    items: Sequence[SessionItem], now: datetime, zone: tzinfo
) -> list[tuple[SessionGroup, list[list[SessionItem]]]]:
    """Groups sessions by day, each with its listed branches behind it, where the newest of them stands."""
    listed = {(item.is_pinned, item.session_id): item for item in items}
    families: dict[str, list[SessionItem]] = {}
    for item in items:
        first, passed = item, {item.session_id}
        # An imported file may have branches of each other.
        while (origin := listed.get((item.is_pinned, first.forked_from))) and origin.session_id not in passed:
            first = origin
            passed.add(first.session_id)
        families.setdefault(first.session_id, []).append(item)
    groups: dict[SessionGroup, list[list[SessionItem]]] = {name: [] for name in SESSION_GROUPS}
    for first_id, members in families.items():
        group: SessionGroup = "pinned" if members[0].is_pinned else day_group(members[0].updated_at, now, zone)
        groups[group].append(sorted(members, key=lambda item: item.session_id != first_id))
    return [(name, found) for name, found in groups.items() if found]


def escape_label(text: str) -> str:
    line = _INLINE_MARKS.sub(r"\\\1", " ".join(text.split()))
    # In a list number the dot or bracket is escaped, not the digits.
    return _LEADING_MARK.sub(lambda mark: f"{mark[1]}\\" if mark[1].isdigit() else f"\\{mark[1]}", line)
