"""Finds what a user forbids or asks for, and whether another text says the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from graph.fold.fact_key import key_of, narrow, strip_particle

_SENTENCE_END: Final = re.compile(r"(?<=[.!?。！？])\s+")
_MAX_CHARS: Final = 120
_KNOWN_WORDS: Final = 4_096

# Where an English order begins; elsewhere "always" and "never" are mostly narrative.
_ORDER: Final = r"(?:^|[,;:]\s|\b(?:please|and|but|so)\s)"
_FORBIDS: Final = re.compile(
    r"절대(?:로)?[^.!?\n]{0,40}?(?:안|못|말|마|않|없|금지|싫|빼)"
    r"|지\s?(?:마(?![가-힣]{0,12}(?:련|음))|말(?:아|고|것|기|자|라| 것))"
    r"|(?:은|는|도|면|선|건)\s(?:절대(?:로)?\s)?안\s?(?:돼|되|됩)|(?:하|되|쓰|가|넣)면\s?안"
    r"|(?<![가-힣])빼\s?(?:주|고|줘|달|라)|(?<![가-힣])(?:제외|금지|사양|불가)(?:하|해|로|입|예|이|[.!?]|$)"
    r"|알레르기|알러지|못\s?먹|안\s?먹|(?<![가-힣])(?:피해|삼가)\s?(?:주|줘)|그만\s?(?:해|하)"
    r"|(?:없이|말고|않게|않도록|않았으면)\s[^.!?\n]{0,40}?(?:주세요|줘|해요|하세요|부탁|주십시오|바랍|합시다|해라|좋겠)"
    rf"|(?i:{_ORDER}(?:(?:never|avoid|leave out|stop|no more|(?:do not|don['’]t)(?! worry| forget))\s\w)"
    r"|\b(?:must never|must not|mustn['’]t|not allowed|forbidden|allergic|under no circumstances|no longer allowed)\b"
    r"|\b(?:you|we|they|it)\sshould(?:n['’]t|\snot|\snever)\s|^no\s(?!one|matter|problem|worries|idea|way|doubt)\w"
    r"|\bI\s(?:don['’]t|do not|can['’]t|cannot)\s(?:want\s(?!to)|like|eat|drink)\b"
    r"|\bwithout\s\w+[^.!?\n]{0,40}?\bplease\b)"
)
_RULES: Final = re.compile(
    r"(?<![가-힣])(?:앞으로(?:는|도)?|항상|언제나|반드시|매번|꼭)\s[^.!?\n]{0,60}?(?:주세요|줘|해요|하세요|부탁|주십시오|바랍|합니다|해야|할\s?것|답해|써)"
    rf"|(?i:\bfrom now on\b|{_ORDER}(?:always|make sure|be sure to|every time you)\s(?!\w+ing\b))"
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
    r"않|못|금지|제외|싫|없|불가|피하|피할|피해|아니|아닌|안\s?(?:돼|되|됩|된|됨|먹|씀|쓰|함|하|할|해|타|감|가)|(?<![가-힣])안\s|지\s?[마말]"
    r"|말\s?것|말고|(?<![가-힣])[빼뺀뺄]|사양|알레르기|알러지|그만|삼가|거부|반대"
    r"|(?i:\b(?:no|not|never|without|avoid\w*|exclud\w*|forb\w*|ban(?:ned|s)?|prohibit\w*|except|skip|allerg\w*|hate\w*"
    r"|cannot|none|refus\w*|against|leave out|instead of)\b|n['’]t\b)"
)
_HANGUL: Final = re.compile(r"[가-힣]+")
_VERB_END: Final = re.compile(r"(?<=[가-힣]{2})(?:하지|하게|하고|하면|해서|하는|하기|지|게|서|면)$")
_NO_CONTENT_LIST: Final = """
절대 절대로 앞으로 앞으로는 앞으로도 항상 언제나 반드시 매번 꼭 그냥 그리고 그런데 제발 정말 아니 그건 그것 이건 이것
저는 제가 나는 내가 우리 주세요 해 줘 주고 주십시오 돼요 돼 됩니다 되요 안 못 마 마세요 말아 말고 말아줘 말아주세요 빼
빼고 빼주세요 빼줘 있어요 있어 없이 하지 하면 금지 제외 알레르기 알러지 a an the to of in on at and or but for with is
are be do don t not no never must mustn should shouldn please always i me my you your it this that from now every time
make sure any so can avoid want like use using used
"""
_NO_CONTENT: Final = frozenset(_NO_CONTENT_LIST.split())


class SummarySentence(NamedTuple):
    """A sentence that an instruction is compared with: its key, and whether it is negated."""

    key: str
    is_negated: bool


def instructions_in(line: str) -> Iterator[tuple[int, int, Literal["negation", "rule"]]]:
    """Yields start, end and kind of each sentence of a line that forbids something or sets a lasting rule.

    A sentence longer than 120 characters gives the stretch around the matched words.
    """
    for start, end in _sentences(line):
        sentence = line[start:end]
        forbidden = _FORBIDS.search(sentence)
        found = forbidden or _RULES.search(sentence)
        if found is None or (_ASKS.search(sentence) and not _FIRST_PERSON.search(found.group())):
            continue
        first, last = start, end
        if end - start > _MAX_CHARS:
            middle = start + found.start()
            first, last = max(start, middle - _MAX_CHARS // 2), min(end, middle + _MAX_CHARS // 2)
        yield first, first + len(line[first:last].rstrip(" .!?。！？~…")), "negation" if forbidden else "rule"


def is_rule(sentence: str) -> bool:
    """Returns True if a sentence forbids something or sets a rule, in a user's or a summary's wording."""
    return any(pattern.search(sentence) for pattern in (_FORBIDS, _RULES, _TOLD))


def instruction_key(sentence: str) -> str:
    """Returns the key of an instruction: the keys of its content words joined by "|"; "" without content words."""
    plain = narrow(sentence)
    words = dict.fromkeys(map(_key_of_word, _HANGUL.findall(plain)))
    others = dict.fromkeys(
        f" {token} " for token in key_of(plain).split() if token.isalnum() and not _HANGUL.match(token)
    )
    return "|".join(word for word in [*words, *others] if word.strip() and word.strip() not in _NO_CONTENT)


def summary_sentences(line: str) -> Iterator[SummarySentence]:
    plain = narrow(line)
    for start, end in _sentences(plain):
        sentence = plain[start:end]
        yield SummarySentence(key_of(sentence), bool(_NEGATED.search(sentence) or _FORBIDS.search(sentence)))


def holds_instruction(key: str, sentences: Iterable[SummarySentence], *, is_negated: bool) -> bool:
    """Returns True if a sentence has at least half of an instruction's words and, if required, is negated."""
    words = key.split("|")
    return any(
        2 * sum(word in sentence.key for word in words) >= len(words)
        for sentence in sentences
        if sentence.is_negated or not is_negated
    )


def _sentences(line: str) -> Iterator[tuple[int, int]]:
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(line)), len(line)]:
        part = line[start:end]
        left = len(part) - len(part.lstrip())
        if part.strip():
            yield start + left, start + len(part.rstrip())
        start = end


@lru_cache(maxsize=_KNOWN_WORDS)
def _key_of_word(word: str) -> str:
    return key_of(_stem(word))


def _stem(word: str) -> str:
    if word in _NO_CONTENT or word[0] in "않못말":
        return ""
    return strip_particle(_VERB_END.sub("", word))
