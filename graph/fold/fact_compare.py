"""Tells which facts a text holds, and which values a conversation replaced."""

from __future__ import annotations

from collections.abc import Iterable

from graph.fold.fact_find import Fact, is_instruction
from graph.fold.fact_key import key_of
from graph.fold.fact_rule import Clause, clauses_of, holds_instruction


class HeldFacts:
    """Index of a text for looking up many facts; lines may be added."""

    def __init__(self, text: str = "") -> None:
        self._keys = ""
        self._lines: list[str] = []
        self._clauses: list[Clause] = []
        for line in dict.fromkeys(text.split("\n")):
            self.add(line)

    def add(self, line: str) -> None:
        self._keys += f"{key_of(line)}\n"
        self._lines.append(line)

    def has(self, fact: Fact) -> bool:
        if not is_instruction(fact):
            return fact.key in self._keys
        for line in self._lines:
            self._clauses += clauses_of(line)
        self._lines.clear()
        return holds_instruction(fact.text, self._clauses, is_negated=fact.kind == "negation")


def missing_from(facts: Iterable[Fact], text: str) -> tuple[Fact, ...]:
    return _divide(facts, text)[1]


def present_in(facts: Iterable[Fact], text: str) -> tuple[Fact, ...]:
    """Returns the facts that a text contains, in order.

    Spacing, case, separators and particles are ignored. A rule or prohibition matches a sentence with at least half of
    its words; for a prohibition the sentence must be negated as well.
    """
    return _divide(facts, text)[0]


def _divide(facts: Iterable[Fact], text: str) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    held = HeldFacts(text)
    present: list[Fact] = []
    missing: list[Fact] = []
    for fact in facts:
        (present if held.has(fact) else missing).append(fact)
    return tuple(present), tuple(missing)
