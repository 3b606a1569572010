"""Finds the sentences of a summary that allow what the user forbade."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from graph.fold.fact_find import facts_in
from graph.fold.fact_key import narrow
from graph.fold.fact_rule import Clause, asked_clauses, clauses_of, shared_words

_SENTENCE_END: Final = re.compile(r"(?<=[.!?。])\s+|\n|;\s")
_CLAUSE_END: Final = re.compile(
    r"[,;:]\s(?:(?:so|and|but)\s)?|(?<=[되않지하][고며])\s|(?<=으니|니까|아서|어서)\s"
    r"|\s(?:and|but|so)\s(?=never|don|do not|no\s|only|also)"
)
# A sentence with one of these states no exception to what is forbidden.
_LIMITS: Final = re.compile(r"까지만|에만|만\s|(?<![A-Za-z])(?i:only|until|unless)(?![A-Za-z])")
# 부가세 빼고, 차 말고: leaves something out, and forbids nothing.
_LEAVES_OUT: Final = re.compile(r"빼고|말고|없이")
_ASKS: Final = ("?", "？")
_LEAST_WORDS: Final = 2


def reversed_in(text: str, said: Sequence[str]) -> tuple[str, ...]:
    """Returns the sentences of a text that permit or state what a user's prohibition forbids.

    A prohibition counts if no clause of the text holds it, and no later sentence of the user permits it. A sentence
    with a word of permission needs half of its words; one that merely states it needs all of them.
    """
    found: dict[str, None] = {}
    prohibitions = list(_prohibitions(said))
    clauses = list(_clauses(text)) if prohibitions else []
    for asked, later in prohibitions:
        reversing = [each.text for each in clauses if _reverses(asked, each)]
        is_held = any(each.is_negated and _is_about(asked, each) for each in clauses)
        if reversing and not is_held and not any(_lifts(each, asked) for each in _clauses(later)):
            found.update(dict.fromkeys(reversing))
    return tuple(found)


def _reverses(asked: Clause, clause: Clause) -> bool:
    if clause.is_negated or clause.permits:
        return not clause.is_negated and _is_about(asked, clause)
    is_stated = len(shared_words(asked, clause)) == len(asked.words) >= _LEAST_WORDS
    return is_stated and not _LEAVES_OUT.search(asked.text)


def _is_about(asked: Clause, clause: Clause) -> bool:
    found, words = len(shared_words(asked, clause)), len(asked.words)
    return found >= min(_LEAST_WORDS, words) and 2 * found >= words


def _lifts(clause: Clause, asked: Clause) -> bool:
    return clause.permits and not clause.is_negated and bool(shared_words(asked, clause))


def _prohibitions(said: Sequence[str]) -> Iterator[tuple[Clause, str]]:
    """Yields each clause in which the user forbids something, with all that the user says behind it."""
    for index, text in enumerate(said):
        for fact in facts_in(text):
            if fact.kind == "negation":
                later = "\n".join([text.partition(fact.text)[2], *said[index + 1 :]])
                yield from ((clause, later) for clause in asked_clauses(fact.text) if clause.is_negated)


def _clauses(text: str) -> Iterator[Clause]:
    """Yields the clauses of a text; questions and limits deny, and a negation denies its sentence but what permits."""
    for sentence in _SENTENCE_END.split(narrow(text)):
        is_asked, parts = sentence.rstrip().endswith(_ASKS), clauses_of(sentence, _CLAUSE_END)
        is_denied = is_asked or bool(_LIMITS.search(sentence)) or any(part.is_negated for part in parts)
        for part in parts:
            is_own = is_asked or part.is_negated or bool(_LIMITS.search(part.text))
            yield part._replace(is_negated=is_own if part.permits else is_denied)
