"""Finds what a summary says against the user's word: rules allowed or softened, and what is none of his or nobody's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from graph.core.turn import text_of
from graph.fold.fact_find import Fact, facts_in
from graph.fold.fact_key import key_of, keys_of, narrow
from graph.fold.fact_rule import Clause, asked_clauses, clauses_of, is_about, option_words, shared_words
from graph.fold.user_word import people_in

_SENTENCE_END: Final = re.compile(r"(?<=[.!?。])\s+|\n|;\s")
_CLAUSE_END: Final = re.compile(
    r"[,;:]\s(?:(?:so|and|but)\s)?|(?<=[되않지하][고며])\s|(?<=으니|니까|아서|어서)\s"
    r"|\s(?:and|but|so)\s(?=never|don|do not|no\s|only|also)"
)
_IN_BRACKETS: Final = re.compile(r"\s?\(([^()\n]{1,80})\)")
# A sentence with one of these states no exception to what is forbidden.
_LIMITS: Final = re.compile(r"까지만|에만|만\s|(?<![A-Za-z])(?i:only|until|unless)(?![A-Za-z])")
# What alone is allowed: "query only the primary", 주 서버만.
_ALONE: Final = re.compile(
    r"(?i:\bonly\s(?:in\s|on\s|via\s|by\s|through\s|to\s)?(?:the|our|my|an?)\s(?P<word>[\w-]+(?:\s[\w-]+)?))|(?<![가-힣])(?P<noun>[가-힣]{2,12}?)만(?![가-힣])"
)
# 부가세 빼고, 차 말고: leaves something out, and forbids nothing.
_LEAVES_OUT: Final = re.compile(r"빼고|말고|없이")
_ADOPTS: Final = re.compile(
    r"쓰기로|사용(?:함|하기로|한다)|넣기로|추가(?:함|하기로)|도입|포함(?:함|하기로)"
    r"|(?i:\b(?:uses?|using|adds?|added|adopt\w*|install\w*|includ\w+|overwr\w+|rewr\w+|(?:is|are)\s(?:allowed|fine|ok))\b)"
)
_POINTS: Final = re.compile(r"(?i:\b(?:it|them|these|those)\b)|(?<![가-힣])(?:그것|이것|그걸|이걸|그건|이건)")
_SOFT: Final = re.compile(
    r"되도록|가급적|웬만하면|웬만해선|가능하면|가능한\s?한|될\s?수\s?있으면|(?:면|것이|게|편이)\s?(?:더\s)?(?:좋|낫|바람직)|권장|지양|자제|원칙적|대체로"
    r"|피하는\s?(?:게|편|쪽)|선호|급하면|필요하면|필요\s?시|예외|(?:경우|상황)에\s?따라|당분간|일단은|부담스러|꺼[리려림]|싶어\s?하지|일부만?\s"
    r"|(?i:\b(?:should(?:n['’]t)?|ideally|preferably|(?:if|where|when|as\sfar\sas)\s(?:possible|needed|necessary|urgent)|(?:rather|better)\snot"
    r"|tr(?:y|ies|ied|ying)\s(?:not\s)?to|usually|generally|normally|mostly|sometimes|might|unless|except|for\snow|reluctan\w+|hesita\w+"
    r"|prefers?\s(?:not|no|to|that)|discouraged|minimi[sz]\w+|would\slike)\b)"
)
_UNTIL: Final = re.compile(
    r"(?i:\b(?:until|till|before|after)\s(?:the\s)?(?P<when>[\w:.-]{1,20}(?:\s[\w:.-]{1,20})?))"
    r"|(?<![0-9가-힣])(?P<ko>[0-9가-힣]{1,10}?(?:\s[0-9가-힣]{1,6}?)?)\s?(?:까지|전까지|이후)(?=[는만도]?(?![가-힣]))"
)
# Turns what the user chose, prefers or wants as a rule into its opposite.
_DECLINES: Final = re.compile(
    r"(?:안\s[가-힣]{1,4}|지\s?않)기로|(?:선호|좋아|원)하지\s?않|쓰지\s?않"
    r"|(?i:^not\b|\b(?:decided|chose|agreed)\s(?:not|against)\b|\b(?:does|do)(?:n['’]t|\snot)\s(?:prefer|like|want)\b"
    r"|\b(?:must|may|should)\snot\b|\bnever\b)"
)
_THEN: Final = re.compile(r"그때|그\s?(?:전|뒤|후|날)|당분간|(?i:\b(?:then|that day|that date|deadline)\b)")
_ASKS: Final = ("?", "？")
_LEAST_WORDS: Final = 2
_DENYING: Final = ("negation", "choice")
_WANTED: Final = ("rule", "choice", "preference")
_BINDING: Final = ("negation", *_WANTED)
_MOST_SAID: Final = 60
_MOST_CLAUSES: Final = 1_000


class _Said(NamedTuple):
    """A clause that the user asks for, the sentence that says it, and all that he says behind it."""

    asked: Clause
    fact: Fact
    later: str


def reversed_in(text: str, said: Sequence[str]) -> tuple[str, ...]:
    """Returns the sentences of a text that permit or state what a user's prohibition forbids.

    A prohibition counts if no clause of the text holds it, and no later sentence of the user permits it. A sentence
    with a word of permission needs half of its words; one that merely states it needs all of them.
    """
    found: dict[str, None] = {}
    denied = [each for each in _said(said) if each.fact.kind in _DENYING and each.asked.is_negated]
    clauses = list(_clauses(text)) if denied else []
    for asked, _, later in denied:
        reversing = [each.text for each in clauses if _reverses(asked, each)]
        is_held = any(each.is_negated and is_about(asked, [each]) and not _is_alone(asked, each) for each in clauses)
        if reversing and not is_held and not any(_lifts(each, asked) for each in _clauses(later)):
            found.update(dict.fromkeys(reversing))
    return tuple(found)


def softened_in(text: str, said: Sequence[str]) -> tuple[str, ...]:
    """Returns the clauses of a text that say a user's rule or prohibition with less force, or decline what he wants.

    "Should" for "must", "rather not" for "never", an exception that he didn't make, "until Friday" dropped; "not A" for
    "plan A". Not if another clause says it as he did, nor what he softened or declined himself.
    """
    found: dict[str, None] = {}
    binding = _said(said)
    firm = [each for each in binding if each.fact.kind in ("negation", "rule") and not _SOFT.search(each.fact.text)]
    wanted = [each for each in binding if each.fact.kind in _WANTED and not (each.asked.is_negated or each.asked.drops)]
    sentences = [each for each in _SENTENCE_END.split(narrow(text)) if each.strip()] if binding else []
    split = ((index, part) for index, each in enumerate(sentences) for part in clauses_of(each, _CLAUSE_END))
    parts = list(islice(split, _MOST_CLAUSES))
    for asked, _, later in firm:
        about = [(index, part) for index, part in parts if is_about(asked, [part])]
        holding = [(index, part) for index, part in about if part.is_negated or not asked.is_negated]
        soft = [part.text for _, part in about if _SOFT.search(part.text)]
        if soft and len(soft) == len(about) and not _is_softened(asked, later):
            found.update(dict.fromkeys(soft))
        elif holding and not soft and (limit := _limit_of(asked.text)):
            near = " ".join(" ".join(sentences[max(0, index - 1) : index + 2]) for index, _ in holding)
            if limit not in key_of(near) and not _THEN.search(near):
                found[holding[0][1].text] = None
    for asked, _, later in wanted:
        declining = [part.text for _, part in parts if is_about(asked, [part])]
        if declining and all(map(_DECLINES.search, declining)) and not _is_changed(asked, later):
            found.update(dict.fromkeys(declining))
    return tuple(found)


def _is_changed(asked: Clause, later: str) -> bool:
    return any((part.is_negated or part.drops) and shared_words(asked, part) for part in clauses_of(later))


def _is_softened(asked: Clause, later: str) -> bool:
    return any(_SOFT.search(part.text) and shared_words(asked, part) for part in clauses_of(later))


def _limit_of(rule: str) -> str:
    """Returns the key of a date until which a rule holds, "" without one."""
    match = _UNTIL.search(rule)
    when = (match["when"] or match["ko"]) if match else ""
    dates = [fact for fact in facts_in(when) if fact.kind == "date"]
    return dates[0].key if dates else ""


def _reverses(asked: Clause, clause: Clause) -> bool:
    if _is_alone(asked, clause):
        return is_about(asked, [clause])
    if clause.is_negated or clause.permits:
        return not clause.is_negated and is_about(asked, [clause])
    found, words = len(shared_words(asked, clause)), len(asked.words)
    least = 1 if _ADOPTS.search(clause.text) else _LEAST_WORDS
    return found == words >= least and not (_LEAVES_OUT.search(asked.text) or _UNTIL.search(asked.text))


def _is_alone(asked: Clause, clause: Clause) -> bool:
    """Returns True if a clause allows only what is forbidden."""
    alone = [key_of(match["word"] or match["noun"]) for match in _ALONE.finditer(clause.text)]
    return any(word in key for key in alone for word in asked.words)


def _lifts(clause: Clause, asked: Clause) -> bool:
    return clause.permits and not clause.is_negated and bool(shared_words(asked, clause))


def _said(said: Sequence[str]) -> list[_Said]:
    facts = ((index, fact) for index, text in enumerate(said) for fact in facts_in(text) if fact.kind in _BINDING)
    found: list[_Said] = []
    for index, fact in islice(facts, _MOST_SAID):
        later = "\n".join([said[index].partition(fact.text)[2], *said[index + 1 :]])
        found += (_Said(clause, fact, later) for clause in asked_clauses(fact.text))
    return found


def _clauses(text: str) -> Iterator[Clause]:
    """Yields the clauses of a text; questions and limits deny, and a negation denies its sentence but what permits.

    One that only points ("overwrite them too") stands with the one before it.
    """
    for sentence in _SENTENCE_END.split(narrow(text)):
        inner = [part for match in _IN_BRACKETS.finditer(sentence) for part in clauses_of(match[1], _CLAUSE_END)]
        is_asked, parts = sentence.rstrip().endswith(_ASKS), clauses_of(_IN_BRACKETS.sub("", sentence), _CLAUSE_END)
        parts = [
            part._replace(key=before.key + part.key) if before and _POINTS.search(part.text) else part
            for before, part in zip([None, *parts], parts, strict=False)
        ]
        is_denied = is_asked or bool(_LIMITS.search(sentence)) or any(part.is_negated for part in (*parts, *inner))
        for part in (*parts, *inner):
            is_own = is_asked or part.is_negated or bool(_LIMITS.search(part.text))
            yield part._replace(is_negated=is_own if part.permits else is_denied)


_STATED_END: Final = re.compile(r"[,;]\s+|\s[—–]\s|(?<=[가-힣]고)\s|(?<=지만|는데|니까)\s|\s(?=(?:and|but|so)\s)")
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
            yield from (clause for clause in clauses_of(sentence, _STATED_END) if not clause.is_negated)


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
                for part in clauses_of(before, _STATED_END)
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
