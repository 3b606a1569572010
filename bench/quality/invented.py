"""Which wrong values of a summary are caught, and how often an honest one is doubted, over small blocks.

A case has `said` (who, text), `honest` (summaries of it) and `wrong`: of which kind, the number of the honest summary,
its right words and the wrong ones in their place.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from langchain_core.messages import AIMessage, HumanMessage

from bench.report import Requirement, Section, percent, table
from graph.fold.figure import figures_in
from graph.fold.review import invented_facts
from graph.fold.spec import FoldSpec, fold_of_messages
from prompt.system.framing import Language

_FOLDER: Final = Path(__file__).parent
LISTS: Final = {"written to mend against": "invented_mended.toml", "held back": "invented_held_back.toml"}
LEAST_CAUGHT: Final = 0.9
MOST_DOUBTED: Final = 0.02
_TARGET_CHARS: Final = 600


@dataclass(frozen=True)
class DraftCase:
    """A block with its summaries; see the module."""

    language: Language
    said: Sequence[tuple[str, str]]
    honest: Sequence[str]
    wrong: Sequence[tuple[str, int, str, str]]

    @cached_property
    def spec(self) -> FoldSpec:
        messages = [HumanMessage(text) if who == "user" else AIMessage(text) for who, text in self.said]
        return fold_of_messages(messages, _TARGET_CHARS, language=self.language)

    @cached_property
    def facts(self) -> int:
        """The figures of the honest summaries."""
        return sum(not figure.is_in_words for text in self.honest for figure in figures_in(text))

    @cached_property
    def doubted(self) -> tuple[str, ...]:
        return tuple(value for text in self.honest for value in invented_facts(text, self.spec))

    @cached_property
    def missed(self) -> tuple[tuple[str, str], ...]:
        """The kind and the words of each wrong value that isn't caught."""
        return tuple((kind, wrong) for kind, index, right, wrong in self.wrong if not self._catches(index, right, wrong))

    def _catches(self, index: int, right: str, wrong: str) -> bool:
        honest = self.honest[index]
        found = invented_facts(honest.replace(right, wrong, 1), self.spec)
        return bool(set(found) - set(invented_facts(honest, self.spec)))


@dataclass(frozen=True)
class DraftRates:
    """Counts over a list of cases."""

    cases: int
    facts: int
    doubted: int
    wrong: int
    missed: int

    @property
    def caught_share(self) -> float:
        return 1 - self.missed / max(1, self.wrong)

    @property
    def doubted_share(self) -> float:
        return self.doubted / max(1, self.facts)


def read_cases(name: str) -> list[DraftCase]:
    return [DraftCase(**case) for case in tomllib.loads((_FOLDER / name).read_text(encoding="utf-8"))["case"]]


def rates_of(cases: Iterable[DraftCase]) -> DraftRates:
    cases = list(cases)
    return DraftRates(
        len(cases),
        sum(case.facts for case in cases),
        sum(len(case.doubted) for case in cases),
        sum(len(case.wrong) for case in cases),
        sum(len(case.missed) for case in cases),
    )


def inventions(_: Path) -> Section:
    """Returns the section on what a summary invents."""
    rates = {name: rates_of(read_cases(file)) for name, file in LISTS.items()}
    rows = (
        [name, str(each.cases), f"{each.wrong - each.missed} of {each.wrong}", f"{each.doubted} of {each.facts}"]
        for name, each in rates.items()
    )
    return Section(
        "What a summary invents",
        "Honest summaries of small blocks, and the same with one wrong value: money, dates, times, counts, phone"
        " numbers, identifiers, paths, and a prohibition that became its opposite.",
        list(table(["cases", "blocks", "wrong values caught", "honest figures doubted"], rows)),
        [requirement for name, each in rates.items() for requirement in _requirements(name, each)],
    )


def _requirements(name: str, rates: DraftRates) -> Iterable[Requirement]:
    caught, doubted = rates.caught_share, rates.doubted_share
    yield caught >= LEAST_CAUGHT, f"{name}: {percent(caught)} of the wrong values are caught, {LEAST_CAUGHT:.0%} at least"
    yield doubted <= MOST_DOUBTED, f"{name}: {doubted:.1%} of the honest figures are doubted, {MOST_DOUBTED:.0%} at most"
