"""The user's lasting wishes (rules and prohibitions) in records: which ones hold, and how a record says them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from graph.core.language import split_sentences
from graph.fold.fact_find import Fact, fact_spans, facts_in, is_instruction
from graph.fold.fact_key import key_of
from graph.fold.fact_pattern import Kind
from graph.fold.fact_rule import Clause, clauses_of, instruction_key
from graph.fold.replaced import is_replaced, without_spans

_VALUES: Final = frozenset({"date", "number", "money", "count", "vague"})
_WEEKDAY: Final = re.compile(r"요일|day$", re.IGNORECASE)
_LASTING: Final = re.compile(
    r"절대|반드시|앞으로|항상|언제나|부터|(?i:\b(?:never|always|must|from now on|under no circumstances)\b)"
)
# A date, an option or a plan that is declined: true of that moment.
_DECLINED: Final = re.compile(
    r"안\s?(?:되겠|될\s?(?:것|듯)|맞(?:아|네|을))|(?:어렵|힘들)(?:겠|네|어|습|것)|못\s?(?:가|오|하|맞추)(?:겠|네)"
    r"|(?i:\bwon['’]t work\b|\b(?:can['’]t|cannot) make\b|\bdoesn['’]t work\b)"
)
_MOMENT: Final = re.compile(
    r"오늘|지금은|지금\s?당장|내일|모레|이번(?:에|엔|\s?(?:주|달|한\s?번|회|답))|다음\s?(?:주|달)"
    r"|(?i:\b(?:today|tonight|tomorrow|(?:this|next) (?:time|week|month)|yet|(?:for|right) now)\b)"
)
# Words that name nothing without the sentence before.
_POINTING_LIST: Final = """
됨 된다 함 한다 하기 하게 후보 목록 명단 리스트 대상 항목 선택지 내용 부분 거기 여기 그곳 이곳 그날 그때 그쪽 이쪽 그분
이분 그거 이거 저거 그걸 이걸 저걸 그게 이게 그런 이런 아 네 예 음 저 건 것 걸 게 거 수 할 되고 되겠어 되겠 있어 있어요
없어 돼서 돼고 해서 제외해 제외하 그보다 더는 이상 그이상 그만큼 이름 비슷하니 비슷해서 비슷하 헷갈리 헷갈려 혼동 혼동하
using stop stopped candidate candidates list option options item items one ones them those these there here they he she
him her its leave take out please up anymore again just ok okay yes so then has have
"""
_POINTING: Final = frozenset(_POINTING_LIST.split())
_POINTED_AT: Final = re.compile(
    r"(?<![가-힣])(?:이|그|저|해당)\s[가-힣A-Za-z]+|(?i:\b(?:this|that|these|those)\s[a-z]+)"
)
# 예산에는 넣지 마세요, don't send it to anyone: what isn't to be put or sent, only the sentence before says.
_NO_OBJECT: Final = re.compile(
    r"^(?:[가-힣A-Za-z0-9]{1,12}(?:에|에는|에서|에서는|에게|에게는|한테|한테는|께는?|로는)\s){1,3}(?:절대\s|꼭\s)?"
    r"(?:넣|쓰|적|빼|보내|알리|말하|올리|지우|바꾸|보이|보여\s주|언급하|공유하|포함하|추가하|전달하|공개하)지\s?[마말]"
    r"|^(?i:(?:please\s|and\s|but\s|so\s|also\s){0,3}(?:never|don['’]t|do\snot|leave)\s(?:[a-z]+\s){0,2}(?:it|them|this|that|these|those)\b)"
    r"(?:\s[a-z]+){0,4}$"
)
# Takes back a wish of an earlier record.
_LIFTED: Final = re.compile(
    r"(?:금지|규칙|제한|조건|요청|부탁)(?:을|를|은|는|이|가)?\s?(?:해제|철회|취소|거[둠두둬]|풀)|허용(?:함|됨|하기로)|[가-힣]도\s?(?:됨|된다)"
    r"|(?i:\b(?:rule|ban|prohibition|restriction|request)s?\b[^.\n]{0,30}?\b(?:lifted|withdrawn|taken back|dropped)\b"
    r"|\ballowed again\b|\bno longer (?:applies|forbidden)\b)"
)
_LABEL: Final = re.compile(
    r"^(?:\((?:\d+(?:-\d+)?턴|turns? \d+(?:-\d+)?)\)\s?)?"
    r"(?:(?:(?:사용자\s?)?(?:규칙|금지|요청|조건)|사실|rules?|prohibitions?|facts)\s?[:：]\s?)?",
    re.IGNORECASE,
)
_CLAUSE_END: Final = re.compile(r"(?<=[,;，；])\s+|\s[·/]\s")
_TRIMMED: Final = " .,;，；!?。！？"
_MOST_CLAUSES: Final = 3
# Of an edited summary, which may be long.
_MOST_SENTENCES: Final = 500
_MOST_SAID: Final = 1_000
_LONGEST_CHARS: Final = 1_000
# Shares of the wish's words in what a record says, and of the record's words in the wish.
_LEAST_FOUND: Final = 0.5
_LEAST_OWN: Final = 0.8
_OTHER_FORM: Final = 0.5
_LATIN_ROOT: Final = 4


@dataclass(frozen=True)
class Wish(Fact):
    """A rule or prohibition in the user's words (`text`), to be written as `words`: its record's, if it says it.

    Its key is that of `words`, which a text that replaces the record is likely to repeat.
    """

    words: str = ""


def is_lasting(text: str) -> bool:
    """Returns True if a rule or prohibition means the same without its context.

    Not what declines a date or corrects a value ("1월 24일은 안 되겠어요", "10일 말고 3일로"), and nothing that
    points at words before it ("후보에서 빼 주세요").
    """
    values = [(start, end) for start, end, fact in fact_spans(text) if _is_value(fact)]
    if any(is_replaced(text, start, end) for start, end in values):
        return False
    is_firm = bool(_LASTING.search(text))
    if not is_firm and (_MOMENT.search(text) or (values and _DECLINED.search(text))):
        return False
    return not is_pointing(text if is_firm else without_spans(text, values))


def is_pointing(text: str) -> bool:
    """Returns True if a rule or prohibition names nothing without the sentence before it ("그보다 더는 안 돼요")."""
    return bool(_NO_OBJECT.search(text)) or not _content_words(_POINTED_AT.sub(" ", text))


def stands_for_nothing(fact: Fact) -> bool:
    """Returns True for a rule, prohibition or preference that only points; a choice says at least which option."""
    return is_instruction(fact) and fact.kind != "choice" and is_pointing(fact.text)


def said_in(summary: str) -> list[Clause]:
    """Returns what a summary says: each sentence, and each run of up to three clauses in it."""
    sentences = [each for each in split_sentences(summary)[:_MOST_SENTENCES] if len(each) <= _LONGEST_CHARS]
    return list(islice((said for each in sentences for said in _runs(_LABEL.sub("", each))), _MOST_SAID))


def lifts_rule(sentence: str) -> bool:
    """Whether a sentence says that a rule no longer holds."""
    return bool(_LIFTED.search(sentence))


def is_lifted(wish: str, later: Sequence[Clause]) -> bool:
    """Returns True if a later record takes a wish back."""
    words = _content_words(wish)
    return any(_LIFTED.search(said.text) and _found(words, said.key) >= _LEAST_FOUND for said in later)


def wish_of(fact: Fact, record: Sequence[Clause]) -> Wish:
    """Returns a rule or prohibition of the user as the record says it, as short as it says it."""
    # What the record doesn't say stays in the user's words.
    clauses = [_clause_in(clause, record) for clause in _CLAUSE_END.split(fact.text)]
    words = ", ".join(dict.fromkeys(filter(None, clauses)))
    if words in ("", fact.text):
        return Wish(fact.kind, fact.text, fact.key, fact.weight, is_of_user=True, words=fact.text)
    is_negated = any(clause.is_negated for clause in clauses_of(words))
    kind: Kind = "negation" if is_negated else "rule"
    key = instruction_key(words) or fact.key
    return Wish(kind, fact.text, key, fact.weight, is_of_user=True, words=words)


def _clause_in(clause: str, record: Sequence[Clause]) -> str:
    words = _content_words(clause)
    if not words:
        return ""
    clause = clause.strip(_TRIMMED)
    key = key_of(clause)
    is_negated = any(each.is_negated for each in clauses_of(clause))
    firm = [fact for fact in facts_in(clause) if not is_instruction(fact) and fact.kind != "vague"]
    saying = [
        said
        for said in record
        if said.is_negated is is_negated
        and len(said.text) <= len(clause)
        and _found(words, said.key) >= _LEAST_FOUND
        and sum(word in key or _root(word) in key for word in said.words) >= _LEAST_OWN * len(said.words)
        and all(fact.key in said.key or (fact.kind == "name" and _root(fact.key) in said.key) for fact in firm)
    ]
    return max(saying, key=lambda said: (_found(words, said.key), -len(said.text))).text if saying else clause


def _is_value(fact: Fact) -> bool:
    return fact.kind in _VALUES and not _WEEKDAY.search(fact.text)


def _content_words(text: str) -> tuple[str, ...]:
    return tuple(word for word in instruction_key(text).split("|") if word and word.replace(" ", "") not in _POINTING)


def _found(words: Sequence[str], key: str) -> float:
    """Returns the share of words that a text has; one that it has in another form counts half."""
    found = sum(1.0 if word in key else _OTHER_FORM if _root(word) in key else 0.0 for word in words)
    return found / len(words) if words else 0.0


def _root(word: str) -> str:
    """Returns the key of a word without its ending: 짧은 → 짧, restarted → restar."""
    tokens = word.split()
    if len(tokens) > 1:
        return f" {' '.join(tokens[:-1])} "
    token = tokens[0]
    return f" {token[: max(_LATIN_ROOT, len(token) - 3)]}" if len(token) > _LATIN_ROOT else word


def _runs(sentence: str) -> Iterator[Clause]:
    clauses = _CLAUSE_END.split(sentence)
    count = len(clauses)
    spans = {(first, min(count, first + length)) for first in range(count) for length in range(1, _MOST_CLAUSES + 1)}
    for first, last in sorted({*spans, (0, count)}):
        text = ", ".join(clause.strip(_TRIMMED) for clause in clauses[first:last])
        is_negated = any(clause.is_negated for clause in clauses_of(text))
        if words := _content_words(text):
            yield Clause(text, key_of(text), words, is_negated)
