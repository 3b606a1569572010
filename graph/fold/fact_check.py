"""Compares an adopted summary with the facts of its source and appends a line of missing facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from langchain_core.messages import AnyMessage, SystemMessage

from graph.core.turn import text_of
from graph.fold.fact import Fact, facts_line, facts_of, kept_in, missing_from
from graph.fold.fact_carry import carried_line, without_marks
from graph.fold.review import Source, is_within, pasted_wishes
from graph.fold.shorten import shorten

# A tool result may hold thousands of numbers, which nobody reads in a list.
MOST_FACTS: Final = 100
_LINE_SHARE: Final = 0.3
_BOUND_LINE_SHARE: Final = 0.5
_SHORTENINGS: Final = 2


class CheckedText(NamedTuple):
    """A summary with its line of facts, and the contained and missing facts of its source, heaviest first."""

    text: str
    kept: tuple[str, ...]
    missing: tuple[str, ...]


def check_facts(text: str, source: Source) -> CheckedText:
    """Returns the summary with a line of its missing facts, as far as there is room.

    The line takes at most 30 % of the target, or half of a target that is only an upper bound. Where records are
    replaced, their facts are carried on as well (`carried_line`), and sentences of least weight are dropped to make
    room for their rules, prohibitions and identifiers. The 100 heaviest facts are compared.
    """
    facts = _weightiest(source)
    return _compared((_with_carried if source.carried else _with_line)(text, source, facts), facts)


def compare_facts(text: str, source: Source) -> CheckedText:
    return _compared(text, _weightiest(source))


def _compared(whole: str, facts: Sequence[Fact]) -> CheckedText:
    kept, missing = kept_in(facts, whole), missing_from(facts, whole)
    return CheckedText(whole, tuple(fact.text for fact in kept), tuple(fact.text for fact in missing))


def _weightiest(source: Source) -> Sequence[Fact]:
    told = facts_of(list(_told(source)))
    known = {fact.identity for fact in source.carried} | pasted_wishes(source.messages, source.session_language)
    fresh = [fact for fact in told if fact.identity not in known]
    return sorted([*source.carried, *fresh], key=lambda fact: -fact.weight)[:MOST_FACTS]


def _with_line(text: str, source: Source, facts: Sequence[Fact]) -> str:
    share = _BOUND_LINE_SHARE if source.is_bound else _LINE_SHARE
    room_chars = min(int(source.asked_chars * share), source.asked_chars - len(text) - 1)
    return _joined(text, facts_line(missing_from(facts, text), source.session_language, room_chars).text, source)


def _with_carried(text: str, source: Source, facts: Sequence[Fact]) -> str:
    """Returns the text with the line appended, shortened where firm facts need room."""
    language = source.session_language
    most_tokens = source.tokens if source.max_tokens is None else source.max_tokens
    # A dropped sentence may have contained a fact, which then needs room in the line as well.
    for _ in range(_SHORTENINGS):
        missing = missing_from(facts, text)
        firm = carried_line([fact for fact in missing if fact.is_firm], language, most_tokens).text
        text = shorten(
            text,
            partial(_fits_together, source=source, line=firm),
            max_chars=source.asked_chars,
            must_fit=lambda shorter: is_within(shorter, source),
        )
    line = carried_line(
        missing_from(facts, text), language, most_tokens, fits=lambda line: _fits_together(text, source, line)
    ).text
    return _joined(text, line, source)


def _fits_together(text: str, source: Source, line: str) -> bool:
    return is_within(f"{text}\n{line}" if line else text, source)


def _joined(text: str, line: str, source: Source) -> str:
    whole = f"{text}\n{line}"
    return whole if line and is_within(whole, source) else text


def _told(source: Source) -> Iterator[AnyMessage]:
    """Yields the messages with facts; summaries lose their marks, or are left out if their facts are carried."""
    for message in source.messages:
        is_summary = source.is_summary or isinstance(message, SystemMessage)
        if is_summary and source.carried:
            continue
        yield message.model_copy(update={"content": without_marks(text_of(message))}) if is_summary else message
