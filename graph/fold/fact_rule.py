"""Finds what a user forbids or asks for, and whether another text says the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, Literal, NamedTuple

from graph.fold.fact_key import key_of, narrow, strip_particle

_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?。！？])(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bSt\.)(?<!\bMrs\.)(?<!e\.g\.)(?<!i\.e\.)\s+"
)
_MAX_CHARS: Final = 120
_MOST_CLAUSES: Final = 8
_SHORT_CHARS: Final = 30
_LEAST_ROOT: Final = 4
_KNOWN_WORDS: Final = 4_096
_KNOWN_INSTRUCTIONS: Final = 1_024

# Where an English order begins; elsewhere "always" and "never" are mostly narrative.
_ORDER: Final = r"(?:^|[,;:—–]\s|\b(?:please|and|but|so)\s)"
_NO_FORBIDDING: Final = r"(?! worry| forget| get me| stress| mind\b| bother)"
# "No tables" forbids; "No test today" and "No reply yet" tell.
_NO_ORDER: Final = (
    r"^no\s(?!wait|one|matter|problem|worries|idea|way|doubt|luck|news|need|longer|rush|hurry|wonder|surprise|thanks?\b)"
    r"(?![^.!?\n]{0,60}\b(?:today|tonight|yet|now|so\sfar|tomorrow|yesterday|since|this|was|were|is|are|has|have|had|found"
    r"|left|here|there)\b)\w"
)
# 1월 24일은 안 돼요, 안 되겠어요: who has no time forbids nothing.
_NO_TIME: Final = r"(?<![0-9]일[은는도])(?<![0-9]시[은는도])(?<![0-9]분[은는도])(?<![0-9]주[은는도])"
# 1월 10일 말고 1월 3일로 당겨 주세요: a change.
_NO_CHANGE: Final = (
    r"(?<![0-9][일시분원개명번호층])(?<![0-9][일시분원개명번호층]\s)(?<!지\s)말고\s"
    r"(?![^.!?\n]{0,40}?(?:[0-9]|당겨|당기|바꿔|바꾸|변경|옮겨|옮기|미뤄|미루|수정|고쳐|교체|정정))"
)
_ASKED_FOR: Final = r"[^.!?\n]{0,40}?(?:주세요|줘|해요|하세요|부탁|주십시오|바랍|합시다|해라|좋겠)"
_FORBIDS: Final = re.compile(
    r"절대(?:로)?[^.!?\n]{0,40}?(?:안|못|말|마|않|없|금지|싫|빼)"
    r"|(?<!까)지\s?(?:마(?:세요|십시오|시[고길기]?|[라요셔]|[라자]고)?(?=[\s.,!?~…)\"'’”]|$)"
    r"|말(?:아|고|것|기|자|라| 것))"
    rf"|(?:은|는|도|면|선|건){_NO_TIME}\s(?:절대(?:로)?\s)?안\s?(?:돼|되(?!겠|었)|됩)"
    r"|(?:하|되|쓰|가|넣)면\s?안"
    r"|(?:[은는을를도]\s(?:[^\s.!?]{1,12}\s){0,2}|(?<!에서)\s)빼\s?(?:주|고|줘|달|라)"
    r"|(?<![가-힣])(?:제외|금지|사양|불가)(?:하|해|로|입|예|이|[.!?]|$)"
    r"|알레르기|알러지|못\s?먹|안\s?먹|(?<![가-힣])(?:피해|삼가)\s?(?:주|줘)|그만\s?(?:해|하)"
    r"|(?<![가-힣])못\s(?:와|옵니|온[다대]|오[세시는고]|올\s|가[요고는]|갑니|간[다대]|나[와가]요|들어[와가]요|참석)"
    r"|(?<![가-힣])못\s?(?:드[세시]|마셔|마시)"
    r"|없이는?\s[^.!?\n]{0,12}?(?:못\s?[하쓰내씁합]|안\s?(?:돼|되|됩)|쓸\s수\s없|할\s수\s없|불가)"
    r"|(?<![가-힣])못\s?하게\s?(?:해요|합니다|하세요|돼|되|해\s?주)"
    r"|(?:참석|출근|참여|이용|방문)(?:을|은|는)?\s?(?:못\s?(?:해|합|하[세시는고]|한[다대])|할\s수\s없)"
    rf"|(?:없이|않게|않도록|않았으면)\s{_ASKED_FOR}|{_NO_CHANGE}{_ASKED_FOR}"
    rf"|(?i:{_ORDER}(?:(?:never|avoid|leave out|stop|no more|(?:do not|don['’]t){_NO_FORBIDDING})\s\w)"
    r"|\b(?:must never|must not|mustn['’]t|not allowed|forbidden|allergic|under no circumstances|no longer allowed)\b"
    rf"|\b(?:you|we|they|it)\sshould(?:n['’]t|\snot|\snever)\s|{_NO_ORDER}"
    r"|\bI\s(?:don['’]t|do not|can['’]t|cannot)\s(?:want\s(?!to)|like\s(?!(?:the|this|that|it|how)\b)|eat\b|drink\b)"
    r"|\b(?:can['’]t|cannot)\s(?:come|attend|make\sit|join|travel|eat|drink)\b(?!\s(?:up|work|across|out)\b)"
    r"|\b(?:can['’]t|cannot|may\snot)\s[^.!?\n]{1,40}?\bwithout\s\w"
    r"|\bwithout\s\w+[^.!?\n]{0,40}?\bplease\b)"
)
_APPROVAL: Final = r"(?:승인|결재|허락|동의|확인|검토)"
_RULES: Final = re.compile(
    r"(?<![가-힣])(?:앞으로(?:는|도)?|(?:이제|지금|다음|오늘)부터(?:는|도)?|항상|언제나|반드시|매번|꼭)\s[^.!?\n]{0,60}?(?:주세요|줘|해요|하세요|부탁|주십시오|바랍|합니다|해야|할\s?것|답해|써)"
    rf"|(?:마다|모든|먼저|전에)\s[^.!?\n]{{0,40}}?{_APPROVAL}[^.!?\n]{{0,12}}?(?:받아야|있어야|해야|필요)"
    r"|(?:승인|결재|허락|동의)[을를이가도]?\s(?:꼭\s)?(?:받아야|있어야|필요)"
    r"|(?:통해|통하여|거쳐)서?만\s[^.!?\n]{0,20}?(?:하|합|해|주|보내|연락|전달|받)"
    rf"|(?:{_APPROVAL}|허가|접근|입력|출입)[은는]\s[^.!?\n]{{1,30}}?만\s?(?:하[고며세]|할|합|해|가능|됩|돼|되)"
    rf"|(?i:\b(?:from (?:now|here|this point|today) on(?:wards?)?|going forward|henceforth)\b"
    rf"|{_ORDER}(?:always|make sure|be sure to|every time you)\s(?!\w+ing\b)"
    r"|\b(?:contact|call|reach|talk\sto|write\sto|e?mail|message)\s[^.!?\n]{1,40}?\bonly\s(?:through|via|by)\b"
    rf"|{_ORDER}only\s[^.!?\n]{{1,40}}?\s(?:may|can|should|must|(?:is|are)\sallowed)\b"
    r"|(?<!\bI\s)\b(?:must|needs?\sto|has\sto|have\sto)\s(?:also\s|always\s|first\s)?(?:be\s)?"
    r"(?:approve|sign|confirm|review|check|authori[sz]e|clear|told|asked|copied)\w{0,3}\b[^.!?\n]{0,60}?"
    r"\b(?:every|each|all|any|before|first)\b)"
)
# A question about a prohibition forbids nothing: "what did I say must never be used?".
_ASKS: Final = re.compile(
    r"(?:라고|다고|자고|하게)\s?(?:말씀)?(?:한|했|하신|하셨|말한|말했)[^.!?。！？\n]{0,60}[?？]$"
    r"|(?i:^(?:(?:and|so|but|exactly)\s)?(?:which|what|who|why)\b[^\n]*[?？]$)"
)
_FIRST_PERSON: Final = re.compile(r"알레르기|알러지|못\s?먹|안\s?먹|(?i:allergic|\bI\s)")
# Wording of summaries. In a user's message these words alone make no fact: "never" may be narrative there.
_TOLD: Final = re.compile(
    r"절대|금지|제외|항상|언제나|반드시|무조건|앞으로는|규칙|안\s?(?:돼|되|됩|된|됨)|(?<![가-힣])안 [가-힣]"
    r"|지\s?(?:마(?:세요|십시오|라|요|시고|셔)?(?=[\s.,!~…]|$)|말(?:아|고|자|것|기|라)|않기|않아야)"
    r"|(?i:(?:^|[,;:.!—-]\s*|\b(?:please|and|but|so)\s+)(?:just\s+)?(?:do not|don['’]t)\s"
    r"|(?:^|[;:)]\s+|\b(?:please|and|but|you)\s+)(?:never|always|avoid)\s|\bat all times\b"
    r"|\buser\b[^.!?\n]{0,40}?\b(?:never|always|not to|does not|doesn['’]t|avoid|avoids|forbids)\b"
    r"|\bmust(?:n['’]t)?\s(?!be\b|have\b)|\b(?:shall|should)(?:\s+not|n['’]t)\s(?!be\b)"
    r"|\b(?:not allowed|forbid(?:den|s)?|forbade|prohibit(?:ed|s)?|under no circumstances)\b"
    r"|\b(?:i|we)\s+(?:do not|don['’]t|never)\s+(?:want|like|eat|drink|use|accept|allow)\b)"
)
_NEGATED: Final = re.compile(
    r"않|못|금지|제외|싫|없|불가|불참|피하|피할|피해|아니|아닌|안\s?(?:돼|되|됩|된|됨|먹|씀|쓰|함|하|할|해|타|감|가)|(?<![가-힣])안\s|지\s?[마말]"
    r"|말\s?것|말고|(?<![가-힣])[빼뺀뺄]|사양|알레르기|알러지|그만|삼가|거부|반대"
    r"|(?i:\b(?:no|not|never|nobody|nothing|without|avoid\w*|exclud\w*|forb\w*|ban(?:ned|s)?|prohibit\w*|except|skip|allerg\w*|hate\w*"
    r"|cannot|unable|none|refus\w*|against|leave out|instead of)\b|n['’]t\b)"
)
_HANGUL: Final = re.compile(r"[가-힣]+")
_VERB_END: Final = re.compile(r"(?<=[가-힣]{2})(?:하지|하게|하고|하면|해서|해야|하는|하기|할|한|님|지|게|서|면)$")
_NO_CONTENT_LIST: Final = """
절대 절대로 앞으로 앞으로는 앞으로도 항상 언제나 반드시 매번 꼭 그냥 그리고 그런데 제발 정말 아니 그건 그것
이건 이것 저는 저희 제가 나는 내가 우리 아 음 건 것 거 게 수 할 한 할게요 되고 되는 되면 된 됨 함 함께 좀 더
다 때 주세요 해 줘 주고 주십시오 돼요 돼 됩니다 되요 안 못 마 마세요 말아 말고 말아줘 말아주세요 빼 빼고
빼주세요 빼줘 있어요 있어 없이 하지 하면 금지 제외 알레르기 알러지 m s re ve ll d a an the to of in on at and
or but for with is are be do don t not no never must mustn should shouldn please always i me my you your it
this that from now every time make sure any so can avoid want like use using used 때마다 받아야 해야 필요
있어야 돼서 주실 않게 않도록 않고 않음 없음 한가지 한두가지 가지 두가지 하나 하나만 지켜 지켜줘 지켜주세요 기억 기억해
있 있는 있으니 되 은 는 명 등 든 어떤 모든
명심 부탁 부탁해 부탁해요 부탁드려요 부탁드립니다 thing things mind note keep remember following here on
"""
_NO_CONTENT: Final = frozenset(_NO_CONTENT_LIST.split())


_ONLY: Final = re.compile(r"(?:[가-힣]만|밖에)(?![가-힣])|(?i:\bonly\b|\bjust\b)")
# What allows the forbidden after all.
_PERMITS: Final = re.compile(
    r"괜찮(?!지)|[가-힣]도\s(?:됨|돼|된다|됩|되[고며는]|좋|무방)|(?<!불)가능(?!하지|\s?(?:하|한)?\s?[않안])|허용(?!하지|\s?안|되지)"
    r"|상관\s?없|문제\s?없|무방|금지[^.!?\n]{0,8}?(?:해제|풀|철회|취소|아니|아님)"
    r"|(?i:\b(?:is|are|it['’]s|was|were)\s(?:now\s|all\s)?(?:fine|ok|okay|allowed|permitted|possible)\b|\b(?:may|can)\snow\b"
    r"|\bno\slonger\s(?:forbidden|banned|prohibited)\b|\bno(?:t\sa)?\sproblem\b|\bdon['’]t\smind\b|\bfeel\sfree\b)"
)
# The same, unless the clause denies something.
_MAY: Final = re.compile(
    r"괜찮|[가-힣]도\s?(?:됨|돼|된다|됩|되[고며는]|좋)"
    r"|(?<![A-Za-z])(?i:may|can|could|allowed|permitted|fine|okay|ok|acceptable|free to)(?![A-Za-z'’])"
)
_NO_PROBLEM: Final = re.compile(r"(?:상관|문제)\s?없|(?i:\bno\sproblem\b)")
_PAUSE: Final = re.compile(r"[,;:]\s+")
_CLAUSE: Final = re.compile(
    r"[,;:]\s+|\s[—–]\s|(?<=[가-힣]고)\s|(?<=지만|는데|니까|으니|아서|어서)\s|\s(?=(?:and|but|so|because)\s)",
    re.IGNORECASE,
)
_IN_BRACKETS: Final = re.compile(r"\([^()\n]{1,80}\)")
_LINK: Final = re.compile(r"^(?:and|but|so|그리고|그런데|그러니까|다만)\s", re.IGNORECASE)
_LATIN_END: Final = re.compile(r"(?:(?<=[a-z]{4})(?:ings?|ed|es|ally|al|ly|e)|(?<=[a-z]{3})s)$")
_KOREAN_END: Final = re.compile(r"(?<=[가-힣])\s(?:지|면|고|게|어|아|은|는|도)$")


class Clause(NamedTuple):
    """A part of a sentence between pauses.

    Attributes:
        words: Its content words, as keys without their endings.
        permits: True if it allows something.
    """

    text: str
    key: str
    words: tuple[str, ...]
    is_negated: bool
    permits: bool = False


def instructions_in(line: str) -> Iterator[tuple[int, int, Literal["negation", "rule"]]]:
    """Yields start, end and kind of each sentence of a line that forbids something or sets a lasting rule.

    A sentence longer than 120 characters gives the clauses of the matched words, or stretches around them. One without
    a content word ("한 가지 꼭 지켜 주세요") says what follows, and gives none.
    """
    for start, end in _split(_SENTENCE_END, line):
        sentence = line[start:end]
        forbidden = _FORBIDS.search(sentence)
        found = forbidden or _RULES.search(sentence)
        if found is None or (_ASKS.search(sentence) and not _FIRST_PERSON.search(found.group())):
            continue
        kind: Literal["negation", "rule"] = "negation" if forbidden else "rule"
        spans = [(0, end - start)]
        if end - start > _MAX_CHARS:
            spans = _clauses_of(sentence, _FORBIDS if forbidden else _RULES)
        for first, last in spans:
            stated = sentence[first:last].rstrip(" .!?。！？~…")
            if len(stated) > _SHORT_CHARS or _content_words(narrow(stated)):
                yield start + first, start + first + len(stated), kind


def is_rule(sentence: str) -> bool:
    """Returns True if a sentence forbids something or sets a rule, in a user's or a summary's wording."""
    return any(pattern.search(sentence) for pattern in (_FORBIDS, _RULES, _TOLD))


def instruction_key(sentence: str) -> str:
    """Returns the key of an instruction: the keys of its content words joined by "|"; "" without content words."""
    return "|".join(_content_words(narrow(sentence)))


def _content_words(plain: str) -> list[str]:
    words = dict.fromkeys(map(_key_of_word, _HANGUL.findall(plain)))
    others = dict.fromkeys(
        f" {token} " for token in key_of(plain).split() if token.isalnum() and not _HANGUL.match(token)
    )
    return [word for word in [*words, *others] if word.strip() and word.strip() not in _NO_CONTENT]


def clauses_of(line: str, ends: re.Pattern[str] = _CLAUSE) -> list[Clause]:
    """Returns the clauses of a line; a negation without content ("…, 절대 안 됨") gives the sentence before it, too."""
    plain = narrow(line)
    found: list[Clause] = []
    for start, end in _split(_SENTENCE_END, plain):
        for first, last in _split(ends, plain[start:end]):
            clause = _clause(plain[start + first : start + last])
            if clause.is_negated and not clause.words:
                clause = _clause(plain[max(start, start + last - _MAX_CHARS) : start + last])
            found.append(clause)
    return found


def holds_instruction(instruction: str, clauses: Sequence[Clause], *, is_negated: bool) -> bool:
    """Returns True if a text has each clause of an instruction that asks for something.

    A clause is there if one of the text, or one with those beside it, has at least half of its content words; of a
    prohibition, one that is negated and doesn't allow it after all ("쉬어도 됨").
    """
    asked = asked_clauses(instruction)
    if not asked:
        return False
    must_negate = any(clause.is_negated for clause in asked)
    return all(
        _has_clause(clause, clauses, is_negated=is_negated and (clause.is_negated or not must_negate))
        for clause in asked
    )


def _has_clause(asked: Clause, clauses: Sequence[Clause], *, is_negated: bool) -> bool:
    for index, clause in enumerate(clauses):
        if is_negated and (clause.permits or not clause.is_negated):
            continue
        own = shared_words(asked, clause)
        if 2 * len(own) >= len(asked.words):
            return True
        beside = (*clauses[max(0, index - 1) : index], *clauses[index + 1 : index + 2])
        if own and 2 * len(own.union(*(shared_words(asked, each) for each in beside if not each.permits))) >= len(
            asked.words
        ):
            return True
    return False


def shared_words(asked: Clause, clause: Clause) -> set[str]:
    return {word for word in asked.words if word in clause.key}


@lru_cache(maxsize=_KNOWN_INSTRUCTIONS)
def asked_clauses(instruction: str) -> tuple[Clause, ...]:
    """Returns the clauses of an instruction that ask for something; all if none does or those have no content."""
    plain = narrow(instruction)
    without_reasons = _IN_BRACKETS.sub(" ", plain)
    plain = without_reasons if _content_words(without_reasons) else plain
    parts = [_LINK.sub("", plain[start:end]) for start, end in _split(_CLAUSE, plain)]
    asking = [_clause(part) for part in parts if any(each.search(part) for each in (_FORBIDS, _RULES, _ONLY))]
    asked = tuple(clause for clause in asking if clause.words)
    whole = _clause(plain)
    return asked or ((whole,) if whole.words else ())


@lru_cache(maxsize=_KNOWN_WORDS)
def _clause(text: str) -> Clause:
    plain = _NO_PROBLEM.sub(" ", text)
    is_negated = bool(_NEGATED.search(plain) or _FORBIDS.search(plain))
    permits = bool(_PERMITS.search(text) or (not is_negated and _MAY.search(text)))
    return Clause(text.strip(" .-*•"), key_of(text), tuple(map(_root, _content_words(text))), is_negated, permits)


def _root(word: str) -> str:
    """Returns the key of a word with any ending."""
    word = word.strip()
    if not word.isascii():
        return f" {_KOREAN_END.sub('', word)} "
    root = _LATIN_END.sub("", word)
    return f" {root}" if root != word or len(root) >= _LEAST_ROOT else f" {root} "


def _split(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yields where the parts between matches begin and end, without the spaces around them."""
    ends = ((match.start(), match.end()) for match in pattern.finditer(text))
    start = 0
    for end, following in (*ends, (len(text), 0)):
        part = text[start:end]
        if part.strip():
            yield end - len(part.lstrip()), start + len(part.rstrip())
        start = following


def _clauses_of(sentence: str, pattern: re.Pattern[str]) -> list[tuple[int, int]]:
    """Returns where the clauses of the first matches begin and end, none within another."""
    spans: list[tuple[int, int]] = []
    for found in islice(pattern.finditer(sentence), _MOST_CLAUSES):
        first, last = _clause_around(sentence, found)
        if not spans or first >= spans[-1][1]:
            spans.append((first, last))
    return spans


def _clause_around(sentence: str, found: re.Match[str]) -> tuple[int, int]:
    """Returns where the clause of an instruction begins and ends, in a sentence that is too long to be named whole."""
    place = found.start() + len(found[0]) - len(found[0].lstrip(",;: "))
    for pattern in (_PAUSE, _CLAUSE):
        spans = list(_split(pattern, sentence))
        index = next((index for index, (_, end) in enumerate(spans) if place < end), len(spans) - 1)
        start, end = spans[index]
        if index and not _content_words(sentence[start:end]):
            start = spans[index - 1][0]
        link = _LINK.match(sentence[start:end])
        start += link.end() if link else 0
        if end - start <= _MAX_CHARS:
            return start, end
    return max(0, place - _MAX_CHARS // 2), min(len(sentence), place + _MAX_CHARS // 2)


@lru_cache(maxsize=_KNOWN_WORDS)
def _key_of_word(word: str) -> str:
    return key_of(_stem(word))


def _stem(word: str) -> str:
    if word in _NO_CONTENT or word[0] in "않못말":
        return ""
    return strip_particle(_VERB_END.sub("", word))
