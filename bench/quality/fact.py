"""What the facts' extractor names and what their comparison finds, over small inputs with their right values.

A case has `said` (the user's messages); `facts`, all that must be named, `rules`, the core of each wish or prohibition,
and `also`, what may be named; `summary`, an honest one, and `lacks`, the facts that it really lacks; `superseded`, the
values that the user replaced. Whatever else is named is garbage; a fact that is said to be missing and isn't in `lacks`
is a false alarm.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from langchain_core.messages import HumanMessage

from bench.report import Requirement, Section, table
from graph.fold.fact_compare import missing_from
from graph.fold.fact_find import Fact, facts_of, is_instruction
from graph.fold.replaced import superseded_in

_FOLDER: Final = Path(__file__).parent
LISTS: Final = {"written to mend against": "fact_mended.toml", "held back": "fact_held_back.toml"}
MOST: Final = 0.05
_METHOD: Final = """\
Small inputs, Korean and English, written by hand with their right values: single messages of kinds that a fold must
read (tables, logs, SQL, paths, names, wishes, corrections), and honest summaries that say a value in another form. A
fact is named if a request for a summary may name it; what isn't among the right ones is garbage. The right ones are
compared with the summary: one that stands there and is called missing is a false alarm. The lists are in
`bench/quality`. Nothing was tuned on the one held back: most of it was written before the extractor was changed for the
other, the rest afterwards."""


@dataclass(frozen=True)
class FactCase:
    """A small input with its right values; see the module."""

    said: Sequence[str]
    facts: Sequence[str] = ()
    rules: Sequence[str] = ()
    also: Sequence[str] = ()
    summary: str = ""
    lacks: Sequence[str] = ()
    superseded: Sequence[str] = ()

    @cached_property
    def named(self) -> tuple[Fact, ...]:
        """All facts that a request may name."""
        return tuple(fact for fact in facts_of([HumanMessage(text) for text in self.said]) if not fact.says_little)

    @cached_property
    def garbage(self) -> tuple[str, ...]:
        return tuple(fact.text for fact in self.named if not self._is_right(fact))

    @cached_property
    def unnamed(self) -> tuple[str, ...]:
        plain = {fact.text for fact in self.named if not is_instruction(fact)}
        rules = [fact.text for fact in self.named if is_instruction(fact)]
        return (
            *(fact for fact in self.facts if fact not in plain),
            *(rule for rule in self.rules if not any(rule in text for text in rules)),
        )

    @cached_property
    def compared(self) -> tuple[Fact, ...]:
        """The right ones among the named facts, if there is a summary to compare them with."""
        return tuple(fact for fact in self.named if self._is_right(fact)) if self.summary else ()

    @cached_property
    def false_alarms(self) -> tuple[str, ...]:
        gone = missing_from(self.compared, self.summary)
        return tuple(fact.text for fact in gone if not any(lack in fact.text for lack in self.lacks))

    @cached_property
    def unnoticed(self) -> tuple[str, ...]:
        """What the summary lacks and the comparison says it has."""
        gone = {fact.text for fact in missing_from(self.compared, self.summary)}
        return tuple(lack for lack in self.lacks if not any(lack in text for text in gone))

    @cached_property
    def misjudged(self) -> tuple[str, ...]:
        """Values wrongly said to be superseded, and those that were and weren't found."""
        messages = [HumanMessage(text) for text in self.said]
        replaced = superseded_in(messages)
        found = {fact.text for fact in facts_of(messages) if fact.identity in replaced}
        return tuple(sorted(found ^ set(self.superseded)))

    def _is_right(self, fact: Fact) -> bool:
        if is_instruction(fact):
            return any(rule in fact.text for rule in (*self.rules, *self.also))
        return fact.text in self.facts or fact.text in self.also


@dataclass(frozen=True)
class FactRates:
    """Counts over a list of cases."""

    cases: int
    named: int
    garbage: int
    wanted: int
    unnamed: int
    compared: int
    false_alarms: int
    lacking: int
    unnoticed: int
    misjudged: int

    @property
    def garbage_share(self) -> float:
        return self.garbage / max(1, self.named)

    @property
    def false_alarm_share(self) -> float:
        return self.false_alarms / max(1, self.compared)


def cases(_: Path) -> Section:
    """Measures garbage and false alarms over the small inputs, those written to mend against and those held back."""
    rates = {name: rates_of(read_cases(file)) for name, file in LISTS.items()}
    rows = (
        [
            name,
            str(each.cases),
            f"{each.garbage} of {each.named}",
            f"{each.unnamed} of {each.wanted}",
            f"{each.false_alarms} of {each.compared}",
            f"{each.unnoticed} of {each.lacking}",
            str(each.misjudged),
        ]
        for name, each in rates.items()
    )
    head = [
        "cases",
        "n",
        "garbage of the named",
        "not named",
        "false alarms",
        "loss unnoticed",
        "superseded, misjudged",
    ]
    return Section(
        "Facts that are named and compared",
        _METHOD,
        list(table(head, rows)),
        [requirement for name, each in rates.items() for requirement in _requirements(name, each)],
    )


def _requirements(name: str, rates: FactRates) -> Iterator[Requirement]:
    garbage, alarms = rates.garbage_share, rates.false_alarm_share
    yield garbage <= MOST, f"facts named in small inputs, {name}: {garbage:.0%} garbage (at most 5 %)"
    yield (
        alarms <= MOST,
        f'facts compared in small inputs, {name}: {alarms:.0%} false alarms of "missing" (at most 5 %)',
    )


def read_cases(file: str) -> list[FactCase]:
    return [FactCase(**case) for case in tomllib.loads((_FOLDER / file).read_text(encoding="utf-8"))["case"]]


def rates_of(cases: Iterable[FactCase]) -> FactRates:
    cases = list(cases)
    return FactRates(
        len(cases),
        sum(len(case.named) for case in cases),
        sum(len(case.garbage) for case in cases),
        sum(len(case.facts) + len(case.rules) for case in cases),
        sum(len(case.unnamed) for case in cases),
        sum(len(case.compared) for case in cases),
        sum(len(case.false_alarms) for case in cases),
        sum(len(case.lacks) for case in cases),
        sum(len(case.unnoticed) for case in cases),
        sum(len(case.misjudged) for case in cases),
    )
