"""Snapshot of a session, the basis for strategies to decide what to fold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from graph.core.ledger import ledger_tokens
from graph.core.open_question import without_answered
from graph.core.pin import LARGEST_SHARES, BlockKind, budget_tokens
from graph.value.record import ArchivedMessage, HistoryEntry, Record, to_entry
from graph.value.view import FoldWhen
from prompt.system.framing import Language

_LEAST_SHARE: Final = 4


@dataclass(frozen=True)
class SessionSnapshot:
    """Input of a strategy's decision.

    Attributes:
        active: The active records, oldest first; together they cover the session's beginning without a gap.
        raw: The live messages that no record covers, oldest first, those of an open turn included.
        correction: Factor from estimates to the provider's usage, at least 1.0.
        restored_tokens: Estimate for the context when a compaction was last undone, 0 if there was none since the last
            one. No automatic compaction is made until the context has grown past it.
        input_tokens: The largest input for the session's model, minus front and pins; None for no bound.
        front_tokens: Estimates for the blocks in the session's system prompt, by kind.
        undone: The first and last positions of merges that the user undid: merged again only for want of room.
        set_aside: Records, in no order, that were active after an undone compaction and cover raw messages only: each
            may be activated again once everything before it is folded.
        time_zone: IANA name of the user's zone, "" for UTC.
        imported: Those of the raw turns that a program sent with their answers.
        reads_cache: True if the endpoint reported cached tokens for this session's last calls.
        fold_when: When due blocks are folded, "" for the strategy's default.
    """

    complete_turns: int
    active: Sequence[Record]
    raw: Sequence[ArchivedMessage]
    rate: float
    correction: float = 1.0
    restored_tokens: int = 0
    input_tokens: int | None = None
    language: Language = "ko"
    front_tokens: Mapping[BlockKind, int] = field(default_factory=dict)
    pin_tokens: int = 0
    undone: frozenset[tuple[int, int]] = frozenset()
    set_aside: Sequence[Record] = ()
    imported: frozenset[int] = frozenset()
    time_zone: str = ""
    reads_cache: bool = False
    fold_when: FoldWhen | Literal[""] = ""

    def within(self, input_tokens: int) -> SessionSnapshot:
        """Returns the snapshot with the input bound that remains after front blocks and pins, cut as for sending.

        A quarter at least: what a program's instructions leave no room for is left out of calls, not folded away.
        """
        taken_tokens = min(self.pin_tokens, budget_tokens(input_tokens))
        if any(record.ledger for record in self.active):
            taken_tokens += ledger_tokens(input_tokens)
        for kind, used in self.front_tokens.items():
            taken_tokens += min(used, input_tokens // LARGEST_SHARES.get(kind, 1))
        return replace(self, input_tokens=max(input_tokens - taken_tokens, input_tokens // _LEAST_SHARE))

    def adopting(self, record: Record) -> SessionSnapshot:
        """Returns the snapshot once a finished record is active, in place of all that it covers."""
        others = [each for each in self.active if not record.covers(each)]
        return replace(
            self,
            active=sorted([*others, record], key=lambda each: each.from_position),
            raw=[entry for entry in self.raw if not record.from_position <= entry.position <= record.to_position],
        )

    @property
    def covered_turn(self) -> int:
        """The last turn that is covered whole or was removed by a reset; 0 if there is none."""
        return self.raw[0].turn - 1 if self.raw else self.complete_turns

    @property
    def complete_raw(self) -> list[ArchivedMessage]:
        return [entry for entry in self.raw if entry.turn <= self.complete_turns]

    @property
    def history(self) -> list[HistoryEntry]:
        """The active records as they are sent."""
        return without_answered([to_entry(record) for record in self.active], self.language)

    @property
    def context_tokens(self) -> int:
        """Estimate for the context: the active records and the raw messages of complete turns."""
        record_tokens = sum(entry["summary_tokens"] for entry in self.history)
        return record_tokens + sum(entry.tokens for entry in self.complete_raw)

    @property
    def message_count(self) -> int:
        return len(self.complete_raw) + bool(self.active)


def without_overlap(records: Sequence[Record], active: Sequence[Record]) -> list[Record]:
    """Returns the records that overlap neither an active record nor an earlier one of the list."""
    taken = list(active)
    for record in records:
        if all(record.to_position < each.from_position or each.to_position < record.from_position for each in taken):
            taken.append(record)
    return taken[len(active) :]


def uncovered_ranges(records: Sequence[Record], begin: int) -> list[tuple[int, int | None]]:
    """Returns the ranges of archive positions that no record covers; the last one has no end.

    `begin` is the last position that a reset removed from the context, 0 for none.
    """
    ranges: list[tuple[int, int | None]] = []
    first = begin + 1
    for record in records:
        if first < record.from_position:
            ranges.append((first, record.from_position - 1))
        first = max(first, record.to_position + 1)
    return [*ranges, (first, None)]


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
_IANA: Final = re.compile(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+|[+-]\d{1,2})?\b", re.ASCII)
_OFFSET: Final = re.compile(
    r"(?:\b(?:utc|gmt)\s?|\A(?=\S+\Z))(?P<sign>[+\-\u2212\u2013±])\s?(?P<amount>\d[\d:.]*)", re.IGNORECASE | re.ASCII
)
_AMOUNT: Final = re.compile(r"(?P<hours>\d{1,2})(?::?(?P<minutes>[0-5]\d)|(?P<part>\.\d\d?))?")
_MOST_HOURS: Final = 14


def find_zone(text: str) -> str:
    """Returns the first zone or place in the text by its IANA name or offset ("UTC+09:00"), "" if there is none."""
    if iana := _IANA.search(text):
        return iana.group()
    text = unicodedata.normalize("NFKC", text)
    found = [(match.start(), zone) for zone, pattern in _PATTERNS if (match := pattern.search(text))]
    if offset := _OFFSET.search(text):
        found = [*(each for each in found if each[1] != "UTC"), (offset.start(), _offset_of(offset))]
    return min(found, default=(0, ""))[1]


def _offset_of(written: re.Match[str]) -> str:
    """Returns an offset as `UTC+09:00`, "" for one that no place has."""
    amount = _AMOUNT.fullmatch(written["amount"].rstrip(".:"))
    if amount is None:
        return ""
    minutes = round(60 * (int(amount["hours"]) + float(amount["part"] or 0))) + int(amount["minutes"] or 0)
    sign = "+" if written["sign"] in "+±" else "-"
    return f"UTC{sign}{minutes // 60:02}:{minutes % 60:02}" if minutes <= _MOST_HOURS * 60 else ""


def without_places(text: str) -> str:
    text = _OFFSET.sub(" ", _IANA.sub(" ", text))
    for _, pattern in _PATTERNS:
        text = pattern.sub(" ", text)
    return text


def name_of(zone: str, *, is_korean: bool) -> str:
    named = next(((korean, english) for known, korean, english, _ in _PLACES if known == zone), None)
    if named is None:
        return zone.rsplit("/", 1)[-1].replace("_", " ")
    return named[0] if is_korean else named[1]
