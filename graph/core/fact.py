"""Finds the facts of a text, tells which of them another text holds, and writes the missing ones in a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import filterfalse
from typing import Final, Literal, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from graph.core.fact_key import inner_places, key_of, narrow
from graph.core.fact_pattern import PATTERNS, QUOTED, Kind
from graph.core.fact_wish import SaidSentence, holds_wish, said_sentences, wish_key, wishes_in
from graph.core.turn import is_repetition, text_of

_WEIGHTS: Final[dict[Kind, float]] = {
    "negation": 10.0,
    "rule": 9.0,
    "identifier": 5.0,
    "email": 5.0,
    "link": 4.5,
    "path": 4.5,
    "code": 4.5,
    "money": 4.0,
    "date": 3.5,
    "number": 3.0,
    "name": 2.5,
    "quoted": 2.0,
    "count": 1.5,
    "vague": 0.5,
}
_FIRM_WEIGHT: Final = 4.5
_LITTLE_DIGITS: Final = 2
_ANSWER_WEIGHT: Final = 0.5
_TOOL_WEIGHT: Final = 0.4
# A fold asks for the facts of each of its messages several times: for its request and for each draft.
_KNOWN_TEXTS: Final = 64
_MOST_FIRST: Final = 4_000
_MOST_LAST: Final = 1_000
_WISHES: Final = ("negation", "rule")
LINE_LABELS: Final[Mapping[Literal["ko", "en"], str]] = {"ko": "사실: ", "en": "Facts: "}


@dataclass(frozen=True)
class Fact:
    """Something that is right or wrong letter for letter: an identifier, a number, a date, a name, a prohibition.

    Attributes:
        kind: What it is.
        text: As it is written, without a Korean particle behind it.
        key: What it is compared by (`key_of`); of a rule or prohibition, the words that it is about.
        weight: How much its loss would hurt; above 0.
    """

    kind: Kind
    text: str
    key: str
    weight: float = 1.0

    @property
    def identity(self) -> tuple[str, str]:
        """What is the same for two that say the same; never for a wish and a fact of another kind."""
        return self.kind if self.kind in _WISHES else "", self.key

    @property
    def says_little(self) -> bool:
        """Whether it is a number of one or two digits without a unit, which means nothing away from its place."""
        return self.text.isdigit() and len(self.text) <= _LITTLE_DIGITS

    @property
    def is_firm(self) -> bool:
        """Whether it is a rule, a prohibition or an identifier of weight, which comes before any running text."""
        return self.weight >= _FIRM_WEIGHT


class HeldFacts:
    """What a text holds, for many facts to be looked for in it; it may grow by lines."""

    def __init__(self, text: str = "") -> None:
        self._keys = ""
        self._lines: list[str] = []
        self._sentences: list[SaidSentence] = []
        for line in dict.fromkeys(text.split("\n")):
            self.add(line)

    def add(self, line: str) -> None:
        """Adds a line."""
        self._keys += f"{key_of(line)}\n"
        self._lines.append(line)

    def has(self, fact: Fact) -> bool:
        """Whether the text holds a fact; see `kept_in`."""
        if not is_wish(fact):
            return fact.key in self._keys
        while self._lines:
            self._sentences += said_sentences(self._lines.pop())
        return holds_wish(fact.key, self._sentences, is_negated=fact.kind == "negation")


class FactLine(NamedTuple):
    """A line of facts, "" if none fits, and the facts that it holds, in its order."""

    text: str
    facts: tuple[Fact, ...]


@lru_cache(maxsize=_KNOWN_TEXTS)
def facts_in(text: str) -> tuple[Fact, ...]:
    """Returns the facts of a text in the order of their places, each once; time is linear in the text.

    No fact goes over the end of a line. Of facts with the same key the first stands for all, but a rule or prohibition
    never for a fact of another kind. Of pasted data with thousands not all are returned; see `places_of`.
    """
    seen: dict[tuple[str, str], Fact] = {}
    for _, _, fact in places_of(text):
        seen.setdefault(fact.identity, fact)
    return tuple(seen.values())


def places_of(text: str) -> Iterator[tuple[int, int, Fact]]:
    """Yields each fact of a text with the place where it begins and the one where it ends, line by line.

    A quoted term, rule or prohibition may lie over other facts; no others overlap. If there are far more than anything
    is compared with, only rules and prohibitions are looked for in the middle of the text, and so are at most 4,000.
    """
    lines = text.split("\n")
    places_in = cache(_places_in)  # pasted data may have a line many times
    found: dict[int, tuple[tuple[int, int, Fact], ...]] = {}
    for places, most in ((range(len(lines)), _MOST_FIRST), (reversed(range(len(lines))), _MOST_LAST)):
        left = most
        for place in places:
            if left <= 0 or place in found:
                break
            found[place] = places_in(lines[place])
            left -= len(found[place])
    offset = wishes = 0
    for place, line in enumerate(lines):
        if place not in found and wishes < _MOST_FIRST:
            found[place] = places_in(line, only_wishes=True)
        for start, end, fact in found.get(place, ()):
            wishes += is_wish(fact)
            yield offset + start, offset + end, fact
        offset += len(line) + 1


def _places_in(line: str, *, only_wishes: bool = False) -> tuple[tuple[int, int, Fact], ...]:
    left = {False: _MOST_FIRST, True: _MOST_FIRST}
    found: list[tuple[int, int, Fact]] = []
    for start, end, kind in sorted(_scan(narrow(line), only_wishes=only_wishes), key=lambda scanned: scanned[:2]):
        written = line[start:end]
        if left[kind in _WISHES] and (key := wish_key(written) if kind in _WISHES else key_of(written)).strip():
            left[kind in _WISHES] -= 1
            found.append((start, end, Fact(kind, written, key, _WEIGHTS[kind])))
    return tuple(found)


def facts_of(messages: Sequence[AnyMessage]) -> tuple[Fact, ...]:
    """Returns the facts of messages by weight, heaviest first, of equals the earlier one; each once, by its key.

    What the user said weighs most, then answers, then tool results. Rules and prohibitions count as the user's alone;
    words too common to be compared are left out, and so is what only repeats: what `recall` found, what a
    project's tools answered, and the answers of the embedded model.
    """
    heaviest: dict[tuple[str, str], Fact] = {}
    for message in filterfalse(is_repetition, messages):
        is_users = isinstance(message, HumanMessage)
        share = 1.0 if is_users else _TOOL_WEIGHT if isinstance(message, ToolMessage) else _ANSWER_WEIGHT
        for fact in facts_in(text_of(message)):
            if fact.kind == "vague" or (fact.kind in _WISHES and not is_users):
                continue
            weight = fact.weight * share
            identity = fact.identity
            known = heaviest.get(identity)
            if known is None or known.weight < weight:
                heaviest[identity] = fact if share == 1 else Fact(fact.kind, fact.text, fact.key, weight)
    return _by_weight(heaviest.values())


def fact_as_written(text: str, known: Mapping[str, Fact]) -> Fact:
    """Returns the fact that was written down as this text, e.g. in a record.

    Args:
        text: The fact alone.
        known: Facts of the text that it was found in by key, for what only its place there shows to be a fact.
    """
    key = key_of(text)
    found = facts_in(text)
    whole = next((fact for fact in found if is_wish(fact) or fact.key == key), known.get(key))
    if whole is None:
        return Fact("quoted", text, key, _WEIGHTS["quoted"])
    return replace(whole, text=text, key=wish_key(text) if is_wish(whole) else key)


def is_wish(fact: Fact) -> bool:
    """Whether it is a rule or a prohibition."""
    return fact.kind in _WISHES


def missing_from(facts: Iterable[Fact], text: str) -> tuple[Fact, ...]:
    """Returns the facts that a text doesn't hold, in their order."""
    return _divide(facts, text)[1]


def kept_in(facts: Iterable[Fact], text: str) -> tuple[Fact, ...]:
    """Returns the facts that a text holds, in their order.

    Spacing, case, separators and particles don't count; another number never holds: "17" is not in "170" or "1.7". A
    rule or prohibition is held by a sentence with at least half of its words; a prohibition's must be negated as well.
    """
    return _divide(facts, text)[0]


def facts_line(missing: Iterable[Fact], language: Literal["ko", "en"], max_chars: int) -> FactLine:
    """Writes facts in one line, `사실: …` or `Facts: …`, the heaviest first, in at most `max_chars` characters.

    A fact that doesn't fit gives way to the next; one that the line holds already isn't written again, nor a number
    that says little away from its place.
    """
    return line_within(missing, language, lambda line, _: len(line) <= max_chars)


def line_within(missing: Iterable[Fact], language: Literal["ko", "en"], fits: Callable[[str, Fact], bool]) -> FactLine:
    """Writes the same line as long as it fits; `fits` is given the longer line and the fact that makes it so."""
    line = ""
    taken: list[Fact] = []
    last: Fact | None = None
    for fact in _by_weight(fact for fact in missing if not fact.says_little):
        if fact.text in line if is_wish(fact) else line and kept_in([fact], line):
            taken.append(fact)
            continue
        longer = LINE_LABELS[language] + fact.text if last is None else f"{line}{_between(last, fact)}{fact.text}"
        if fits(longer, fact):
            line, last = longer, fact
            taken.append(fact)
    return FactLine(line, tuple(taken))


def _between(last: Fact, fact: Fact) -> str:
    """Returns what divides two facts of a line: identifiers stand side by side, which takes the fewest tokens."""
    is_list = last.kind == fact.kind == "identifier" and not any(char.isspace() for char in last.text + fact.text)
    return " " if is_list else ", "


def _by_weight(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(sorted(facts, key=lambda fact: -fact.weight))


def _divide(facts: Iterable[Fact], text: str) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    held = HeldFacts(text)
    kept: list[Fact] = []
    missing: list[Fact] = []
    for fact in facts:
        (kept if held.has(fact) else missing).append(fact)
    return tuple(kept), tuple(missing)


def _scan(line: str, *, only_wishes: bool) -> Iterator[tuple[int, int, Kind]]:
    found = [
        (*_span(match), kind)
        for kind, patterns, needed in ([] if only_wishes else PATTERNS)
        if needed.search(line)
        for pattern in patterns
        for match in pattern.finditer(line)
    ]
    quoted = [_span(match) for pattern in ([] if only_wishes else QUOTED) for match in pattern.finditer(line)]
    wishes = list(wishes_in(line))
    if not (found or quoted or wishes):
        return
    inner = inner_places(line)
    taken = bytearray(len(line))
    for start, end, kind in found:
        # A fact that ends inside a number or a word would be another one.
        if not inner[start] and not inner[end] and taken.find(1, start, end) < 0:
            taken[start:end] = b"\x01" * (end - start)
            yield start, end, kind
    for start, last in quoted:
        end = start + len(line[start:last].rstrip(".,!?"))
        if not inner[start] and not inner[end]:
            yield start, end, "quoted"
    for start, end, wish in wishes:
        # A stretch of a long sentence begins and ends between words.
        first = inner.find(0, start)
        last = inner.rfind(0, first, end + 1)
        if first < last:
            yield first, last, wish


def _span(match: re.Match[str]) -> tuple[int, int]:
    start, end = match.span("fact" if "fact" in match.re.groupindex else 0)
    part = match.string[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())
