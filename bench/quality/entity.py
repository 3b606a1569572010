"""Measures the facts that the product finds in Korean sentences against the entities that people marked in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from bench.quality.section import Section
from graph.fold.fact import places_of

FILE: Final = Path("klue-ner") / "klue-ner-v1.1_dev.tsv"
"""Where the sentences stand in the data's folder: KLUE-benchmark/KLUE on GitHub, klue_benchmark/klue-ner-v1.1."""
TIMES_AND_QUANTITIES: Final = ("DT", "TI", "QT")
_TAGS: Final = {
    "DT": "dates",
    "TI": "times",
    "QT": "quantities",
    "PS": "persons",
    "OG": "organisations",
    "LC": "places",
}
_LEAST_FOUND: Final = 0.85
_MOST_FALSE: Final = 1.0
_METHOD: Final = """\
Data: klue-ner, Korean. The extractor's facts are compared with the entities that people marked in {sentences:,}
sentences: the first, third, fifth …; its patterns were made on the others alone. An entity is found if facts hold each
of its digits and at least half of its characters; a date, time or quantity by a fact of that sort, not by a name or
quoted term around it. "comparable" leaves out what is too vague to be compared (오늘, 하나); "whole" wants every
character. A false fact overlaps no marked entity: {false:.2f} a sentence of {facts:.2f}."""
_KINDS_OF_TIME_AND_QUANTITY: Final = frozenset({"date", "money", "number", "count", "vague", "identifier"})


class Marked(NamedTuple):
    """A sentence and the entities marked in it: (tag, place of the first character, place after the last one)."""

    text: str
    entities: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class EntityFigures:
    """What was found in how many sentences.

    Attributes:
        sentences: Sentences read.
        marked: Entities by tag: DT dates, TI times, QT quantities, PS persons, OG organisations, LC places.
        found: Those of them that count as found (`is_found`).
        compared: Those of them that still count without the facts that are too vague to be compared (오늘, 하나).
        whole: Those of them of which every character lies in a fact.
        facts: Facts in all sentences.
        false_facts: Facts that overlap no marked entity at all, whatever their kind.
        false_by_kind: The same by kind of fact.
    """

    sentences: int
    marked: Counter[str]
    found: Counter[str]
    compared: Counter[str]
    whole: Counter[str]
    facts: int
    false_facts: int
    false_by_kind: Counter[str]

    def found_share(self, *tags: str) -> float:
        """Returns the found share of the entities with one of these tags; 0 where there is none."""
        return self._share(self.found, tags)

    def compared_share(self, *tags: str) -> float:
        """Returns the share of the entities with one of these tags that are found and can be compared."""
        return self._share(self.compared, tags)

    def whole_share(self, *tags: str) -> float:
        """Returns the share of the entities with one of these tags that lie in facts whole."""
        return self._share(self.whole, tags)

    @property
    def false_facts_a_sentence(self) -> float:
        """The false facts of a sentence, on average."""
        return self.false_facts / max(1, self.sentences)

    def _share(self, part: Counter[str], tags: Sequence[str]) -> float:
        return sum(part[tag] for tag in tags) / max(1, sum(self.marked[tag] for tag in tags))


def measure(folder: Path) -> EntityFigures:
    """Measures the reporting half of the sentences below a data folder: the first, third, fifth ….

    The patterns were made on the other half alone.

    Raises:
        FileNotFoundError: The sentences aren't there.
    """
    return figures_of(read_marked(folder)[0::2])


def report(folder: Path) -> Section:
    """Returns the section on marked entities; see `measure`.

    Raises:
        FileNotFoundError: The sentences aren't there.
    """
    figures = measure(folder)
    found, false = figures.found_share(*TIMES_AND_QUANTITIES), figures.false_facts_a_sentence
    facts = figures.facts / max(1, figures.sentences)
    return Section(
        "Marked entities that the extractor finds",
        _METHOD.format(sentences=figures.sentences, false=false, facts=facts),
        tuple(_table(figures)),
        (
            (found >= _LEAST_FOUND, f"dates, times and quantities found: {found:.0%} (at least 85 %)"),
            (false <= _MOST_FALSE, f"false facts a sentence: {false:.2f} (at most 1)"),
        ),
    )


def _table(figures: EntityFigures) -> Iterator[str]:
    yield "| marked | n | found | comparable | whole |"
    yield "|---|---:|---:|---:|---:|"
    rows = [("**dates, times, quantities**", TIMES_AND_QUANTITIES), *((name, (tag,)) for tag, name in _TAGS.items())]
    for name, tags in rows:
        shares = (figures.found_share(*tags), figures.compared_share(*tags), figures.whole_share(*tags))
        count = sum(figures.marked[tag] for tag in tags)
        yield f"| {name} | {count:,} | {' | '.join(f'{share:.0%}' for share in shares)} |"


def read_marked(folder: Path) -> list[Marked]:
    """Reads every sentence with its entities from the CoNLL file below a data folder: a character and its tag a line.

    Raises:
        FileNotFoundError: The file isn't there.
    """
    blocks = (folder / FILE).read_text(encoding="utf-8").split("\n\n")
    rows = ([line for line in block.split("\n") if line and not line.startswith("##")] for block in blocks)
    return [_marked(lines) for lines in rows if lines]


def figures_of(sentences: Iterable[Marked]) -> EntityFigures:
    """Extracts the facts of each sentence and compares their places with those of the entities."""
    count = facts = 0
    marked, found, compared, whole, false = (Counter[str]() for _ in range(5))
    for sentence in sentences:
        count += 1
        places = [(start, end, fact.kind) for start, end, fact in places_of(sentence.text)]
        clear = [place for place in places if place[2] != "vague"]
        facts += len(places)
        for tag, start, end in sentence.entities:
            marked[tag] += 1
            found[tag] += is_found(sentence.text, tag, (start, end), places)
            compared[tag] += is_found(sentence.text, tag, (start, end), clear)
            whole[tag] += all(_covered(places, start, end))
        for start, end, kind in places:
            false[kind] += not any(start < other and begin < end for _, begin, other in sentence.entities)
    return EntityFigures(count, marked, found, compared, whole, facts, false.total(), false)


def is_found(text: str, tag: str, place: tuple[int, int], facts: Sequence[tuple[int, int, str]]) -> bool:
    """Whether facts hold every digit of an entity and at least half of its characters.

    Of a date, time or quantity, an identifier or a fact of time, amount or number must hold them; a name or quoted term
    around a year doesn't count.
    """
    start, end = place
    is_amount = tag in TIMES_AND_QUANTITIES
    held = [each for each in facts if not is_amount or each[2] in _KINDS_OF_TIME_AND_QUANTITY]
    covered = _covered(held, start, end)
    digits = (is_covered for is_covered, char in zip(covered, text[start:end], strict=True) if char.isdigit())
    return all(digits) and 2 * sum(covered) >= end - start


def _covered(facts: Sequence[tuple[int, int, str]], start: int, end: int) -> list[bool]:
    return [any(begin <= place < stop for begin, stop, _ in facts) for place in range(start, end)]


def _marked(lines: Sequence[str]) -> Marked:
    rows = [(line[0], line[1:].strip()) for line in lines]
    return Marked("".join(char for char, _ in rows), tuple(_entities([tag for _, tag in rows])))


def _entities(tags: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    start = 0
    for place, tag in enumerate([*tags, "O"]):
        if place and tags[place - 1] != "O" and not tag.startswith("I-"):
            yield tags[place - 1][2:], start, place
        if tag.startswith("B-"):
            start = place
