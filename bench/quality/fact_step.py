"""Measures how many facts of its source a fold of picked sentences keeps, with and without the facts step behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Final, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage

from bench.quality import argument
from bench.quality.contender import count_chars
from bench.quality.entity import read_marked
from bench.quality.memory import read_sessions
from bench.quality.section import RATES, Section
from graph.core.text import message_tokens
from graph.core.turn import label_of, split_turns, text_of
from graph.fold.extract import TermCounts, count_terms, extract_summary
from graph.fold.fact import facts_of, missing_from
from graph.fold.fact_check import MOST_FACTS, check_facts
from graph.fold.review import Source
from graph.fold.spec import BLOCK_TURNS, target_chars
from prompt.system.framing import Language

Talk = Sequence[AnyMessage]
WITHOUT: Final = "picked sentences alone"
WITH: Final = "with the facts step"
_SENTENCES_A_TURN: Final = 4
_SENTENCES: Final = 1_200
_METHOD: Final = """\
Every three turns are folded by picked sentences, as above. Facts are what our own extractor finds in the source, the
{most} weightiest of a fold: these figures say what a fold keeps of them; what the extractor itself misses is the
section on marked entities. The facts step is `check_facts`; where it writes no line behind a summary, both figures
are the same. Data: {data}."""
_DATA: Final = "{name} ({facts:,} facts in {folds:,} folds)"


class KeptFacts(NamedTuple):
    """Sums over the folds of a data set at one rate: folds, facts, and those kept without and with the facts step."""

    folds: int
    facts: int
    without: int
    with_step: int


def measure(folder: Path) -> Section:
    """Measures all data sets at all rates.

    Args:
        folder: Has `bfcl-memory`, `tau-bench` and `klue-ner`.

    Raises:
        FileNotFoundError: The data isn't there.
    """
    sentences = [marked.text for marked in read_marked(folder)[:_SENTENCES]]
    turns = [sentences[first : first + _SENTENCES_A_TURN] for first in range(0, len(sentences), _SENTENCES_A_TURN)]
    sets: dict[str, tuple[Sequence[Talk], Language]] = {
        "bfcl-memory": ([*read_sessions(folder / "bfcl-memory").values()], "en"),
        "the runs of tau-bench": (argument.read_runs(folder / "tau-bench" / argument.FILE), "en"),
        f"klue-ner, {len(sentences):,} sentences, {_SENTENCES_A_TURN} a turn": (
            [[HumanMessage(" ".join(turn)) for turn in turns]],
            "ko",
        ),
    }
    kept = {name: [keep(talks, rate, language) for rate in RATES] for name, (talks, language) in sets.items()}
    data = "; ".join(
        _DATA.format(name=name, facts=by_rate[0].facts, folds=by_rate[0].folds) for name, by_rate in kept.items()
    )
    whole = [KeptFacts(*map(sum, zip(*column, strict=True))) for column in zip(*kept.values(), strict=True)]
    table = tuple(_table({**kept, "all": whole}))
    curves = {
        WITH: tuple(each.with_step / max(1, each.facts) for each in whole),
        WITHOUT: tuple(each.without / max(1, each.facts) for each in whole),
    }
    return Section("Facts that folds keep", _METHOD.format(most=MOST_FACTS, data=data), table, curves=curves)


def keep(talks: Sequence[Talk], rate: float, language: Language) -> KeptFacts:
    """Folds every three turns of these conversations and counts the facts of their sources that are still there."""
    folds = [fold for talk in talks for fold in _folds(talk, rate, language)]
    counts = list(starmap(_count, folds))
    return KeptFacts(len(folds), *(sum(column) for column in zip(*counts, strict=True)))


def _count(text: str, source: Source) -> tuple[int, int, int]:
    facts = facts_of(source.messages)[:MOST_FACTS]
    missing = check_facts(text, source).missing
    return len(facts), len(facts) - len(missing_from(facts, text)), len(facts) - len(missing)


def _folds(talk: Talk, rate: float, language: Language) -> Iterator[tuple[str, Source]]:
    """Yields the picked text and the source of each complete block, weighed by what had been said by then."""
    turns = split_turns(talk)
    counts = TermCounts(0, {})
    for first in range(0, len(turns) - BLOCK_TURNS + 1, BLOCK_TURNS):
        block = [message for turn in turns[first : first + BLOCK_TURNS] for message in turn]
        counts = count_terms(map(text_of, block), counts)
        chars = count_chars(block)
        target = target_chars(chars, rate)
        label = label_of(range(first + 1, first + BLOCK_TURNS + 1), language)
        tokens = sum(map(message_tokens, block))
        source = Source(block, chars, tokens, target, label, frozenset(), is_quoted=True, session_language=language)
        yield extract_summary(block, target, counts=counts), source


def _table(kept: Mapping[str, Sequence[KeptFacts]]) -> Iterator[str]:
    yield f"| facts kept at {' / '.join(map(str, RATES))} | n | {WITHOUT} | {WITH} |"
    yield "|---|---:|---:|---:|"
    for name, by_rate in kept.items():
        without = " / ".join(f"{each.without / max(1, each.facts):.0%}" for each in by_rate)
        with_step = " / ".join(f"{each.with_step / max(1, each.facts):.0%}" for each in by_rate)
        yield f"| {name} | {by_rate[0].facts:,} | {without} | {with_step} |"
