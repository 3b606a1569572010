"""Tells which values a later sentence replaced: 10일 말고 3일, exit 1 (was 75), a correction."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from typing import Final, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage

from graph.core.remembered import remembered
from graph.core.turn import text_of
from graph.fold.fact_compare import values_of
from graph.fold.fact_find import Fact, fact_spans
from graph.fold.fact_key import narrow
from graph.fold.fact_rule import instruction_key

_SMALL_WORD: Final = r"(?:(?:the|on|at|in|by|for)\s){0,2}"
_MOVED: Final = (
    r"\b(?:chang|mov|shift|push|rais|lower|correct|updat|renam|increas|decreas|switch|bump|cut|reduc|reschedul|postpon"
    r"|brought|went|grew|fell)[a-z]{0,4}\b[^.!?\n]{0,40}"
)
_KO_MOVED: Final = (
    r"로\s?[^.!?\n]{0,10}?(?:변경|바[꾸꿔꿨꿀꿈뀌뀐뀜]|당[기겨겼길김]|미[루뤄뤘룰룸]|옮[기겨겼길김]|수정|정정|고[치쳐쳤칠침]|조정"
    r"|올[리려렸릴림]|내[리려렸릴림]|줄[이여였일임]|늘[리려렸릴림])"
)
_MOVED_FROM: Final = re.compile(rf"{_MOVED}\bfrom\s(?:the\s)?$", re.IGNORECASE)
_TO: Final = re.compile(r"\s(?:up\s|down\s|back\s)?to\s", re.IGNORECASE)
_ARROW: Final = r"(?:→|->|=>|⇒)"
_BEFORE: Final = re.compile(
    rf"\b(?:not|instead\sof|rather\sthan|no\slonger|forget)\s{_SMALL_WORD}$"
    r"|[(\[（]\s?(?:이전|기존|처음|원래|종전|당초|전에|was|were|formerly|previously|originally|initially|before|old)"
    rf"(?![A-Za-z])[^()\[\]（）\n]{{0,60}}$",
    re.IGNORECASE,
)
_BEHIND: Final = re.compile(
    r"님?(?:이|가|은|는|을|를|도|로|으로|에)?\s?(?:(?:말고|빼고)(?![도는])|대신|아니라|아니고|취소(?:하고|했|됐|할게|해|[.,)]|$))"
    r"|님?(?:이|가|은|는)?\s?(?:아니에요|아니예요|아닙니다|아녜요|틀렸|틀려요|잘못(?:됐|이|\s적었|\s말했|\s썼))"
    r"|(?i:\s(?:is|was)\s(?:wrong|incorrect|not\s(?:right|true|correct))\b)"
    rf"|에서\s[^.!?\n]{{1,30}}?{_KO_MOVED}"
)
# Between two values alone: three in a row are a sequence.
_ARROW_BEHIND: Final = re.compile(rf"\s?{_ARROW}(?![^\n]{{0,30}}?{_ARROW})")
_ARROW_BEFORE: Final = re.compile(rf"{_ARROW}\s?$")
_NOT_BEFORE: Final = re.compile(rf"(?:\bnot|n['’]t)\s{_SMALL_WORD}$", re.IGNORECASE)
_BUT: Final = re.compile(r",?\s(?:but|it['’]s|it\sis|rather)\s", re.IGNORECASE)
_CORRECTS: Final = re.compile(
    r"정정|잘못\s?(?:말|적|알려|썼|봤|드렸)|틀렸|오타|(?:^|[.!?]\s|아,?\s)아니(?:에요|예요|요|야)?[,.]?\s"
    r"|(?i:\bcorrection\b|\bno,\s(?:it|that)['’]?s?\b|\bno\swait\b|\bsorry,\s(?:it|that|not|make|I\smeant|the\sright)\b"
    r"|\bI\smeant\b|\bactually,|\bscratch\sthat\b|\bmy\smistake\b|\btypo\b)"
)
# The new value of something that was said before, named with it.
_MOVED_TO: Final = re.compile(rf"{_MOVED}\bto\s{_SMALL_WORD}$|\bmake\sit\s{_SMALL_WORD}$", re.IGNORECASE)
_MOVED_TO_BEHIND: Final = re.compile(f"으?{_KO_MOVED}")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?。])\s|\n")
_NEAR_CHARS: Final = 60
_HEAD_CHARS: Final = 30
_NO_WORD: Final = re.compile(r"[^\w\s:]|\d")
# A fold asks for those of its source for its request and for each draft.
_KNOWN_SOURCES: Final = 16
_KNOWN_SENTENCES: Final = 512
# Of pasted data not every value is looked at.
_MOST_KNOWN: Final = 300
_MOST: Final = 100
_MOST_BESIDE: Final = 30
_DIGITS: Final = re.compile(r"[0-9][0-9,]*")
_NO_VALUES: Final = ("negation", "rule", "preference", "choice", "vague", "quoted")
_VALUED: Final = ("date", "money", "number", "count")


class _Said(NamedTuple):
    """A value and the other words of its sentence."""

    fact: Fact
    about: str


def is_replaced(text: str, start: int, end: int) -> bool:
    """Returns True if a value is named only to be replaced: 10일 말고, instead of the 10th, (was 75)."""
    before, behind = text[max(0, start - _NEAR_CHARS) : start], text[end : end + _NEAR_CHARS]
    return bool(
        _BEFORE.search(before)
        or _BEHIND.match(behind)
        or (_ARROW_BEHIND.match(behind) and not _ARROW_BEFORE.search(before))
        or (_TO.match(behind) and _MOVED_FROM.search(before))
        or (_BUT.match(behind) and _NOT_BEFORE.search(before))
    )


def is_out(fact: Fact, gone: Container[tuple[str, str]]) -> bool:
    """Returns True for a replaced value, and for a choice of one ("15일로 할게요") that doesn't replace it."""
    if fact.identity in gone or fact.kind != "choice":
        return fact.identity in gone
    spans = fact_spans(fact.text)
    return any(each.identity in gone and not is_replaced(fact.text, start, end) for start, end, each in spans)


def superseded_in(messages: Iterable[AnyMessage]) -> frozenset[tuple[str, str]]:
    """Returns the identities (`Fact.identity`) of the values that the user replaced, see `superseded`."""
    return superseded(tuple(text_of(message) for message in messages if isinstance(message, HumanMessage)))


@lru_cache(maxsize=_KNOWN_SOURCES)
def superseded(texts: tuple[str, ...], *, in_doubt: bool = False) -> frozenset[tuple[str, str]]:
    """Returns the identities of the values that texts replace, oldest text first.

    These are values named only to be replaced (`is_replaced`), and the one like value that was said before a correction
    in its text or the one before ("정정할게요, Y"). In doubt, all that may be corrected count, also those of the same
    thing ("moved the talk to Y"). A value that a later text names again counts again.
    """
    replaced: dict[tuple[str, str], Fact] = {}
    earlier: list[_Said] = []
    last: Sequence[_Said] = ()
    for text in texts:
        said, dropped, corrections = _read(text)
        known = [each.fact for each in (*earlier, *said)[-_MOST_KNOWN:]]
        corrected = _corrected(said, corrections, last, earlier, in_doubt=in_doubt)
        gone = {fact.identity: fact for fact in islice((*dropped, *corrected), _MOST)}
        again = [each.fact for each in said if each.fact.identity not in gone][-_MOST:]
        replaced = {
            key: fact for key, fact in replaced.items() if not any(_is_same_value(fact, each) for each in again)
        }
        same = (fact for fact in known if any(_is_same_value(fact, each) for each in gone.values()))
        replaced |= gone | {fact.identity: fact for fact in same}
        earlier, last = [*earlier, *said][-_MOST_KNOWN:], said
    return frozenset(replaced)


@lru_cache(maxsize=_KNOWN_SOURCES)
def replaced_by(later: tuple[str, ...], texts: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """Returns the identities of the values of texts that they or later notes replace, in doubt too: see `superseded`.

    A later note with a like value behind the same words replaces the one in the texts: 설치 3월 6일, 설치 3월 13일.
    """
    gone = set(superseded((*texts, *later), in_doubt=True))
    told, now = ([*_named(each)] for each in (texts, later))
    for words, fact in now:
        others = {each.identity: each for named, each in told if (named <= words or words <= named)}
        near = [each for each in others.values() if each.identity not in gone and _is_like(each, fact)]
        if len(near) == 1 and not any(_is_same_value(near[0], each) for _, each in now):
            gone.add(near[0].identity)
    return frozenset(gone)


def _named(texts: Sequence[str]) -> list[tuple[frozenset[str], Fact]]:
    """Returns the values of texts with the words before them in their clause, those without such words left out."""
    found = []
    for text in map(narrow, texts):
        for start, _, fact in fact_spans(text):
            words = _words(_NO_WORD.split(text[max(0, start - _HEAD_CHARS) : start])[-1])
            if words and fact.kind in _VALUED:
                found.append((words, fact))
    return found[-_MOST_KNOWN:]


def changed_in(text: str) -> tuple[Fact, ...]:
    """Returns the values that a text replaces, and the new ones that it gives: 60일 말고, moved to 60 days."""
    said, gone, corrections = _read(text)
    return (*gone, *(said[index].fact for index, _ in corrections))


def without_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    parts, last = [], 0
    for start, end in spans:
        parts.append(text[last:start])
        last = max(last, end)
    return " ".join([*parts, text[last:]])


@remembered
def _read(said_text: str) -> tuple[Sequence[_Said], Sequence[Fact], Sequence[tuple[int, bool]]]:
    """Returns a text's values, those named only to be replaced, and which correct (True) or change what was said."""
    text = narrow(said_text)
    ends = [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    values = (span for span in fact_spans(text) if not (span[2].is_cell or span[2].kind in _NO_VALUES))
    said: list[_Said] = []
    gone: list[Fact] = []
    corrections: list[tuple[int, bool]] = []
    for index, group in groupby(values, key=lambda span: bisect_right(ends, span[0])):
        spans, first = list(group), ends[index - 1] if index else 0
        about = without_spans(text[first : ends[index]], [(start - first, end - first) for start, end, _ in spans])
        replaced = [fact for start, end, fact in spans if is_replaced(text, start, end)]
        gone += replaced
        for start, end, fact in spans:
            before, behind = text[max(0, start - _NEAR_CHARS) : start], text[end : end + _NEAR_CHARS]
            is_plain = bool(_CORRECTS.search(before))
            if not replaced and (is_plain or _MOVED_TO.search(before) or _MOVED_TO_BEHIND.match(behind)):
                corrections.append((len(said), is_plain))
            said.append(_Said(fact, about))
    return said, gone, corrections[:_MOST]


def _corrected(
    said: Sequence[_Said],
    corrections: Sequence[tuple[int, bool]],
    last: Sequence[_Said],
    earlier: Sequence[_Said],
    *,
    in_doubt: bool,
) -> Iterator[Fact]:
    for index, is_plain in corrections:
        new, beside = said[index], said[max(0, index - _MOST_BESIDE) : index]
        near = next(filter(None, (_like(new, group) for group in (beside, last[-_MOST_BESIDE:]))), [])
        if is_plain and (in_doubt or len(near) == 1):
            yield from near
        if in_doubt:
            words = _words(new.about)
            others = (each for each in (*earlier, *beside) if each.about != new.about)
            yield from _like(new, (each for each in others if words & _words(each.about)))


def _like(new: _Said, candidates: Iterable[_Said]) -> list[Fact]:
    return list({each.fact.identity: each.fact for each in candidates if _is_like(each.fact, new.fact)}.values())


@lru_cache(maxsize=_KNOWN_SENTENCES)
def _words(about: str) -> frozenset[str]:
    """Returns the content words of a sentence without its values and what says that it corrects."""
    plain = _MOVED_TO_BEHIND.sub(" ", _CORRECTS.sub(" ", about))
    return frozenset(filter(None, instruction_key(plain).split("|")))


def _is_like(first: Fact, second: Fact) -> bool:
    """Whether a value may stand in for another: of one kind, and both a day, a time, of one unit, or of one form."""
    if first.kind != second.kind or _is_same_value(first, second):
        return False
    ones, others = values_of(narrow(first.text)), values_of(narrow(second.text))
    if first.kind in _VALUED and ones is not None and others is not None:
        return ones.sorts == others.sorts
    return _shape(first) == _shape(second)


def _is_same_value(first: Fact, second: Fact) -> bool:
    if first.identity == second.identity:
        return True
    if first.kind != second.kind or first.kind not in ("date", "money"):
        return False
    ones, others = values_of(narrow(first.text)), values_of(narrow(second.text))
    return ones is not None and others is not None and (ones.hold(others) or others.hold(ones))


def _shape(fact: Fact) -> str:
    return _DIGITS.sub("0", fact.text).replace(" ", "").casefold()
