"""Reads the facts of records, so that a replacing record carries them on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import Final, Literal, NamedTuple

from graph.core.open_question import question_start, without_question
from graph.core.text import estimate_tokens
from graph.fold.fact_compare import present_in
from graph.fold.fact_find import Fact, fact_as_written, facts_in, is_instruction
from graph.fold.fact_line import LINE_LABELS, FactLine, facts_of_line, line_within
from graph.fold.fact_rule import Clause
from graph.fold.replaced import superseded
from graph.fold.wish import Wish, is_lasting, is_lifted, said_in, wish_of
from graph.value.record import Record

_LINE_SHARE: Final = 1 / 3
# Where the bound can't follow from the wishes: in a window without room.
_WISH_LINE_SHARE: Final = 1 / 2
# So many turns are merged again that their text is an outline: what is right or wrong letter for letter is all that can
# be kept of most.
_OLD_LINE_SHARE: Final = 2 / 3
# Labels of records and marks of turns: their numbers are no facts.
_MARK: Final = re.compile(
    r"\[(?:\d+-\d+턴|Turns \d+-\d+)\](?: \(\d{4}-\d\d-\d\d[0-9 ~-]{0,13}\))?"
    r"|\((?:\d+(?:-\d+)?턴|turns? \d+(?:-\d+)?)\)",
    re.IGNORECASE,
)


class _Rank(NamedTuple):
    """Sort key among facts of equal weight: position in its record's list, then the record's age."""

    rank: int
    age: int


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

    All of the user's lasting rules and prohibitions are among them, unless the ledger has them, but no value that a
    later sentence replaced and nothing of a question that a later record answers. Weight depends on the kind alone.
    Among equal weights, the first facts of each record precede all second ones, the newest record first: so no record
    loses all of its facts to the others.
    """
    if not records:
        return ()
    found: dict[tuple[str, str], tuple[_Rank, Fact]] = {}
    later: list[Clause] = []
    summaries = [*(without_question(record.summary) for record in records[:-1]), records[-1].summary]
    texts = [without_marks(without_line(summary)) for summary in summaries]
    readings = list(map(facts_in, texts))
    gone = superseded((*texts, *since))
    for age, (record, summary, reading) in enumerate(reversed([*zip(records, summaries, readings, strict=True)])):
        said = said_in(without_marks(summary))
        counts: dict[float, int] = {}
        for fact in (*_wishes(record, reading, said, later), *_held(record, reading, summary)):
            if fact.identity in gone:
                continue
            identity = (fact.text, "") if isinstance(fact, Wish) else fact.identity
            rank = _Rank(counts.setdefault(fact.weight, 0), age)
            counts[fact.weight] += 1
            known = found.get(identity)
            if known is None or rank < known[0]:
                found[identity] = rank, fact
        later += said
    return tuple(fact for _, fact in sorted(found.values(), key=lambda each: (-each[1].weight, each[0])))


def carried_line(
    facts: Iterable[Fact],
    language: Literal["ko", "en"],
    max_tokens: int,
    *,
    level: int = 1,
    fits: Callable[[str], bool] = lambda _: True,
) -> FactLine:
    """Writes the line of facts that a record carries on, in up to a third of its tokens; of a merge of merges, in two.

    Rules and prohibitions come first, as a record says them, and may take up to a half.
    """

    def is_allowed(line: str, fact: Fact) -> bool:
        share = _OLD_LINE_SHARE if level > 1 else _WISH_LINE_SHARE if is_instruction(fact) else _LINE_SHARE
        return estimate_tokens(line) <= max_tokens * share and fits(line)

    return line_within(map(_as_said, facts), language, is_allowed)


def room_for_wishes(facts: Iterable[Fact], language: Literal["ko", "en"]) -> int:
    """Returns the smallest size of a record, in tokens, of whose line all rules and prohibitions take a third."""
    wishes = (_as_said(fact) for fact in facts if is_instruction(fact))
    return ceil(estimate_tokens(line_within(wishes, language, lambda *_: True).text) / _LINE_SHARE)


def _as_said(fact: Fact) -> Fact:
    return replace(fact, text=fact.words) if isinstance(fact, Wish) else fact


def _wishes(record: Record, reading: Sequence[Fact], said: Sequence[Clause], later: Sequence[Clause]) -> Iterator[Fact]:
    """Yields the user's lasting rules and prohibitions, also those that the record was found to lack.

    A summary's own sentences may read like a rule that no user gave, so they count only if the record was never
    compared with its source. What a user took out of a summary is out.
    """
    if record.ledger:
        return
    compared = (*record.kept_facts, *(() if record.edited else record.missing_facts))
    stored = [fact for each in compared for fact in (fact_as_written(each, {}),) if is_instruction(fact)]
    if not compared:
        stored = [fact for fact in reading if is_instruction(fact)]
    for fact in stored:
        if is_lasting(fact.text) and not is_lifted(fact.text, later):
            yield wish_of(fact, said)


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
    for fact in present_in((fact for fact in stored if not is_instruction(fact)), summary):
        yield replace(told.get(fact.identity, fact), text=fact.text, is_of_user=True)
    for fact in (*facts, *told.values()):
        if fact.kind != "vague":
            yield replace(fact, is_of_user=not compared)
