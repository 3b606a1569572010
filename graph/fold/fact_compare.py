"""Tells which facts a text holds, and which values the user replaced."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage

from graph.core.turn import text_of
from graph.fold.fact_find import Fact, fact_spans, is_instruction
from graph.fold.fact_key import key_of, narrow
from graph.fold.fact_pattern import SETTING
from graph.fold.fact_rule import Clause, clauses_of, holds_instruction
from graph.fold.fact_value import Values, values_of

_VALUED: Final = ("date", "money", "number", "count")
# How far behind a setting's name its value may stand.
_VALUE_CHARS: Final = 40
_LEAST_DIGITS: Final = 2
_SETTING_VALUE: Final = re.compile(r" (true|false|on|off|null|none|[0-9][^ ]*) ")


# Between the replaced value and the new one: 1월 10일 말고 1월 3일로, 14,382명이 아니라 14,328명, $4,000 → $3,200.
_INSTEAD: Final = re.compile(
    r"님?(?:이|가|은|는|을|를|로|으로|에)?\s?(?:말고|대신(?:에)?|취소하고|빼고|아니라|아니고요?|(?:이|가)?\s?(?:아니에요|아니예요|아닙니다"
    r"|틀렸(?:어요|습니다|고)|틀려요|잘못(?:됐|이|\s적었|\s말했|\s썼)[가-힣]{0,3}))(?:[.,!]?\s[^0-9\n]{0,16})?"
    r"|\s?(?:→|->|=>|⇒)\s?"
    r"|(?i:\s(?:is|was)\s(?:wrong|incorrect|not\sright)[.,;:]?\s[^0-9\n]{0,24})"
)
_ARROW: Final = re.compile(r"\s?(?:→|->|=>|⇒)")
_NOT_BEFORE: Final = re.compile(r"\b(?:not|n['’]t)\s(?:the\s|on\s|at\s|in\s|by\s|for\s)?$", re.IGNORECASE)
_BUT: Final = re.compile(
    r",?\s(?:but|it['’]s|it\sis|rather)\s(?:the\s|on\s|at\s|in\s|by\s|for\s|rather\s)?", re.IGNORECASE
)
# Between the new value and the replaced one: 25 records, not 50; 3층(이전 2층).
_NOT: Final = re.compile(
    r",?\s(?:and\s)?not\s(?:the\s|on\s|at\s|in\s)?|\s(?:instead\sof|rather\sthan)\s(?:the\s)?"
    r"|\s?[(\[](?:was|formerly|previously|before|old|이전에?는?|기존에?는?|전에는|원래는?|당초)\s?:?\s?",
    re.IGNORECASE,
)
_MOVED: Final = (
    r"(?:chang|mov|shift|push|rais|lower|correct|updat|renam|increas|decreas|switch|bump|cut|reduc|reschedul|postpon|brought"
    r"|went|grew|fell)"
)
_CHANGED_FROM: Final = re.compile(rf"\b{_MOVED}[a-z]{{0,4}}\b[^.!?\n]{{0,40}}\bfrom\s$", re.IGNORECASE)
_CHANGED_TO: Final = re.compile(rf"\b{_MOVED}[a-z]{{0,4}}\b[^.!?\n]{{0,40}}\bto\s$", re.IGNORECASE)
_TO: Final = re.compile(r"\s(?:up\s|down\s|back\s)?to\s", re.IGNORECASE)
_FROM: Final = re.compile(r"\sfrom\s", re.IGNORECASE)
_KO_FROM: Final = re.compile(r"에서\s(?:다시\s)?")
_KO_CHANGED: Final = re.compile(
    r"(?:으로|로)\s?[^.!?\n]{0,10}?(?:변경|바꾸|바꿔|바꿨|바뀌|바뀐|당기|당겨|당겼|미루|미뤄|미뤘|옮기|옮겨|옮겼|수정|정정|고치|고쳤"
    r"|조정|올리|올려|올렸|내리|내려|내렸|줄이|줄여|줄였|늘리|늘려|늘렸)"
)
_CORRECTS: Final = re.compile(
    r"정정|잘못\s?(?:말|적|알려|썼|봤|드렸)|틀렸|오타|(?:^|[.!?]\s|아,?\s)아니(?:에요|예요|요|야)?[,.]?\s"
    r"|(?i:\bcorrection\b|\bno,\s(?:it|that)['’]?s?\b|\bno\swait\b|\bsorry,\s(?:it|that|not|make|I\smeant|the\sright)\b|\bI\smeant\b|\bactually,|\bscratch\sthat\b|\bmy\smistake\b|\btypo\b)"
)
# Behind a value that isn't so, whatever is: "24시간 아니에요", "$40 is wrong".
_DENIED: Final = re.compile(
    r"\s?(?:이|가|은|는)?\s?(?:아니에요|아니예요|아닙니다|아녜요)(?=[.,!\s]|$)"
    r"|(?i:\s(?:is|was)\s(?:wrong|incorrect|not\s(?:right|true|correct))\b)"
)
_CUE_CHARS: Final = 60
# A fold asks for those of its source for its request and for each draft.
_KNOWN_SOURCES: Final = 16
_CONTEXT_CHARS: Final = 60
# Of pasted data not every value is looked at.
_MOST_KNOWN: Final = 300
_MOST_REPLACED: Final = 100
_MOST_BESIDE: Final = 30
_SHAPE_DIGITS: Final = re.compile(r"[0-9][0-9,]*")


class HeldFacts:
    """Index of a text for looking up many facts; lines may be added."""

    def __init__(self, text: str = "") -> None:
        self._keys = ""
        self._lines: list[str] = []
        self._clauses: list[Clause] = []
        self._clause_lines = 0
        self._values = Values()
        self._value_lines = 0
        for line in dict.fromkeys(text.split("\n")):
            self.add(line)

    def add(self, line: str) -> None:
        self._keys += f"{key_of(line)}\n"
        self._lines.append(line)

    def has(self, fact: Fact) -> bool:
        if is_instruction(fact):
            return self._has_instruction(fact)
        return fact.key in self._keys or self._has_value(fact)

    def _has_instruction(self, fact: Fact) -> bool:
        for line in self._lines[self._clause_lines :]:
            self._clauses += clauses_of(line)
        self._clause_lines = len(self._lines)
        return holds_instruction(fact.text, self._clauses, is_negated=fact.kind == "negation")

    def _has_value(self, fact: Fact) -> bool:
        """Whether the text has the fact in another form: 18:40 for 오후 6시 40분, 5명 for 다섯 명."""
        if fact.kind == "code":
            return self._has_setting(fact.text)
        if fact.kind != "name" and fact.kind not in _VALUED:
            return False
        if fact.kind == "number" and self._has_counted(fact.key):
            return True
        for line in self._lines[self._value_lines :]:
            self._values.add(narrow(line))
        self._value_lines = len(self._lines)
        if fact.kind == "name":
            return self._values.has_person(fact.text)
        values = values_of(narrow(fact.text))
        return fact.text in self._values.addresses or (values is not None and self._values.hold(values))

    def _has_counted(self, key: str) -> bool:
        """Whether a text says what a bare number leaves out (4,800만 원), or counts by another word (690칸, 690개)."""
        number, _, unit = key.strip().partition(" ")
        if not number.isdigit() or len(number) < _LEAST_DIGITS:
            return False
        return (unit == "개" and f" {number} " in self._keys) or (
            not unit and any(f" {number}{magnitude}" in self._keys for magnitude in "십백천만억조")
        )

    def _has_setting(self, text: str) -> bool:
        setting = SETTING.fullmatch(text)
        if setting is None:
            return False
        name, wanted = key_of(setting["name"]), key_of(setting["value"])
        start = self._keys.find(name)
        while start >= 0:
            behind = start + len(name) - 1
            found = _SETTING_VALUE.search(self._keys, behind, behind + _VALUE_CHARS)
            if found and "\n" not in self._keys[behind : found.start()] and found[0] == wanted:
                return True
            start = self._keys.find(name, behind)
        return False


def missing_from(facts: Iterable[Fact], text: str) -> tuple[Fact, ...]:
    return _divide(facts, text)[1]


def present_in(facts: Iterable[Fact], text: str) -> tuple[Fact, ...]:
    """Returns the facts that a text contains, in order.

    Spacing, case, separators and particles are ignored. Times, dates, amounts and counts may be written in another way,
    and an amount may be rounded. A rule or prohibition is compared clause by clause (`holds_instruction`).
    """
    return _divide(facts, text)[0]


def _divide(facts: Iterable[Fact], text: str) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    held = HeldFacts(text)
    present: list[Fact] = []
    missing: list[Fact] = []
    for fact in facts:
        (present if held.has(fact) else missing).append(fact)
    return tuple(present), tuple(missing)


class _Said(NamedTuple):
    """A value in a user's message, with where it stands."""

    start: int
    end: int
    fact: Fact


def superseded_in(messages: Iterable[AnyMessage]) -> frozenset[tuple[str, str]]:
    """Returns the identities (`Fact.identity`) of values that a later sentence of the user replaced.

    Recognised are "X 말고 Y", "X가 아니라 Y", "not X but Y", "Y, not X", "X → Y", "Y (was X)" and a change from X to Y;
    a value that isn't so ("24시간 아니에요"); a correction ("정정할게요, Y", "no, it is Y") if there is one like value
    in it or the user's message before it.
    A value that the user returns to counts again.
    """
    return _superseded(tuple(text_of(message) for message in messages if isinstance(message, HumanMessage)))


@lru_cache(maxsize=_KNOWN_SOURCES)
def _superseded(texts: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    replaced: dict[tuple[str, str], None] = {}
    known: list[Fact] = []
    before: list[_Said] = []
    for said_text in texts:
        text = narrow(said_text)
        said = [_Said(*span) for span in fact_spans(said_text) if _is_value(span[2])]
        known = [*known, *(each.fact for each in said)][-_MOST_KNOWN:]
        denied = [each.fact for each in said if _DENIED.match(text, each.end)][:_MOST_REPLACED]
        replaced |= {fact.identity: None for fact in known if any(_is_same_value(fact, each) for each in denied)}
        for old, new in islice(_replacements(text, said, before), _MOST_REPLACED):
            for fact in known:
                if _is_same_value(fact, old):
                    replaced[fact.identity] = None
            for fact in known:
                if _is_same_value(fact, new):
                    replaced.pop(fact.identity, None)
        before = said
    return frozenset(replaced)


def _is_value(fact: Fact) -> bool:
    return not is_instruction(fact) and fact.kind not in ("vague", "quoted") and not fact.is_cell


def _replacements(text: str, said: Sequence[_Said], before: Sequence[_Said]) -> Iterator[tuple[Fact, Fact]]:
    """Yields each replaced value with the new one, in their order."""
    handled: set[int] = set()
    for index, (first, second) in enumerate(pairwise(said)):
        order = _order(text, first, second) if _is_like(first.fact, second.fact) else None
        if order is not None:
            handled.update((first.start, second.start))
            yield order
        elif second.start not in handled and _is_correction(text, second):
            yield from _corrected(said[max(0, index - _MOST_BESIDE) : index + 1], second, before[-_MOST_BESIDE:])
    if said and said[0].start not in handled and _is_correction(text, said[0]):
        yield from _corrected((), said[0], before[-_MOST_BESIDE:])


def _order(text: str, first: _Said, second: _Said) -> tuple[Fact, Fact] | None:
    """Returns the replaced value and the new one of two that follow each other; None if neither replaces the other."""
    gap = text[first.end : second.start]
    ahead, behind = (
        text[max(0, first.start - _CONTEXT_CHARS) : first.start],
        text[second.end : second.end + _CONTEXT_CHARS],
    )
    if "\n" in gap:
        return None
    is_chain = _ARROW.match(gap) and (_ARROW.match(behind) or _ARROW.search(ahead[-4:]))
    if (
        (_INSTEAD.fullmatch(gap) and not is_chain)
        or (_BUT.fullmatch(gap) and _NOT_BEFORE.search(ahead))
        or (_TO.fullmatch(gap) and _CHANGED_FROM.search(ahead))
        or (_KO_FROM.fullmatch(gap) and _KO_CHANGED.match(behind))
    ):
        return first.fact, second.fact
    if _NOT.fullmatch(gap) or (_FROM.fullmatch(gap) and _CHANGED_TO.search(ahead)):
        return second.fact, first.fact
    return None


def _is_correction(text: str, said: _Said) -> bool:
    ahead = text[max(0, said.start - _CUE_CHARS) : said.start]
    return bool(_CORRECTS.search(ahead))


def _corrected(earlier: Sequence[_Said], new: _Said, before: Sequence[_Said]) -> Iterator[tuple[Fact, Fact]]:
    """Yields the one value of the same shape that was said before a correction, with the corrected one."""
    for candidates in (earlier, before):
        found = {
            each.fact.identity: each.fact
            for each in candidates
            if _shape(each.fact) == _shape(new.fact) and not _is_same_value(each.fact, new.fact)
        }
        if found:
            if len(found) == 1:
                yield from ((old, new.fact) for old in found.values())
            return


def _is_like(first: Fact, second: Fact) -> bool:
    """Whether a value may stand in for another: of one kind, and both a day, a time, or with the same unit."""
    if first.kind != second.kind or first.identity == second.identity:
        return False
    if first.kind not in _VALUED or first.text.isdigit() or second.text.isdigit():
        return True
    ones, others = values_of(narrow(first.text)), values_of(narrow(second.text))
    if ones is None or others is None:
        return _shape(first) == _shape(second)
    return ones.sorts == others.sorts


def _is_same_value(first: Fact, second: Fact) -> bool:
    if first.identity == second.identity:
        return True
    if first.kind != second.kind or first.kind not in ("date", "money"):
        return False
    ones, others = values_of(narrow(first.text)), values_of(narrow(second.text))
    return ones is not None and others is not None and (ones.hold(others) or others.hold(ones))


def _shape(fact: Fact) -> str:
    return f"{fact.kind} {_SHAPE_DIGITS.sub('0', fact.text).replace(' ', '').casefold()}"
