"""Reads the facts of records, so that a replacing record carries them on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal, cast

from graph.core.language import split_sentences
from graph.core.open_question import question_start, without_question
from graph.core.text import estimate_tokens
from graph.fold.fact_compare import HeldFacts
from graph.fold.fact_find import Fact, fact_as_written, facts_in, is_instruction
from graph.fold.fact_line import LINE_LABELS, facts_line, facts_of_line
from graph.fold.fact_rule import asked_clauses, clauses_of, is_about, lifts_rule
from graph.fold.replaced import superseded
from graph.value.record import LedgerLine, Record, WordKind

_LINE_SHARE: Final = 1 / 3
# So many turns are merged again that their text is an outline: what is right or wrong letter for letter is all that can
# be kept of most.
_OLD_LINE_SHARE: Final = 2 / 3
# Labels of records and marks of turns: their numbers are no facts.
_MARK: Final = re.compile(
    r"\[(?:\d+-\d+턴|Turns \d+-\d+)\](?: \(\d{4}-\d\d-\d\d[0-9 ~-]{0,13}\))?"
    r"|\((?:\d+(?:-\d+)?턴|turns? \d+(?:-\d+)?)\)",
    re.IGNORECASE,
)


def without_marks(text: str) -> str:
    return _MARK.sub(" ", text).strip()


def line_in(summary: str) -> str:
    """Returns the line of facts behind the text of a summary, before its question; "" without one."""
    lines = summary.split("\n")
    places = question_start(lines) - 1, len(lines) - 1
    return next((lines[at] for at in places if at > 0 and lines[at].startswith(tuple(LINE_LABELS.values()))), "")


def without_line(summary: str) -> str:
    line = line_in(summary)
    text, _, question = summary.rpartition(f"\n{line}")
    return text + question if line else summary


def carried_facts(records: Sequence[Record], since: Iterable[str] = ()) -> tuple[Fact, ...]:
    """Returns the facts of records (oldest first), heaviest first; each once. `since` has the user's words after them.

    None is a rule of the user's, which the ledger keeps (`kept_lines`), a value that a later sentence replaced, or of a
    question that a later record answers. Weight depends on the kind alone. Among equal weights, the first facts of each
    record precede all second ones, the newest record first: so no record loses all of its facts to the others.
    """
    if not records:
        return ()
    found: dict[tuple[str, str], tuple[tuple[int, int], Fact]] = {}
    summaries = [*(without_question(record.summary) for record in records[:-1]), records[-1].summary]
    texts = [without_marks(without_line(summary)) for summary in summaries]
    readings = list(map(facts_in, texts))
    gone = superseded((*texts, *since))
    for age, (record, summary, reading) in enumerate(reversed([*zip(records, summaries, readings, strict=True)])):
        counts: Counter[float] = Counter()
        for fact in _held(record, reading, summary):
            if fact.identity in gone:
                continue
            rank = counts[fact.weight], age
            counts[fact.weight] += 1
            known = found.get(fact.identity)
            if known is None or rank < known[0]:
                found[fact.identity] = rank, fact
    return tuple(fact for _, fact in sorted(found.values(), key=lambda each: (-each[1].weight, each[0])))


def carried_line(
    facts: Iterable[Fact],
    language: Literal["ko", "en"],
    max_tokens: int,
    *,
    level: int = 1,
    fits: Callable[[str], bool] = lambda _: True,
) -> str:
    """Writes the line of facts that a record carries on: up to a third of its tokens, two of a merge of merges."""
    most_tokens = max_tokens * (_OLD_LINE_SHARE if level > 1 else _LINE_SHARE)
    return facts_line(facts, language, lambda line: estimate_tokens(line) <= most_tokens and fits(line))


def kept_lines(records: Sequence[Record]) -> tuple[LedgerLine, ...]:
    """Returns the lines of the user's word that records (oldest first) keep.

    Records made before there were lines have the user's rules among their facts, also those that they were found to
    lack; they count as said in the first turn. A later summary tells what was taken back.
    """
    found: list[LedgerLine] = []
    old: list[LedgerLine] = []
    for record in records:
        for sentence in filter(lifts_rule, split_sentences(without_marks(record.summary))):
            lifting = clauses_of(sentence)
            taken = (line for line in old if any(is_about(asked, lifting) for asked in asked_clauses(line.text)))
            found += (LedgerLine(record.turns[-1], "lifted", line.id) for line in taken)
        rules = () if record.ledger or record.days else tuple(_rules_of(record))
        old += rules
        found += (*record.ledger, *rules)
    return tuple(found)


def _rules_of(record: Record) -> Iterator[LedgerLine]:
    """Yields the rules among a record's facts, but none that the user took out of the summary.

    A summary's own sentences may read like a rule that no user gave, so they count only if the record was never
    compared with its source.
    """
    compared = (*record.kept_facts, *(() if record.edited else record.missing_facts))
    facts = map(fact_as_written, compared) if compared else facts_in(without_marks(without_line(record.summary)))
    for fact in facts:
        if is_instruction(fact) and not fact.stands_for_nothing:
            yield LedgerLine(record.turns[0], cast("WordKind", fact.kind), fact.text)


def _held(record: Record, reading: Sequence[Fact], summary: str) -> Iterator[Fact]:
    """Yields the other facts of a record's summary: first the stored ones, then others found in the text and the line.

    Stored facts are the user's; without any, all may be.
    """
    facts = [fact for fact in reading if not is_instruction(fact)]
    kinds = {fact.key: fact for fact in facts}
    told = {fact.identity: fact for fact in facts_of_line(line_in(summary)) if not is_instruction(fact)}
    # What only the line has counts as missing.
    compared = (*record.kept_facts, *record.missing_facts)
    stored = (fact_as_written(each, kinds) for each in compared)
    for fact in filter(HeldFacts(summary).has, (fact for fact in stored if not is_instruction(fact))):
        yield replace(told.get(fact.identity, fact), text=fact.text, is_of_user=True)
    for fact in (*facts, *told.values()):
        if fact.kind != "vague":
            yield replace(fact, is_of_user=not compared)
