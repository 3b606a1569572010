"""Shortens a summary by dropping the sentences, wherever they are, that weigh least for their length."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from graph.core.language import content_terms, split_sentences
from graph.fold.extract import cut_at_word, weigh_kinds
from graph.fold.fact_find import Fact, is_instruction
from graph.fold.fact_key import key_of
from graph.fold.word_kind import is_rule

_TURN_MARK: Final = re.compile(r"^\((?:\d+(?:-\d+)?턴|turns? \d+(?:-\d+)?)\)\s*", re.IGNORECASE)
_LIST_MARK: Final = re.compile(r"^\s*(?:(?:[-*•·▪]|#{1,6}|>|\d{1,3}[.)])\s+)*")
_FENCE: Final = re.compile(r"^\s*(?:`{3,}|~{3,})")
_CLAUSE_END: Final = re.compile(r"(?<=[,;、，；])\s+")
_HEADLINE: Final = re.compile(r"^\s*(?:#{1,6}\s|(?:\d{1,3}[.)]\s+)?\*\*[^*]+\*\*:?\s*$)")

_DECISION: Final = re.compile(
    r"결정|확정|하기로|정했|정함|정하였|정해[지졌짐]|선택(?!지|을 기다)|채택"
    # What was decided before and is so no more.
    r"|취소|변경|정정|철회|번복|보류|연기|미룸|미뤘|미루기로|앞당|당김|당겨|당겼|늦춤|늦췄|바뀜|바뀌었|바뀐|바꿈|바꿨|말고|아니라"
    r"|\((?:이전|처음|원래|기존|당초)"
    r"|\b(?:decid|decision|agreed|settled|confirmed|chose|chosen|picked|changed|correct(?:ed|ion)|revers(?:ed|al)"
    r"|revis(?:ed|ion)|revok|rescind|cancel|postpon|withdr[ae]w|supersed|overrul|switched|no longer|any ?more|after all"
    r"|rather than|instead of)"
    r"|\((?:was|were|formerly|previously|originally|before:|not)\b|\bnot\b[^.!?\n]{1,80}\bbut\b",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(
    r"[?？]|질문\s?[:：]|물음|물었|묻는|묻고|질문함|답을 기다|선택을 기다|고르라"
    r"|\b(?:asked|asks|asking|awaiting|waiting for|open question)\b|\bquestion\s?:",
    re.IGNORECASE,
)
# Of the sentences that were dropped so many are tried again, the heaviest first: some may fit.
_MOST_RESTORED: Final = 16
_MOST_FACTS: Final = 300
_TERM_WEIGHT: Final = 0.2
_OPTION: Final = re.compile(r"^\(?\d{1,2}[).]")


@dataclass(frozen=True)
class _Piece:
    line: int
    opening: str
    turn: str
    text: str


def shorten(
    text: str,
    fits: Callable[[str], bool],
    *,
    max_chars: int,
    must_fit: Callable[[str], bool],
    facts: Sequence[Fact] = (),
) -> str:
    """Drops the lightest sentences for their length, just enough for the text to fit into about `max_chars` characters.

    A repetition weighs nothing, other sentences what they say that no other one does. The last question with its
    options, rules, prohibitions, decisions, reversals and the only mention of one of `facts`, the user's, stay, even if
    the text remains too long; they are dropped only for `must_fit`, in reverse order of this list. A turn mark stays
    with the sentences of its turn. A single sentence is cut at a word; of one longer than half of `max_chars` clauses
    are dropped.
    """
    if fits(text):
        return text
    pieces = [piece for whole in _pieces(text) for piece in _clauses(whole, max_chars // 2)]
    texts = [piece.text for piece in pieces]
    retained = dict(enumerate(pieces))
    light, mentions, firm, asked = _tiers(texts, facts)
    losses = _losses(texts)
    for tier, is_enough in ((light, fits), (mentions, must_fit), (firm, must_fit), (asked, must_fit)):
        if is_enough(_render(retained)):
            break
        retained = _without_lightest(retained, tier, losses, is_enough)
    shortened = _render(retained)
    is_enough = must_fit if len(retained) > 1 or _is_firm(shortened) else fits
    while len(shortened) > 1 and not is_enough(shortened):
        shortened = cut_at_word(shortened, min(max_chars, len(shortened) * 9 // 10))
    return shortened


def _tiers(texts: Sequence[str], facts: Sequence[Fact]) -> tuple[list[int], ...]:
    """Returns the indexes of pieces that may go, only mentions of facts, rules and decisions, and the open question."""
    asked = list(_question(texts))
    first = {_key(text): index for index, text in reversed(list(enumerate(texts)))}
    repeated = {index for index, text in enumerate(texts) if first[_key(text)] != index}
    firm = [index for index, text in enumerate(texts) if index not in {*asked, *repeated} and _is_firm(text)]
    mentions = sorted(_only_mentions(texts, facts, {*asked, *firm}) - {*asked, *firm})
    stay = {*asked, *firm, *mentions}
    return [index for index in range(len(texts)) if index not in stay], mentions, firm, asked


def _only_mentions(texts: Sequence[str], facts: Sequence[Fact], staying: set[int]) -> set[int]:
    """Returns a set of pieces that has each fact of the text which no piece of `staying` has."""
    keys = [key_of(text) for text in texts]
    whole = "\n".join(keys)
    starts = list(accumulate((len(key) + 1 for key in keys), initial=0))
    holders: list[list[int]] = []
    for fact in [fact for fact in facts if not (fact.says_little or is_instruction(fact))][:_MOST_FACTS]:
        found: list[int] = []
        at = whole.find(fact.key)
        while at >= 0:
            found.append(bisect_right(starts, at) - 1)
            at = whole.find(fact.key, starts[found[-1] + 1])
        holders.append(found)
    kept = set(staying)
    for found in sorted(filter(None, holders), key=len):
        if kept.isdisjoint(found):
            kept.add(found[0])
    return kept - staying


def _losses(texts: Sequence[str]) -> list[float]:
    """Returns what each piece says that no other one does: numbers, names, and words; 0 for a repetition."""
    terms = {_key(text): frozenset(content_terms(text)) for text in texts}
    counts = Counter(term for each in terms.values() for term in each)
    seen: set[str] = set()
    losses: list[float] = []
    for text in texts:
        key = _key(text)
        own = sum(counts[term] == 1 for term in terms[key])
        losses.append(0.0 if key in seen else weigh_kinds(text) + _TERM_WEIGHT * own)
        seen.add(key)
    return losses


def _without_lightest(
    retained: Mapping[int, _Piece],
    droppable: Sequence[int],
    losses: Sequence[float],
    is_enough: Callable[[str], bool],
) -> dict[int, _Piece]:
    """Returns the pieces without the lightest droppable ones that are enough; without any of them if none are.

    One piece always stays.
    """
    if len(droppable) == len(retained):
        droppable = sorted(droppable, key=lambda index: losses[index])[: len(retained) - 1]
    if not droppable or not is_enough(_render(_without(retained, droppable))):
        return _without(retained, droppable)
    lightest = sorted(droppable, key=lambda index: losses[index] / len(retained[index].text))
    counts = range(len(lightest) + 1)
    needed = bisect_left(counts, x=True, key=lambda count: is_enough(_render(_without(retained, lightest[:count]))))
    kept = _without(retained, lightest[:needed])
    for index in sorted(lightest[:needed], key=lambda index: -losses[index])[:_MOST_RESTORED]:
        fuller = {**kept, index: retained[index]}
        if losses[index] and is_enough(_render(fuller)):
            kept = fuller
    return kept


def _without(retained: Mapping[int, _Piece], dropped: Iterable[int]) -> dict[int, _Piece]:
    gone = set(dropped)
    return {index: piece for index, piece in retained.items() if index not in gone}


def _is_firm(text: str) -> bool:
    return is_rule(text) or any(pattern.search(text) for pattern in (_DECISION, _HEADLINE))


def _question(texts: Sequence[str]) -> Iterator[int]:
    """Yields the indexes of the last question and the options after it; of the last piece if there is no question."""
    asked = [index for index, text in enumerate(texts) if _QUESTION.search(text)]
    index = asked[-1] if asked else len(texts) - 1
    yield index
    while (index := index + 1) < len(texts) and _OPTION.match(texts[index]):
        yield index


def _key(text: str) -> str:
    return text.casefold().rstrip(".!?… ")


def _pieces(text: str) -> Iterator[_Piece]:
    code: list[str] = []
    turn = ""
    for number, line in enumerate(text.splitlines()):
        if code or _FENCE.match(line):
            code.append(line)
            if len(code) > 1 and _FENCE.match(line):
                yield _Piece(number, "", turn, "\n".join(code))
                code = []
            continue
        opening, sentences = _sentences(line)
        for sentence in sentences:
            marked = _TURN_MARK.match(sentence)
            turn = marked.group().strip() if marked else turn
            if rest := sentence[marked.end() :] if marked else sentence:
                yield _Piece(number, opening, turn, rest)
    if code:
        yield _Piece(len(text), "", turn, "\n".join(code))


def _sentences(line: str) -> tuple[str, list[str]]:
    if _HEADLINE.match(line) or line.lstrip().startswith("|"):
        return "", [line.rstrip()]
    marked = _LIST_MARK.match(line)
    opening = marked.group() if marked else ""
    return opening, split_sentences(line[len(opening) :])


def _clauses(piece: _Piece, max_chars: int) -> list[_Piece]:
    if len(piece.text) <= max_chars or "\n" in piece.text:
        return [piece]
    return [replace(piece, text=clause) for clause in _CLAUSE_END.split(piece.text) if clause]


def _render(retained: Mapping[int, _Piece]) -> str:
    parts: list[str] = []
    line, turn = -1, ""
    for _, piece in sorted(retained.items()):
        parts.append((("\n" if parts else "") + piece.opening) if piece.line != line else " ")
        parts.append(f"{piece.turn} " if piece.turn != turn else "")
        parts.append(piece.text)
        line, turn = piece.line, piece.turn
    return "".join(parts)
