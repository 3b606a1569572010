"""Shortens a summary by dropping its sentences of least weight, wherever they are."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from graph.core.language import split_sentences
from graph.fold.extract import cut_at_word, rank_sentences
from graph.fold.fact import is_rule

_TURN_MARK: Final = re.compile(r"^\((?:\d+(?:-\d+)?턴|turns? \d+(?:-\d+)?)\)\s*", re.IGNORECASE)
_LIST_MARK: Final = re.compile(r"^\s*(?:(?:[-*•·▪]|#{1,6}|>|\d{1,3}[.)])\s+)*")
_FENCE: Final = re.compile(r"^\s*(?:`{3,}|~{3,})")
_CLAUSE_END: Final = re.compile(r"(?<=[,;、，；])\s+")
_HEADLINE: Final = re.compile(r"^\s*(?:#{1,6}\s|(?:\d{1,3}[.)]\s+)?\*\*[^*]+\*\*:?\s*$)")

_DECISION: Final = re.compile(
    r"결정|확정|하기로|정했|정함|정하였|정해[지졌짐]"
    r"|\b(?:decid|decision|agreed|settled|confirmed|chose|chosen)",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(
    r"[?？]|물음|물었|묻는|묻고|질문함|답을 기다|선택을 기다|고르라"
    r"|\b(?:asked|asks|asking|awaiting|waiting for|open question)\b",
    re.IGNORECASE,
)
# Marks and openings aren't counted, so `fits` is called only when the rough length is close.
_ROUGH_SHARE: Final = 1.1
_OPTION: Final = re.compile(r"^\(?\d{1,2}[).]")


@dataclass(frozen=True)
class _Piece:
    line: int
    opening: str
    turn: str
    text: str


def shorten(text: str, fits: Callable[[str], bool], *, max_chars: int, must_fit: Callable[[str], bool]) -> str:
    """Drops repetitions, then sentences with few facts, until the text fits into about `max_chars` characters.

    The last question with its options, rules, prohibitions and decisions stay, even if the text remains too long; they
    are dropped only for `must_fit`, the question last. A turn mark stays with the sentences of its turn. A single
    sentence is cut at a word; one longer than half of `max_chars` is dropped by clauses.
    """
    if fits(text):
        return text
    pieces = [piece for whole in _pieces(text) for piece in _clauses(whole, max_chars // 2)]
    texts = [piece.text for piece in pieces]
    retained = dict(enumerate(pieces))
    rough_chars = sum(len(each_text) + 1 for each_text in texts)
    for index in _light(texts):
        if len(retained) == 1 or (rough_chars <= max_chars * _ROUGH_SHARE and fits(_render(retained))):
            break
        rough_chars -= len(retained.pop(index).text) + 1
    if not must_fit(_render(retained)):
        dropped = [index for index in _weighty(texts) if index in retained][: len(retained) - 1]
        # Bisects for the fewest pieces: the text gets shorter with each.
        counts = range(len(dropped))
        count = bisect_left(counts, x=True, key=lambda count: must_fit(_render(_without(retained, dropped[:count]))))
        retained = _without(retained, dropped[:count])
    shortened = _render(retained)
    is_enough = must_fit if len(retained) > 1 or _is_firm(shortened) else fits
    while len(shortened) > 1 and not is_enough(shortened):
        shortened = cut_at_word(shortened, min(max_chars, len(shortened) * 9 // 10))
    return shortened


def _without(retained: Mapping[int, _Piece], dropped: Iterable[int]) -> dict[int, _Piece]:
    gone = set(dropped)
    return {index: piece for index, piece in retained.items() if index not in gone}


def _light(texts: Sequence[str]) -> list[int]:
    """Returns the indexes of droppable pieces, lightest first: repetitions from the end on, then by weight."""
    first = {_key(text): index for index, text in reversed(list(enumerate(texts)))}
    repeated = [index for index in reversed(range(len(texts))) if first[_key(texts[index])] != index]
    stay = {*repeated, *_question(texts), *(index for index, text in enumerate(texts) if _is_firm(text))}
    return [*repeated, *(index for index in reversed(rank_sentences(texts)) if index not in stay)]


def _weighty(texts: Sequence[str]) -> list[int]:
    question = set(_question(texts))
    ranked = list(reversed(rank_sentences(texts)))
    return sorted(ranked, key=lambda index: index in question)


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
