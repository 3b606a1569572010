"""Compares a summary with the facts of its source, appends a line of missing ones, and counts them by class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final

from langchain_core.messages import AnyMessage, SystemMessage

from graph.core.ledger import standing
from graph.core.open_question import before_question
from graph.core.turn import text_of
from graph.fold.fact_compare import missing_from
from graph.fold.fact_find import Fact, fact_as_written, facts_of, is_instruction
from graph.fold.fact_line import carried_line, facts_for_line, facts_line, line_in, without_line, without_marks
from graph.fold.replaced import is_out, superseded_in
from graph.fold.review import NOTE_SHARE, Review, is_within, own_texts, users_facts
from graph.fold.shorten import shorten
from graph.fold.spec import FoldSpec, target_chars
from graph.value.record import LedgerLine, Record
from graph.value.view import FACT_CLASSES, FactClass, FactCount

# A tool result may hold thousands of numbers, which nobody reads in a list.
MOST_FACTS: Final = 100
_LINE_SHARE: Final = 0.3
_BOUND_LINE_SHARE: Final = 0.5
_SHORTENINGS: Final = 2
_KNOWN_LINES: Final = 256


def check_facts(review: Review, spec: FoldSpec, *, apart: Sequence[LedgerLine] = ()) -> Review:
    """Appends a line of missing facts to an adopted text, as far as there is room, and notes the 100 heaviest.

    The line has firm facts of the user alone (`facts_for_line`) and doesn't count: the text before it is compared. It
    takes at most 30 % of the target, or half of a target that is only an upper bound. Where records are
    replaced, sentences of least weight are dropped to make room for their rules, prohibitions and identifiers
    (`carried_line`). A verbatim text contains all its facts. What the ledger keeps counts as present; the line begins
    with what it has no room for (`apart`).
    """
    if review.is_verbatim or not review.text:
        return review
    facts = _weightiest(spec)
    unsaid = [*_words(apart), *(fact for fact in facts if not _is_kept(fact, spec)), *_named_before(spec)]
    text, line = (_with_carried if spec.sources else _with_line)(review.text, spec, unsaid)
    retained, missing = _compared(text, facts, spec)
    return replace(review, text=_joined(text, line, spec), retained=retained, missing=missing)


def compare_facts(text: str, spec: FoldSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the facts of a source that a text contains, and those that it lacks, heaviest first.

    A line of facts behind it doesn't count.
    """
    return _compared(without_line(text), _weightiest(spec), spec)


@lru_cache(maxsize=_KNOWN_LINES)
def lacking_facts(summary: str, missing: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the missing facts that the line of a summary hasn't either."""
    line = line_in(summary)
    if not line:
        return missing
    return tuple(fact.text for fact in missing_from(map(fact_as_written, missing), line))


def _compared(text: str, facts: Sequence[Fact], spec: FoldSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    missing = [fact for fact in missing_from(facts, text) if not _is_kept(fact, spec)]
    retained = (fact for fact in facts if fact not in missing)
    return tuple(fact.text for fact in retained), tuple(fact.text for fact in missing)


def _is_kept(fact: Fact, spec: FoldSpec) -> bool:
    """Whether the ledger keeps a fact: every sentence of the user that is an instruction."""
    return spec.ledger is not None and is_instruction(fact)


def _named_before(spec: FoldSpec) -> Sequence[Fact]:
    """Returns the identifiers, addresses and paths of replaced summaries that an answer or a tool gave."""
    return [fact for fact in spec.carried if fact.is_firm and not fact.is_of_user][:MOST_FACTS]


def _words(lines: Sequence[LedgerLine]) -> Sequence[Fact]:
    return [replace(fact_as_written(line.text), is_of_user=True) for line in lines]


def _weightiest(spec: FoldSpec) -> Sequence[Fact]:
    """Returns the facts that the user said and would miss.

    None is an answer's, a cell of a table, a count, or a value that the user replaced.
    """
    sources = list(_fact_sources(spec))
    replaced = superseded_in(sources)
    known = {fact.identity for fact in spec.carried}
    found = facts_of(sources) if spec.is_merge else users_facts(sources, spec.language)
    fresh = [fact for fact in found if fact.identity not in known]
    kept = _words(standing(spec.kept, {})) if spec.ledger is None else ()
    told = (fact for fact in (*kept, *spec.carried, *fresh) if not (is_out(fact, replaced) or fact.stands_for_nothing))
    counted = (fact for fact in told if fact.is_of_user and fact.is_countable)
    return sorted(counted, key=lambda fact: -fact.weight)[:MOST_FACTS]


def _with_line(text: str, spec: FoldSpec, facts: Sequence[Fact]) -> tuple[str, str]:
    share = _BOUND_LINE_SHARE if spec.is_bound else _LINE_SHARE
    room_chars = min(int(spec.asked_chars * share), spec.picked_chars - len(text) - 1)
    return text, facts_line(_for_line(text, spec, facts), spec.language, lambda line: len(line) <= room_chars)


def _with_carried(text: str, spec: FoldSpec, facts: Sequence[Fact]) -> tuple[str, str]:
    language = spec.language
    most_tokens = spec.source_tokens if spec.max_tokens is None else spec.max_tokens
    # A dropped sentence may have contained a fact, which then needs room in the line as well.
    for _ in range(_SHORTENINGS):
        missing = _for_line(text, spec, facts)
        firm = carried_line([fact for fact in missing if fact.is_firm], language, most_tokens, level=spec.level)
        text = shorten(
            text,
            partial(_fits_together, spec=spec, line=firm),
            max_chars=spec.asked_chars,
            must_fit=lambda shorter: is_within(shorter, spec),
        )
    line = carried_line(
        _for_line(text, spec, facts),
        language,
        most_tokens,
        level=spec.level,
        fits=lambda line: _fits_together(text, spec, line),
    )
    return text, line


def _for_line(text: str, spec: FoldSpec, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    summaries = spec.messages if spec.is_merge else [m for m in spec.messages if isinstance(m, SystemMessage)]
    carried = [without_marks(text_of(message)) for message in summaries] if spec.carried else []
    said = [] if spec.is_merge else own_texts(spec.messages, spec.language)
    return facts_for_line(
        missing_from(facts, text), [*carried, *said], carried=spec.carried, later=[*map(without_marks, spec.after)]
    )


def _fits_together(text: str, spec: FoldSpec, line: str) -> bool:
    return is_within(f"{text}\n{line}" if line else text, spec)


def _joined(text: str, line: str, spec: FoldSpec) -> str:
    whole = before_question(text, line)
    return whole if line and is_within(whole, spec) else text


def _fact_sources(spec: FoldSpec) -> Iterator[AnyMessage]:
    """Yields the messages with facts; summaries lose their marks, or are left out if their facts are carried."""
    for message in spec.messages:
        is_summary = spec.is_merge or isinstance(message, SystemMessage)
        if is_summary and (spec.carried or spec.after):
            continue
        yield message.model_copy(update={"content": without_marks(text_of(message))}) if is_summary else message


_CLASSES: Final[Mapping[str, FactClass]] = {
    "negation": "rule",
    "rule": "rule",
    "choice": "decision",
    "preference": "preference",
    "name": "name",
    "date": "date",
    "path": "path",
    "link": "path",
    "email": "path",
    "code": "path",
}
_KNOWN_FACTS: Final = 2_048


@lru_cache(maxsize=_KNOWN_FACTS)
def class_of(fact: str) -> FactClass:
    """Returns the class of a stored fact; everything that is counted or numbered is a number."""
    return _CLASSES.get(fact_as_written(fact).kind, "number")


def count_facts(records: Iterable[Record]) -> tuple[FactCount, ...]:
    """Counts by class what records say, or the ledger keeps, of the facts of their sources; empty classes left out."""
    kept: Counter[FactClass] = Counter()
    missing: Counter[FactClass] = Counter()
    for record in records:
        lacking = lacking_facts(record.summary, record.missing_facts)
        kept.update(map(class_of, record.kept_facts))
        kept.update(class_of(fact) for fact in record.missing_facts if fact not in lacking)
        missing.update(map(class_of, lacking))
    counts = (FactCount(name, kept[name], kept[name] + missing[name]) for name in FACT_CLASSES)
    return tuple(count for count in counts if count.total)


def left_out_at(record: Record, rate: float) -> tuple[str, ...]:
    """Estimates which facts of a record's source a summary of this rate has no room for, weightiest first.

    Each takes its own length and as much again for the words around it as a complete note takes; what the ledger keeps
    takes none.
    """
    left_chars = target_chars(record.original_chars, rate)
    found: list[str] = []
    for fact in (*record.kept_facts, *record.missing_facts):
        if record.ledger and is_instruction(fact_as_written(fact)):
            continue
        needed = int(len(fact) * NOTE_SHARE)
        if needed <= left_chars:
            left_chars -= needed
        else:
            found.append(fact)
    return tuple(found)
