"""The facts of a text: what is found, which of it another text holds, and a line of what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from graph.fold.fact_compare import HeldFacts, missing_from, present_in, superseded_in
from graph.fold.fact_find import (
    Fact,
    by_weight,
    fact_as_written,
    fact_spans,
    facts_in,
    facts_of,
    is_instruction,
)
from graph.fold.fact_key import key_of
from graph.fold.fact_rule import is_rule

__all__ = [
    "LINE_LABELS",
    "Fact",
    "FactLine",
    "HeldFacts",
    "fact_as_written",
    "fact_spans",
    "facts_in",
    "facts_line",
    "facts_of",
    "is_instruction",
    "is_rule",
    "key_of",
    "line_within",
    "missing_from",
    "present_in",
    "superseded_in",
]

LINE_LABELS: Final[Mapping[Literal["ko", "en"], str]] = {"ko": "사실: ", "en": "Facts: "}


class FactLine(NamedTuple):
    """A line of facts, "" if none fits, and the facts in it, in order."""

    text: str
    facts: tuple[Fact, ...]


def facts_line(missing: Iterable[Fact], language: Literal["ko", "en"], max_chars: int) -> FactLine:
    """Writes facts in one line, `사실: …` or `Facts: …`, in at most `max_chars` characters.

    Skipped are facts that don't fit or are in the line already, and numbers without a meaning of their own.
    """
    return line_within(missing, language, lambda line, _: len(line) <= max_chars)


def line_within(missing: Iterable[Fact], language: Literal["ko", "en"], fits: Callable[[str, Fact], bool]) -> FactLine:
    """Writes the same line while `fits` accepts it; `fits` gets the longer line and the fact added to it."""
    line = ""
    taken: list[Fact] = []
    last: Fact | None = None
    for fact in by_weight(fact for fact in missing if not fact.says_little):
        if fact.text in line if is_instruction(fact) else line and present_in([fact], line):
            taken.append(fact)
            continue
        longer = LINE_LABELS[language] + fact.text if last is None else f"{line}{_between(last, fact)}{fact.text}"
        if fits(longer, fact):
            line, last = longer, fact
            taken.append(fact)
    return FactLine(line, tuple(taken))


def _between(last: Fact, fact: Fact) -> str:
    """Returns the separator of two facts: a space between identifiers, which takes the fewest tokens, else ", "."""
    is_list = last.kind == fact.kind == "identifier" and not any(char.isspace() for char in last.text + fact.text)
    return " " if is_list else ", "
