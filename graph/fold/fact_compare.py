"""Tells which facts a text holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, cast

from graph.fold.fact_find import Fact, is_instruction
from graph.fold.fact_key import key_of, narrow
from graph.fold.fact_pattern import SETTING
from graph.fold.fact_rule import Clause, clauses_of, holds_instruction
from graph.fold.fact_value import Values, values_of
from graph.fold.word_kind import WordKind

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
