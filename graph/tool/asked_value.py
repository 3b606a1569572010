"""The value that a query asks for (몇 점, how much, when), and the sentences that say such a value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from graph.core.language import split_sentences
from graph.fold.fact_find import facts_in
from graph.fold.fact_key import NOUN_END
from graph.fold.figure import MONEY, Figure, figures_in
from graph.fold.replaced import superseded

_WHEN: Final = re.compile(
    r"언제|며칠|날짜|몇\s?[월일시]|요일|일정|기한|마감|시각|(?i:\b(?:when|what\s(?:day|date|time)|which\s(?:day|date)|deadline|due)\b)"
)
_MONEY: Final = re.compile(r"얼마|금액|가격|비용|요금|(?i:\b(?:how\smuch|price|cost|fee)s?\b)")
_COUNT: Final = re.compile(
    rf"몇\s?(?P<korean>[가-힣]{{1,3}}?){NOUN_END}|(?i:\b(?:how\smany|number\sof)\s(?P<english>[a-z]+(?:\s[a-z]+){{0,2}}))"
)
_MOMENTS: Final = ("date", "day", "month", "slash", "time")


@dataclass(frozen=True)
class AskedValue:
    """What is asked for; `units` of a count are those that it may have, in the form of `Figure.unit`."""

    kind: Literal["when", "money", "count"]
    units: frozenset[str] = frozenset()

    @property
    def same_words(self) -> int:
        """How many words of the query must be in texts that count the same things; 0 if nothing tells that they do.

        "photos" is what is counted, 점 needs the word for it. Of time a chat has many spans.
        """
        if self.kind != "count" or not self.units or not self.units.isdisjoint(_SPANS):
            return 0
        return 1 if all(map(str.isascii, self.units)) else 2

    def is_met_by(self, figure: Figure) -> bool:
        match self.kind:
            case "when":
                return figure.kind in _MOMENTS
            case "money":
                return figure.unit in MONEY and figure.unit != "%"
            case "count":
                return figure.unit in self.units or (
                    figure.kind == "span" and any(map(figure.text.__contains__, self.units))
                )

    def said_in(self, text: str) -> dict[str, str]:
        """Maps the sentences of a text that say such a value, in their order, to the last one in it."""
        figures = {sentence: filter(self.is_met_by, figures_in(sentence)) for sentence in split_sentences(text)}
        values = {sentence: [figure.text for figure in found] for sentence, found in figures.items()}
        return {sentence: said[-1] for sentence, said in values.items() if said}


def asked_value(query: str) -> AskedValue | None:
    if _WHEN.search(query):
        return AskedValue("when")
    if counted := _COUNT.search(query):
        words = [counted["korean"]] if counted["korean"] else counted["english"].lower().split()
        return AskedValue("count", frozenset(unit for word in words if (unit := _unit_of(word))))
    return AskedValue("money") if _MONEY.search(query) else None


def is_later_value(later: str, earlier: str) -> bool:
    """Returns True if a sentence gives a new value of what an earlier one is about."""
    gone = superseded((earlier, later), in_doubt=True)
    return any(fact.identity in gone for fact in facts_in(earlier))


def _unit_of(word: str) -> str:
    figures: Sequence[Figure] = figures_in(f"1 {word}") if word.isascii() else figures_in(f"1{word}")
    return "" if len(figures) != 1 else figures[0].unit or figures[0].text[1:].strip().removesuffix("s")


_SPANS: Final = frozenset(
    "시간 분 초 일 박 주 개월 년 hour hr h minute min second sec s ms day night week month year".split()  # noqa: SIM905  # as in `figure`
)
