"""Finds the decisions of a summary that the user didn't make, and the people that nobody named or who swapped roles."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from graph.core.turn import text_of
from graph.fold.fact_key import key_of, keys_of, narrow
from graph.fold.fact_rule import Clause, clauses_of, option_words
from graph.fold.user_word import people_in

_SENTENCE_END: Final = re.compile(r"(?<=[.!?。])\s+|\n|;\s")
_CLAUSE_END: Final = re.compile(r"[,;]\s+|\s[—–]\s|(?<=[가-힣]고)\s|(?<=지만|는데|니까)\s|\s(?=(?:and|but|so)\s)")
_DECIDED: Final = re.compile(
    r"기로\s?(?:함|했|결정|정)|(?:로|을|를)\s(?:결정|확정|선택|정함|정했|택함)|동의(?:함|했|하[였고며])|수락|받아들[이였임]|합의(?:함|했|됨|하[였고며])|승낙"
    r"|결정\s?[:：]|(?i:\b(?:decided|chose|agreed|accepted|consented|opted|settled|approved|picked|selected|decision|went\swith|go(?:es|ing)?\swith)\b)"
)
# Somebody else's decision, a proposal, a question.
_OTHERS: Final = re.compile(
    r"(?<![가-힣])(?!사용자|본인|제가|내가|우리|저희)[가-힣]{2,8}(?:이|가|께서|측은)\s"
    r"|제안|권유|권[함고]|추천|할지"
    r"|(?i:\b(?:suggest\w*|propos\w*|recommend\w*|whether|if|they|he|she)\b"
    r"|\bthe\s(?!user\b)[a-z]+\s(?:has\s|had\s)?(?:decided|chose|agreed|accepted|approved|picked))"
)
_HEADLESS_LIST: Final = """
다시 먼저 나중 계속 우선 일단 같이 그렇게 이렇게 진행 시작 사용 작성 추가 변경 수정 확인 준비 제출 보내 선택 적용 유지
예약 결정 확정 정함 사용자 하기 쓰기 넣기 두기 가기 바꾸기 user agreed accepted consented opted settled approved
selected went goes start change add set write both
"""
_HEADLESS: Final = frozenset(key_of(word) for word in _HEADLESS_LIST.split())
_TAKES_UP: Final = re.compile(
    r"^\s{0,4}(?:네|예|넵|응|좋아요|좋습니다|그래요|그럼|그렇게|오케이|(?i:ok(?:ay)?|yes|yep|sure|fine|good|great|agreed|perfect|go\sahead|sounds\sgood|do\s(?:it|that)|please\sdo))(?![가-힣A-Za-z])"
    r"|그렇게\s?(?:해|하|진행|부탁)|말씀(?:하신)?\s?대로|제안(?:하신|대로)|(?i:\b(?:as\syou\s(?:say|suggest\w*|propos\w*)|your\s(?:suggestion|proposal))\b)"
)
_ASKS: Final = ("?", "？")
_HANGUL: Final = re.compile("[가-힣]")


def unsaid_in(text: str, messages: Sequence[AnyMessage], own: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Returns the clauses of a text with a decision or a person that is none of the user's, or nobody's.

    Args:
        messages: What the summary is of.
        own: What the user wrote himself, a text for each of his messages.
        known: All that the summariser read.
    """
    plain = narrow(text)
    found = (*_decisions(plain, messages, own, "\n".join(known)), *_strangers(plain, "\n".join(known)))
    return tuple(dict.fromkeys(found))


def _decisions(text: str, messages: Sequence[AnyMessage], own: Sequence[str], known: str) -> Iterator[str]:
    """Yields decisions whose thing others said and the user didn't, or that take another option than he did."""
    if not _DECIDED.search(text):
        return
    earlier = [text_of(message) for message in messages if isinstance(message, SystemMessage)]
    said = [clause for each in (*earlier, *own) for clause in _stated(each)]
    taken = "".join(map(key_of, _taken_up(messages, own)))
    users = "".join(clause.key for clause in said) + taken
    chosen = {option for each in (*earlier, *own) for option in option_words(each)}
    known_key = keys_of(known)
    answers = "\n".join(keys_of(text_of(message)) for message in messages if isinstance(message, AIMessage))
    for clause in _stated(text):
        if not _DECIDED.search(clause.text) or _OTHERS.search(clause.text) or clause.is_negated:
            continue
        options = set(option_words(clause.text))
        if not options.isdisjoint(chosen):
            continue  # whatever else it calls what he chose
        # 알리기로 is no thing, and what the assistant said itself isn't the user's.
        verbs = {word for word in clause.words if f"{word.replace(' ', '')}기로" in clause.text}
        things = [word for word in clause.words if not (word.startswith(" §") or word in verbs)]
        things = [word for word in things if f"{word.rstrip()} " not in _HEADLESS]
        head = things[-1] if _HANGUL.search(clause.text) and things else next(iter(things), "")
        is_other = bool(chosen and options)
        if is_other or (head and head not in users and head in known_key and clause.key not in answers):
            yield clause.text


def _stated(text: str) -> Iterator[Clause]:
    """Yields the clauses of a text that state something: no questions, nothing that is denied."""
    for sentence in _SENTENCE_END.split(narrow(text)):
        if not sentence.rstrip().endswith(_ASKS):
            yield from (clause for clause in clauses_of(sentence, _CLAUSE_END) if not clause.is_negated)


def _taken_up(messages: Sequence[AnyMessage], own: Sequence[str]) -> Iterator[str]:
    """Yields the answers that the user took up, with a word of consent or by an option that they name."""
    texts = iter(own)
    before = ""
    for message in messages:
        if isinstance(message, HumanMessage):
            said = next(texts, "")
            options = option_words(said)
            naming = [
                part.text
                for part in clauses_of(before, _CLAUSE_END)
                if not set(options).isdisjoint(option_words(part.text))
            ]
            if _TAKES_UP.search(said) or options:
                yield " ".join(naming) or before
        elif isinstance(message, AIMessage) and text_of(message).strip():
            before = text_of(message)


def _strangers(text: str, known: str) -> Iterator[str]:
    """Yields the clauses that name somebody with a role whom nobody named, or with the role of another one."""
    people = people_in(text)
    if not people:
        return
    known_key = keys_of(known)
    roles: dict[str, set[str]] = defaultdict(set)
    for person in people_in(known):
        roles[key_of(person.name)].add(_role(person.role))
    for person in people:
        name, role = key_of(person.name), _role(person.role)
        is_known = name in known_key or all(f" {part} " in known_key for part in _parts(person.name))
        others = {each for other, each_roles in roles.items() if other != name for each in each_roles}
        is_swapped = bool(roles.get(name)) and not _is_among(role, roles[name]) and _is_among(role, others)
        if not is_known or is_swapped:
            yield person.sentence


def _parts(name: str) -> Iterable[str]:
    """Returns the parts by which somebody may be named: a given name, or each word of a Latin one."""
    return key_of(name).split() if name.isascii() else [" ".join(name[1:])]


def _role(role: str) -> str:
    return key_of(role.rpartition(" ")[2])


def _is_among(role: str, roles: Iterable[str]) -> bool:
    return any(role.strip() in each or each.strip() in role for each in roles)
