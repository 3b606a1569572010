"""Finds the facts of texts and of messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import filterfalse
from types import MappingProxyType
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from graph.core.remembered import remembered
from graph.core.turn import is_repetition, text_of
from graph.fold.fact_key import inner_offsets, key_of, narrow
from graph.fold.fact_noise import common_chars, is_table_row, machine_lines
from graph.fold.fact_pattern import PATTERNS, QUOTED, SETTING, Kind
from graph.fold.fact_rule import instruction_key, instructions_in, is_pointing

_WEIGHTS: Final[dict[Kind, float]] = {
    "negation": 10.0,
    "rule": 9.0,
    "preference": 8.0,
    "choice": 8.0,
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
_MOST_FIRST: Final = 3_000
_MOST_LAST: Final = 1_000
_INSTRUCTIONS: Final = ("negation", "rule", "preference", "choice")
_UNCOUNTED: Final = ("count", "vague")
_WITH_UNIT: Final = ("money", "number", "date")


@dataclass(frozen=True)
class Fact:
    """Text that is right or wrong letter for letter: an identifier, a number, a date, a name, a prohibition.

    Attributes:
        text: As written, without a Korean particle behind it.
        key: `key_of`; for a rule or prohibition, its content words (`instruction_key`).
        weight: Cost of losing the fact; above 0.
        is_of_user: True if the user said it; set by `facts_of`.
        is_cell: True in a line that is a row of a table or the output of a machine.
        clause: Its words in the line of facts of a record; "" if none has it.
    """

    kind: Kind
    text: str
    key: str
    weight: float = 1.0
    is_of_user: bool = field(default=False, compare=False)
    is_cell: bool = field(default=False, compare=False)
    clause: str = field(default="", compare=False)

    @property
    def identity(self) -> tuple[str, str]:
        """Equal for facts with the same meaning; a rule or prohibition never equals a fact of another kind."""
        return self.kind if self.kind in _INSTRUCTIONS else "", self.key

    @property
    def says_little(self) -> bool:
        """True for a number of one or two digits without a unit, meaningless out of context."""
        return self.text.isdigit() and len(self.text) <= _LITTLE_DIGITS

    @property
    def is_countable(self) -> bool:
        """False for what is no loss alone: a count in words, a vague word, a bare small number, a table's cell."""
        return self.kind not in _UNCOUNTED and not self.says_little and not self.is_cell

    @property
    def is_firm(self) -> bool:
        """True for rules, prohibitions and identifiers of weight, which take precedence over running text."""
        return self.weight >= _FIRM_WEIGHT

    @property
    def stands_for_nothing(self) -> bool:
        """True for a rule, prohibition or preference that only points; a choice says at least which option."""
        return is_instruction(self) and self.kind != "choice" and is_pointing(self.text)


def facts_in(text: str, *, with_instructions: bool = True) -> tuple[Fact, ...]:
    """Returns the facts of a text in order, each once by key; see `fact_spans`.

    Without instructions, which are half of the time, no rules, prohibitions, preferences and choices are searched.
    """
    return _facts_in(text, with_instructions=with_instructions)


@remembered
def _facts_in(text: str, *, with_instructions: bool) -> tuple[Fact, ...]:
    seen: dict[tuple[str, str], Fact] = {}
    for _, _, fact in _spans_of(text, with_instructions=with_instructions):
        known = seen.setdefault(fact.identity, fact)
        if known.is_cell and not fact.is_cell:
            seen[fact.identity] = fact
    return tuple(seen.values())


def fact_spans(text: str) -> Sequence[tuple[int, int, Fact]]:
    """Returns start, end and fact for each fact of a text; a quoted term, rule or prohibition may overlap others.

    No fact crosses the end of a line; time is linear in the text. Beyond about 3,000 facts at the beginning and 1,000
    at the end, only rules and prohibitions are searched, up to 3,000.
    """
    return _spans_of(text, with_instructions=True)


@remembered
def _spans_of(text: str, *, with_instructions: bool) -> Sequence[tuple[int, int, Fact]]:
    lines = text.split("\n")
    cells = machine_lines(lines)
    facts_of_line = cache(_facts_of_line)  # pasted data may have a line many times
    found: dict[int, tuple[tuple[int, int, Fact], ...]] = {}
    for indexes, most in ((range(len(lines)), _MOST_FIRST), (reversed(range(len(lines))), _MOST_LAST)):
        left = most
        for index in indexes:
            if left <= 0 or index in found:
                break
            found[index] = facts_of_line(lines[index], is_cell=bool(cells[index]), with_instructions=with_instructions)
            left -= len(found[index])
    spans: list[tuple[int, int, Fact]] = []
    offset = instructions = 0
    for index, line in enumerate(lines):
        if with_instructions and index not in found and instructions < _MOST_FIRST:
            found[index] = facts_of_line(line, is_cell=bool(cells[index]), only_instructions=True)
        for start, end, fact in found.get(index, ()):
            instructions += is_instruction(fact)
            spans.append((offset + start, offset + end, fact))
        offset += len(line) + 1
    return tuple(spans)


def _facts_of_line(
    line: str, *, is_cell: bool, with_instructions: bool = True, only_instructions: bool = False
) -> tuple[tuple[int, int, Fact], ...]:
    left = {False: _MOST_FIRST, True: _MOST_FIRST}
    found: list[tuple[int, int, Fact]] = []
    # What a program printed forbids nothing; people write tables with pipes.
    instructs = with_instructions and (not is_cell or is_table_row(line))
    scanned = _scan(narrow(line), only_instructions=only_instructions, instructs=instructs)
    for start, end, kind in sorted(scanned, key=lambda each: each[:2]):
        written, is_order = line[start:end], kind in _INSTRUCTIONS
        key = instruction_key(written) if is_order else key_of(written)
        if left[is_order] and key.strip():
            left[is_order] -= 1
            found.append((start, end, Fact(kind, written, key, _WEIGHTS[kind], is_cell=is_cell and not is_order)))
    return tuple(found)


def facts_of(messages: Sequence[AnyMessage]) -> tuple[Fact, ...]:
    """Returns the facts of messages, heaviest first and then in order; each once, by key.

    The user's facts weigh most, then answers, then tool results. Rules and prohibitions count only in the user's
    messages. Left out are repetitions (`is_repetition`), words too common to be compared, cells of tables, and a number
    that is said with its unit or its setting as well.
    """
    heaviest: dict[tuple[str, str], Fact] = {}
    for message in filterfalse(is_repetition, messages):
        is_users = isinstance(message, HumanMessage)
        share = 1.0 if is_users else _TOOL_WEIGHT if isinstance(message, ToolMessage) else _ANSWER_WEIGHT
        for fact in facts_in(text_of(message), with_instructions=is_users):
            if fact.kind == "vague" or fact.is_cell:
                continue
            weight = fact.weight * share
            identity = fact.identity
            known = heaviest.get(identity)
            if known is None or known.weight < weight:
                heaviest[identity] = replace(fact, weight=weight, is_of_user=is_users)
    numbers = set(map(str.strip, _numbers_in(heaviest.values())))
    return by_weight(fact for fact in heaviest.values() if fact.key.strip() not in numbers)


def _numbers_in(facts: Iterable[Fact]) -> Iterator[str]:
    """Yields the keys of numbers that a fact says with their unit, or as the value of a setting."""
    for fact in facts:
        setting = SETTING.fullmatch(fact.text) if fact.kind == "code" else None
        if setting:
            yield key_of(setting["value"])
        elif fact.kind in _WITH_UNIT and " " in fact.key.strip():
            yield fact.key.split()[0]


def fact_as_written(text: str, known: Mapping[str, Fact] = MappingProxyType({})) -> Fact:
    """Returns the fact stored as this text; `known` has facts that only their context identifies, by key."""
    key = key_of(text)
    found = facts_in(text)
    whole = next((fact for fact in found if is_instruction(fact) or fact.key == key), known.get(key))
    if whole is None:
        return Fact("quoted", text, key, _WEIGHTS["quoted"])
    return replace(whole, text=text, key=instruction_key(text) if is_instruction(whole) else key)


def is_instruction(fact: Fact) -> bool:
    return fact.kind in _INSTRUCTIONS


def by_weight(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(sorted(facts, key=lambda fact: -fact.weight))


def _scan(line: str, *, only_instructions: bool, instructs: bool) -> Iterator[tuple[int, int, Kind]]:
    plain, marked = ([], []) if only_instructions else (_matched(line), _marked(line))
    instructions = list(instructions_in(line)) if instructs else []
    if not (plain or marked or instructions):
        return
    inner = inner_offsets(line)
    taken = bytearray(len(line))
    for start, end, kind in plain:
        # A fact that ends inside a number or a word would be a different fact.
        if not inner[start] and not inner[end] and taken.find(1, start, end) < 0:
            taken[start:end] = b"\x01" * (end - start)
            first = start + common_chars(line[start:end]) if kind == "name" else start
            if first < end:
                yield first, end, kind
    for start, end, kind in marked:
        if not inner[start] and not inner[end]:
            yield start, end, kind
    for start, end, instruction in instructions:
        # A stretch of a long sentence begins and ends between words.
        first = inner.find(0, start)
        last = inner.rfind(0, first, end + 1)
        if first < last:
            yield first, last, instruction


def _matched(line: str) -> list[tuple[int, int, Kind]]:
    return [
        (*_span(match), kind)
        for kind, patterns, needed in PATTERNS
        if needed.search(line)
        for pattern in patterns
        for match in pattern.finditer(line)
    ]


def _marked(line: str) -> list[tuple[int, int, Kind]]:
    """Returns what may overlap other facts: settings with their values, and quoted terms."""
    settings: list[tuple[int, int, Kind]] = [(*match.span(), "code") for match in SETTING.finditer(line)]
    quoted = [_span(match) for pattern in QUOTED for match in pattern.finditer(line)]
    return settings + [(start, start + len(line[start:last].rstrip(".,!?")), "quoted") for start, last in quoted]


def _span(match: re.Match[str]) -> tuple[int, int]:
    start, end = match.span("fact" if "fact" in match.re.groupindex else 0)
    part = match.string[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())
