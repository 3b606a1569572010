"""The user's word: what he forbids, sets as a rule, prefers and chooses, and who is who, in his own sentences."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final, Literal, NamedTuple

from langchain_core.messages import HumanMessage

from graph.core.language import own_lines, user_language
from graph.core.remembered import remembered
from graph.fold.fact_key import NOUN_END, key_of, narrow, one_of
from graph.fold.fact_noise import common_chars
from graph.fold.fact_pattern import NO_NAME, NO_VERB, OFFICE, SURNAME, TITLE
from graph.fold.fact_rule import clauses_of, instruction_key, instructions_in, sentences_of
from graph.fold.word_kind import LONGEST_SENTENCE, WordKind

_MOST_WORDS: Final = 200
_MOST_PAIRS: Final = 50
_MOST_CHARS: Final = 240
# A sentence that begins so says nothing without the one before.
_POINTS: Final = re.compile(
    r"^(?:그보다|그건|그거|그걸|그게|그것|이건|이걸|이것|저건|그쪽|그렇게|거기|여기|그날|그때|그\s|이\s|[0-9]{1,2}번|[A-Z](?:안|로|으로)"
    r"|(?i:(?:(?:ok(?:ay)?|yes|then|so|fine|also)[,.]?\s)*(?:(?:take|pick|choose|go\swith|use|leave|keep|drop|don['’]t\s\w+|never\s\w+|let['’]s\s\w+(?:\swith)?)\s)?"
    r"(?:it|them|those|these|this|that|option|plan|[A-Z]|the\s(?:first|second|third|last|latter|former|other))\b))"
)

_ROLE: Final = rf"(?:[가-힣]{{0,8}}?(?:{TITLE}|{OFFICE})(?<!씨)(?!\s(?:날|주|달|해|번)))"
_FULL: Final = (
    r"(?!오전|오후|방문|도서관|유치원|기숙사|고객사|공사장|이용자|신입생|외국인|전화기)"
    rf"(?!{NO_NAME})(?P<name>{SURNAME}[가-힣]{{2}}(?<![실과부팀반층급]))"
)
_NAME: Final = rf"(?<![가-힣]){_FULL}"
# A verb before a title names nobody: 정하니 변호사, 구해서 세무사.
_NO_ENDING: Final = (
    r"(?<!으니)(?<!하니)(?<!되니)(?<!보니)(?<!해서)(?<!어서)(?<!아서)(?<!워서)(?<!져서)(?<!와서)(?<!면서)(?<!려서)(?<!거나)(?<!다가)"
    r"(?<!든지)(?<!는지)(?<!려고)(?<!려면)(?<!하는)(?<!되는)(?<!같은)(?<!라는)(?<!에서)(?<!에게)(?<!으로)(?<!까지)(?<!부터)(?<!이나)"
)
# What notes say before a reason in brackets: 16일 제외(감사).
_NOTED: Final = one_of("""
제외 취소 결정 변경 예정 확정 방문 통화 연락 회의 상담 문의 신청 완료 보류 연기 참석 불참 불가 가능 필요 요청 승인 반려
진행 준비 점검 선택 생략 유지 중단 해지 이동 출장 면담 검토 전달 대기
""")
_IS: Final = r"(?:이?에요|예요|입니다|이?고|이?며|이?야|이?라|세요|이세요|이신|인데|이?죠)"
_WHO_LIST: Final = """
DBA SRE CEO CTO CFO COO PM PO QA HR lead head boss chief manager engineer developer designer architect analyst
scientist consultant contractor supplier vendor owner landlord landlady tenant lawyer solicitor attorney notary
accountant bookkeeper auditor adjuster broker agent doctor physician dentist surgeon nurse midwife therapist
psychologist vet pharmacist teacher tutor professor lecturer supervisor advisor adviser coach trainer mentor
headteacher principal director producer editor publisher writer author translator photographer florist caterer chef
cook baker plumber electrician builder carpenter gardener cleaner mechanic driver courier pilot officer inspector
detective judge clerk secretary assistant receptionist intern apprentice colleague coworker teammate partner client
customer sponsor contact administrator admin maintainer reviewer tester recruiter treasurer chair chairman chairwoman
chairperson organiser organizer host guest witness neighbour neighbor roommate flatmate friend wife husband spouse
girlfriend boyfriend fiancé fiancée mother father mum mom dad sister brother son daughter aunt uncle cousin nephew
niece grandmother grandfather grandma grandpa stepfather stepmother bride groom accompanist conductor organist pianist
soloist caretaker steward seller
"""
_WHO: Final = one_of(_WHO_LIST)
_WORDS: Final = r"(?:[A-Za-z][A-Za-z/&'’-]*\s){0,3}?"
_LATIN: Final = (
    r"(?P<name>[A-Z][a-zà-ÿ]+(?:[-'’][A-Z][a-zà-ÿ]+)?"
    r"(?:\s(?:[A-Z]\.|(?:van|de|von|der|bin|al|O['’])\s?)?[A-Z][a-zà-ÿ]+(?:[-'’][A-Z][a-zà-ÿ]+)?){0,2})"
)
_OURS: Final = r"(?:our|the|my|their|your|his|her|an?)"
_END: Final = r"(?![A-Za-z])(?!\s(?:team|server|portal|page|role|account|meeting|call|group|list|desk|office)\b)"
_PAIRS: Final = tuple(
    map(
        re.compile,
        (
            rf"{_NAME}{NO_VERB}{_NO_ENDING}\s?(?P<role>{_ROLE})님?{NOUN_END}",
            rf"(?<![가-힣])(?P<role>{_ROLE}(?:\s[가-힣]{{0,3}})?)\s{_FULL}(?:\s?(?:씨|님|군|양))?{NOUN_END}",
            rf"(?<![가-힣])(?!{_NOTED})(?P<name>[가-힣]{{2,4}})\s?\((?P<role>[^()\n]{{0,12}}?{_ROLE})(?![가-힣])[^()\n]{{0,30}}\)",
            rf"(?<![가-힣])(?:제|내|우리|저희)\s(?P<role>{OFFICE})\s(?P<name>[가-힣]{{2,3}}?)(?=이?에요|예요|입니다|\s?\(|이?라고|\s씨)",
            rf"{_NAME}{_NO_ENDING}(?:\s?씨|님)?(?:은|는|이|가)\s(?:[가-힣]{{1,8}}\s){{0,3}}?(?P<role>{_ROLE})님?{_IS}",
            rf"(?<![가-힣])(?P<role>(?:[가-힣]{{1,6}}\s)?{_ROLE})(?:님)?(?:은|는|이|가|:)\s{_FULL}(?:\s?(?:씨|님|{TITLE}님?))?(?={_IS}|로\s|[,.)]|$)",
            rf"{_LATIN}(?:,\s(?:who\sis\s)?|\s(?:is|was)\s)(?:now\s)?{_OURS}\s(?P<role>{_WORDS}{_WHO}){_END}",
            rf"{_LATIN}\s\((?:{_OURS}\s)?(?P<role>{_WORDS}{_WHO})(?![A-Za-z])[^()\n]{{0,40}}\)",
            rf"(?:\b(?:[Oo]ur|[Mm]y|[Tt]he|[Tt]heir|[Yy]our|[Hh]is|[Hh]er)\s|^(?=[A-Z])(?!(?:And|But|So)\s|Head\s[A-Z]))(?P<role>{_WORDS}(?i:{_WHO}))(?:,|\sis(?:\snow)?|\sis\scalled|\snamed|:)?\s{_LATIN}(?!['’]s\s[a-z]+\s(?:is|are))",
            rf"{_LATIN}\s(?:from|in|of)\s(?:the\s)?(?P<role>legal|finance|sales|marketing|support|accounting|procurement|security|operations|ops|HR|IT|compliance|(?:[a-z]+\s){{1,2}}team)(?![A-Za-z])",
        ),
    )
)


class Person(NamedTuple):
    """Someone with the role that a sentence gives him."""

    name: str
    role: str
    sentence: str


class UserWord(NamedTuple):
    """A sentence, or of a long one a clause, in which the user binds the chat or tells who someone is.

    Attributes:
        text: As written; with the sentence before it if it only points ("2번으로 할게요").
        key: Equal for the same word said again: its content words, or the name and the role.
    """

    kind: WordKind | Literal["person"]
    text: str
    key: str


@remembered
def user_words(text: str, script: str | None = None) -> tuple[UserWord, ...]:
    """Returns the user's word in a message, in order, each once; nothing of what is pasted.

    Args:
        text: The user's message.
        script: That of the session ("ko", "latin"), for lines in others are pasted; else that of the message.
    """
    own = own_lines(text, script or user_language([HumanMessage(text)]) or "latin")
    found: dict[tuple[str, str], UserWord] = {}
    for line in own.split("\n"):
        for _, word in sorted(chain(_instructions(line), _people(line)), key=lambda each: each[0]):
            found.setdefault((word.kind, word.key), word)
    return tuple(found.values())[:_MOST_WORDS]


def _instructions(line: str) -> Iterator[tuple[int, UserWord]]:
    sentences = sentences_of(line)
    for start, end, kind in instructions_in(narrow(line)):
        stated = line[start:end]
        place = bisect_left(sentences, start, key=lambda each: each[0])
        is_pointing = bool(place and _POINTS.match(stated))
        whole = f"{sentences[place - 1][1]} {stated}" if is_pointing else stated
        text = whole if len(whole) <= _MOST_CHARS else stated
        yield start, UserWord(kind, text, instruction_key(text) or key_of(text).strip())


def _people(line: str) -> Iterator[tuple[int, UserWord]]:
    for start, person in _people_of(line):
        key = f"{key_of(person.name).strip()}|{key_of(person.role).strip()}"
        yield start, UserWord("person", person.sentence, key)


def people_in(text: str) -> tuple[Person, ...]:
    """Returns who is named with a role, in order; each pair once."""
    people = (person for line in text.split("\n") for _, person in _people_of(line))
    return tuple({(person.name, person.role): person for person in people}.values())


@remembered
def _people_of(line: str) -> Sequence[tuple[int, Person]]:
    found: list[tuple[int, Person]] = []
    for start, said in sentences_of(narrow(line)):
        sentence = said[:LONGEST_SENTENCE]
        pairs = islice((match for pattern in _PAIRS for match in pattern.finditer(sentence)), _MOST_PAIRS)
        matches = sorted(pairs, key=lambda match: (match.start(), -match.end()))
        taken: list[tuple[int, int]] = []
        clauses = clauses_of(sentence) if len({match["name"] for match in matches}) > 1 else []
        for match in matches:
            span = match.span("name")
            if span not in taken and any(first < span[1] and span[0] < last for first, last in taken):
                continue
            taken += (span, match.span("role"))
            name, role = match["name"][common_chars(match["name"]) :].strip(), match["role"].strip()
            if name and role:
                # Whoever is replaced later takes nobody else out of the ledger with him.
                own = (each.text for each in clauses if name in each.text and role in each.text)
                found.append((start, Person(name, role, next(own, "") or _around(sentence, match))))
    return found


def _around(sentence: str, match: re.Match[str]) -> str:
    """Returns a sentence, or of a long one the words around a pair."""
    if len(sentence) <= _MOST_CHARS // 2:
        return sentence.rstrip(" .!?。！？~…")
    first, last = max(0, match.start() - _MOST_CHARS // 4), match.end() + _MOST_CHARS // 4
    start = sentence.rfind(" ", 0, first) + 1 if first else 0
    return sentence[start:last].rsplit(" ", 1)[0] if last < len(sentence) else sentence[start:]
