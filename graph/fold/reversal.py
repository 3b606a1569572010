"""Finds the sentences of a summary that allow what the user forbade."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from graph.fold.fact_find import facts_in
from graph.fold.fact_key import key_of, narrow
from graph.fold.fact_rule import instruction_key, instructions_in

_SENTENCE_END: Final = re.compile(r"(?<=[.!?。])\s+|\n|;\s")
# A clause ends where another thing is said: "…면 안 되고, …만 할 수 있어요".
_CLAUSE_END: Final = re.compile(
    r"[,;:]\s(?:(?:so|and|but)\s)?|(?<=[되않지하][고며])\s|(?<=으니|니까|아서|어서)\s"
    r"|\s(?:and|but|so)\s(?=never|don|do not|no\s|only|also)"
)
_PERMITS: Final = re.compile(
    r"괜찮|가능|허용|무방|(?:해도|[가-힣]도)\s?(?:됨|된다|돼|되고|되며|됩|좋)|문제\s?없"
    r"|(?<![A-Za-z])(?i:may|can|could|allowed|permitted|fine|okay|ok|acceptable|free to|no problem)(?![A-Za-z'’])"
)
_PERMITS_BY_NO: Final = re.compile(r"문제\s?없|(?i:no problem)")
_DENIES: Final = re.compile(
    r"않|못|금지|제외|싫|없|불가|피하|피할|피해|아니|아닌|(?<![가-힣])안\s|안\s?(?:돼|되|됩|된|됨)|지\s?[마말]|말\s?것|말고|(?<![가-힣])[빼뺀뺄뺌]"
    r"|사양|알레르기|알러지|그만|삼가|거부|반대|까지만|에만|만\s"
    r"|(?i:\b(?:no|not|never|nobody|nothing|none|without|avoid\w{0,3}|exclud\w{1,3}|forb\w{1,7}|ban|banned|bans|prohibit\w{0,5}"
    r"|except|skip|allerg\w{1,4}|hates?|cannot|refus\w{1,3}|against|instead of|only|until|unless)\b|n['’]t\b)"
)
_NO_CONTENT_LIST: Final = """
건 것 거 수 있 있는 있으니 되 되고 은 는 명 등 때 든 어떤 모든 m s one once only
"""
_NO_CONTENT: Final = frozenset(_NO_CONTENT_LIST.split())
_ENGLISH_END: Final = re.compile(r"(?<=[a-z]{3})(?:ing|ed|es|s)$")
_KOREAN_END: Final = re.compile(r"(?<=[가-힣])\s(?:지|면|고|게|어|아|은|는|도)$")
# 부가세 빼고, 차 말고: leaves something out, and forbids nothing.
_LEAVES_OUT: Final = re.compile(r"빼고|말고|없이")
_ASKS: Final = ("?", "？")
_LEAST_WORDS: Final = 2
_SHORT_CLAUSE: Final = 6


class _Clause(NamedTuple):
    text: str
    key: str
    is_denied: bool
    is_permitted: bool


class _Prohibition(NamedTuple):
    words: Sequence[str]
    later: str
    leaves_out: bool


def reversed_in(text: str, said: Sequence[str]) -> tuple[str, ...]:
    """Returns the sentences of a text that permit or state what a user's prohibition forbids.

    A prohibition counts if no clause of the text holds it, and no later sentence of the user permits it. A sentence
    with a word of permission needs half of its words; one that merely states it needs all of them.
    """
    found: dict[str, None] = {}
    clauses = list(_clauses(text))
    for prohibition in _prohibitions(said):
        if any(each.is_denied and _is_about(prohibition.words, each) for each in clauses):
            continue
        if any(_lifts(prohibition, each) for each in _clauses(prohibition.later)):
            continue
        found.update(dict.fromkeys(each.text for each in clauses if _reverses(prohibition, each)))
    return tuple(found)


def _reverses(prohibition: _Prohibition, clause: _Clause) -> bool:
    if clause.is_denied:
        return False
    words = prohibition.words
    if clause.is_permitted:
        is_short = len(words) < _LEAST_WORDS and len(clause.text.split()) < _SHORT_CLAUSE
        return _is_about(words, clause) or (is_short and _count(words, clause) == len(words))
    return not prohibition.leaves_out and len(words) >= _LEAST_WORDS and _count(words, clause) == len(words)


def _lifts(prohibition: _Prohibition, clause: _Clause) -> bool:
    return clause.is_permitted and not clause.is_denied and _count(prohibition.words, clause) > 0


def _is_about(words: Sequence[str], clause: _Clause) -> bool:
    count = _count(words, clause)
    return count >= min(_LEAST_WORDS, len(words)) and 2 * count >= len(words)


def _count(words: Sequence[str], clause: _Clause) -> int:
    return sum(word in clause.key for word in words)


def _content(clause: str) -> list[str]:
    """Returns the keys of a clause's content words; an English one is found with any ending."""
    words = [word.strip() for word in instruction_key(clause).split("|")]
    kept = [word for word in words if word.replace(" ", "") not in _NO_CONTENT and word]
    return [f" {_ENGLISH_END.sub('', word)}" if word.isascii() else f" {_KOREAN_END.sub('', word)} " for word in kept]


def _prohibitions(said: Sequence[str]) -> Iterator[_Prohibition]:
    """Yields each clause in which the user forbids something, with all that the user says behind it."""
    for index, text in enumerate(said):
        for fact in facts_in(text):
            if fact.kind != "negation":
                continue
            for clause in _CLAUSE_END.split(narrow(fact.text)):
                words = _content(clause)
                if words and any(True for _ in instructions_in(clause)):
                    later = "\n".join([text.partition(fact.text)[2], *said[index + 1 :]])
                    yield _Prohibition(words, later, leaves_out=bool(_LEAVES_OUT.search(clause)))


def _clauses(text: str) -> Iterator[_Clause]:
    for sentence in _SENTENCE_END.split(narrow(text)):
        if not sentence.strip():
            continue
        # A question permits nothing.
        is_asked = sentence.rstrip().endswith(_ASKS)
        is_denied = is_asked or bool(_DENIES.search(sentence))
        for part in _CLAUSE_END.split(sentence):
            permits = bool(_PERMITS.search(part))
            denies = bool(_DENIES.search(_PERMITS_BY_NO.sub(" ", part))) if permits and not is_asked else is_denied
            if part.strip():
                yield _Clause(part.strip(" .-*•"), key_of(part), denies, permits)
