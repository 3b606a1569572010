"""Finds what a user forbids or asks for, and whether another text says the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from graph.core.language import STOP_WORDS
from graph.fold.fact_key import key_of, narrow, strip_particle
from graph.fold.word_kind import FORBIDS, PATTERNS, WordKind, kind_of

_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?。！？])(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bSt\.)(?<!\bMrs\.)(?<!e\.g\.)(?<!i\.e\.)\s+"
)
_LIST_MARK: Final = re.compile(r"(?:[-*•·]|[0-9]{1,2}[.)]|\[[ x]\])\s{1,4}")
_MAX_CHARS: Final = 120
_MOST_CLAUSES: Final = 8
_SHORT_CHARS: Final = 30
_LEAST_ROOT: Final = 4
_KNOWN_WORDS: Final = 4_096
_KNOWN_INSTRUCTIONS: Final = 1_024

_NEGATED: Final = re.compile(
    r"않|못|금지|제외|싫|없|불가|불참|피하|피할|피해|아니|아닌|안\s?(?:돼|되|됩|된|됨|먹|씀|쓰|함|하|할|해|타|감|가)|(?<![가-힣])안\s|지\s?[마말]"
    r"|말\s?것|말고|(?<![가-힣])[빼뺀뺄뺌뺐뺍]|사양|알레르기|알러지|그만|삼가|거부|반대|그대로\s?(?:두|둬|둠|놔|유지|남)"
    r"|(?i:\b(?:no|not|never|nobody|nothing|without|avoid\w*|exclud\w*|forb\w*|ban(?:ned|s)?|prohibit\w*|except|skip|allerg\w*|hate\w*|none"
    r"|cannot|unable|refus\w*|against|leave\sout|instead\sof|untouched|unchanged|alone|off[-\s]limits|as[-\s]is)\b|n['’]t\b)"
)
_HANGUL: Final = re.compile(r"[가-힣]+")
_VERB_END: Final = re.compile(
    r"(?<=[가-힣]{2})(?:할게요|할래요|하겠[가-힣]{2,3}|했어요|했습니다|하기로|하지|하게|하고|하면|해서|해야|하는|하기|했고|했음|할|한|함|해|님|지|게|서|면)$|(?<=[가-힣])기로$"
)
_DENIAL: Final = re.compile(r"않|못|말(?:고|아|라|기|자|것|$)")
# Nouns of one syllable with a particle; others might be a word's half (서면, 지도).
_SHORT_NOUN: Final = re.compile(
    r"(?!물가|국가|차이|길이)([표불차물술약글집방문빵돈책옷개돌팀앱웹키값줄칸색점컵폰소닭꽃길벽창잔병밥국죽면꿀귤김회굴])(?:은|는|을|를|이|가|에|에는|로|으로|에서)"
)
_NO_CONTENT_LIST: Final = """
절대 절대로 앞으로 앞으로는 앞으로도 항상 언제나 반드시 매번 꼭 그냥 그리고 그런데 제발 정말 아니 그건 그것 이건 이것
저는 저희 제가 나는 내가 우리 아 음 건 것 거 게 수 할 한 되고 되는 되면 된 됨 함 함께 좀 더 다 때 주세요 해 줘 주고
주십시오 돼요 돼 됩니다 되요 안 마 마세요 빼 빼고 빼주세요 빼줘 있어 없이 하지 하면 금지 제외 알레르기 알러지 m s re ve
ll d don t never must mustn shouldn always now every time make sure avoid like use using used 때마다 받아야 해야 필요
돼서 주실 없음 한가지 한두가지 가지 두가지 하나 지켜 지켜줘 지켜주세요 기억 으로 로 을 를 이 가 그대로 두세요 둬요 두고
둬 둠 놔 남겨 before until till after unless during except untouched unchanged allowed forbidden 있 있는 있으니 되 은 는
명 등 든 어떤 모든 하고 하고요 거예요 거에요 겁니다 거야 게요 같은 좋은데 할께요 할게 갈게요 가죠 하죠 합시다 하자
하겠습니다 가겠습니다 했어요 했습니다 해요 합니다 해줘 정했어요 정할게요 결정했어요 결정합니다 결정할게요 부탁드려 그럼
그러면 네 예 좋아요 좋습니다 좋아해요 좋겠어요 좋을 선호합니다 선호해 선호하는 편해요 편합니다 편이 편 나아요 낫습니다
낫다 훨씬 제일 가장 기로 하기로 걸로 것으로 쪽 쪽으로 얘는 lets go going take taken pick picked choose chosen chose
decide decided decision stick settle drop dropped skip cancel yes fine option prefer prefers preferred rather over
better more most best love enjoy tend leave alone too because nothing ever only 명심 부탁 부탁드립니다 thing things mind
note keep following here
"""
_NO_CONTENT: Final = STOP_WORDS.union(_NO_CONTENT_LIST.split())

# 2번, B안, option 2, take A: a word of its own, however it is written.
_OPTION: Final = re.compile(
    r"(?<![0-9A-Za-z])(?P<number>[0-9]{1,2})번(?:안|(?!째|\s?(?:출구|게이트|승강장|버스|홈|방|국도|척추)))"
    r"|(?i:(?<![A-Za-z])(?:option|plan|variant|choice)\s|옵션\s?)(?P<named>[0-9A-Za-z]{1,2})(?![0-9A-Za-z])"
    r"|(?<![A-Za-z0-9_./-])(?P<letter>[B-HX-Z]|A(?!\s[a-z]))(?:[안사형팀](?:으?로|[은는이가을를])?)?(?![A-Za-z0-9_./'’-])"
)
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
# Takes back what was asked for.
_LIFTED: Final = re.compile(
    r"(?:금지|규칙|제한|조건|요청|부탁)(?:을|를|은|는|이|가)?\s?(?:해제|철회|취소|거[둠두둬]|풀)|허용(?:함|됨|하기로)|[가-힣]도\s?(?:됨|된다)"
    r"|(?i:\b(?:rule|ban|prohibition|restriction|request)s?\b[^.\n]{0,30}?\b(?:lifted|withdrawn|taken back|dropped)\b"
    r"|\ballowed again\b|\bno longer (?:applies|forbidden)\b)"
)
_PAUSE: Final = re.compile(r"[,;:]\s+")
_CLAUSE: Final = re.compile(
    r"[,;:]\s+|\s[—–]\s|(?<=[가-힣]고)\s|(?<=지만|는데|인데|은데|니까|으니|아서|어서)\s|\s(?=(?:and|but|so|because)\s)",
    re.IGNORECASE,
)
_ASKING: Final = (*PATTERNS.values(), _ONLY)
# What a summary says of a taste.
_WEIGHS: Final = re.compile(
    r"선호|좋|낫|나음|나은|편[하함해한안]|싫|취향|원[하함해]|바[라람랍]|대신|말고|보다|우선|(?<![가-힣])안\s"
    r"|(?i:\b(?:prefer\w*|prefs?|likes?|loves?|enjoys?|hates?|dislikes?|rather|over|instead|than|best|better|wants?|taste|favou?r\w*|not|no|first|only)\b|[>≻])"
)
_DROPS: Final = re.compile(
    r"취소|포기|폐기|해지|철회|보류|생략|중단|그만|접[음기었을죠]|빼|뺌|뺄|없[애앰앤]|제거|삭제|관[두둘]"
    r"|(?i:\b(?:drop\w*|remov\w+|cancel\w*|scrap\w*|ditch\w*|skip\w*|gone|without|no longer|get rid|delet\w+|out)\b)"
)
# Words that name nothing without the sentence before.
_POINTING_LIST: Final = """
된다 한다 하기 하게 후보 목록 명단 리스트 대상 항목 내용 부분 거기 여기 그곳 이곳 그날 그때 그쪽 이쪽 그분 이분 그거
이거 저거 그걸 이걸 저걸 그게 이게 그런 이런 저 걸 되겠어 되겠 없어 돼고 해서 제외하 그보다 더는 이상 그이상 그만큼 이름
비슷하니 비슷하 헷갈리 헷갈려 혼동 혼동하 stop stopped candidate candidates list options item items one ones those him
out up anymore
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
_ONE_SYLLABLE: Final = 3
_LEAST_SHARED: Final = 2
_IN_BRACKETS: Final = re.compile(r"\([^()\n]{1,80}\)")
_LINK: Final = re.compile(r"^(?:and|but|so|그리고|그런데|그러니까|다만)\s", re.IGNORECASE)
_LATIN_END: Final = re.compile(r"(?:(?<=[a-z]{4})(?:ings?|ed|es|ally|al|ly|e)|(?<=[a-z]{3})s)$")
# 서면 and 금도 are words; 적지 is a form of 적다.
_KOREAN_END: Final = re.compile(r"(?<=[가-힣])\s(?:지|고|어|아)$|(?<=[가-힣]\s[가-힣])\s(?:면|게|은|는|도)$")


class Clause(NamedTuple):
    """A part of a sentence between pauses.

    Attributes:
        words: Its content words, as keys without their endings.
        permits: True if it allows something.
        drops: True if it gives something up that was chosen or planned.
    """

    text: str
    key: str
    words: tuple[str, ...]
    is_negated: bool
    permits: bool = False
    drops: bool = False


def sentences_of(line: str) -> list[tuple[int, str]]:
    """Returns the sentences of a line, each with its start."""
    return [(start, line[start:end]) for start, end in _split(_SENTENCE_END, line)]


def instructions_in(line: str) -> Iterator[tuple[int, int, WordKind]]:
    """Yields start, end and kind of each sentence of a line that forbids, sets a lasting rule, prefers or chooses.

    A sentence longer than 120 characters gives the clauses of the matched words, or stretches around them. One without
    a content word ("한 가지 꼭 지켜 주세요") says what follows, and gives none.
    """
    for begin, end in _split(_SENTENCE_END, line):
        mark = _LIST_MARK.match(line, begin)
        start = mark.end() if mark else begin
        sentence = line[start:end]
        kind = kind_of(sentence)
        if kind is None:
            continue
        spans = [(0, end - start)] if end - start <= _MAX_CHARS else _clauses_of(sentence, PATTERNS[kind])
        for first, last in spans:
            stated = sentence[first:last].rstrip(" .!?。！？~…")
            if len(stated) > _SHORT_CHARS or _content_words(narrow(stated)):
                yield start + first, start + first + len(stated), kind


def instruction_key(sentence: str) -> str:
    """Returns the key of an instruction: the keys of its content words joined by "|"; "" without content words."""
    return "|".join(_content_words(narrow(sentence)))


def _content_words(plain: str) -> list[str]:
    options = option_words(plain)
    plain = _OPTION.sub(" ", plain) if options else plain
    words = dict.fromkeys(map(_key_of_word, _HANGUL.findall(plain)))
    others = dict.fromkeys(
        f" {token} " for token in key_of(plain).split() if token.isalnum() and not _HANGUL.match(token)
    )
    return options + [word for word in [*words, *others] if word.strip() and word.strip() not in _NO_CONTENT]


def option_words(plain: str) -> list[str]:
    """Returns the options that a text names (2번, B안, option 2), each once, as words of a key."""
    found = (next(filter(None, match.groups())) for match in _OPTION.finditer(plain))
    return [f" §{each.casefold()} " for each in dict.fromkeys(found)]


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


def holds_instruction(instruction: str, clauses: Sequence[Clause], kind: WordKind) -> bool:
    """Returns True if a text has each clause of an instruction that asks for something.

    A clause is there if one of the text, or one with those beside it, has at least half of its content words; of a
    prohibition, one that is negated and doesn't allow it after all ("쉬어도 됨"); of a preference, one that weighs.
    A clause that says only what is left ("…, 서면으로만") stands for the one before it, and the other way round.
    """
    asked = asked_clauses(instruction)
    if not asked:
        return False
    is_denied = kind == "negation" and not any(clause.is_negated for clause in asked)
    held = [_has_clause(clause, clauses, kind, is_denied=is_denied) for clause in asked]
    pair = zip(asked, asked[1:], held, held[1:], strict=False)
    return all(held) or any(
        _is_rest(second) and first.is_negated and (has_first or has_second)
        for first, second, has_first, has_second in pair
    )


def _is_rest(clause: Clause) -> bool:
    return len(clause.words) == 1 and not clause.is_negated and bool(_ONLY.search(clause.text))


def _has_clause(asked: Clause, clauses: Sequence[Clause], kind: WordKind, *, is_denied: bool) -> bool:
    is_negated = is_denied or (asked.is_negated and kind in ("negation", "choice"))
    must_limit = kind == "negation" and _is_rest(asked)
    least = len(asked.words) + (kind == "choice")  # half of "the hotel is the Nikko" names no hotel
    for index, clause in enumerate(clauses):
        is_off = clause.is_negated or (asked.drops and clause.drops)
        if (is_negated or (asked.drops and kind == "choice")) and (clause.permits or not is_off):
            continue
        if (kind == "preference" and not _WEIGHS.search(clause.text)) or (must_limit and not _ONLY.search(clause.text)):
            continue
        own = shared_words(asked, clause)
        if 2 * len(own) >= least:
            return True
        beside = (*clauses[max(0, index - 1) : index], *clauses[index + 1 : index + 2])
        if own and 2 * len(own.union(*(shared_words(asked, each) for each in beside if not each.permits))) >= least:
            return True
    return False


def shared_words(asked: Clause, clause: Clause) -> set[str]:
    """Returns the words of a clause that another one has, in any form; one syllable only where a word begins."""
    found = {word for word in asked.words if word in clause.key}
    short = {word for word in found if len(word) == _ONE_SYLLABLE and not word.isascii()}
    return found - {word for word in short if word[1] not in {run[0] for run in _HANGUL.findall(clause.text)}}


def is_about(asked: Clause, clauses: Iterable[Clause]) -> bool:
    """Returns True if clauses together have two words of another one, and half of them."""
    found, words = {word for clause in clauses for word in shared_words(asked, clause)}, len(asked.words)
    return len(found) >= min(_LEAST_SHARED, words) and 2 * len(found) >= words > 0


def lifts_rule(sentence: str) -> bool:
    """Returns True if a sentence says that a rule no longer holds."""
    return bool(_LIFTED.search(sentence))


def is_pointing(text: str) -> bool:
    """Returns True if a rule or prohibition names nothing without the sentence before it ("그보다 더는 안 돼요")."""
    words = (word.replace(" ", "") for word in _content_words(_POINTED_AT.sub(" ", narrow(text))))
    return bool(_NO_OBJECT.search(text)) or _POINTING.issuperset(words)


@lru_cache(maxsize=_KNOWN_INSTRUCTIONS)
def asked_clauses(instruction: str) -> tuple[Clause, ...]:
    """Returns the clauses of an instruction that ask for something; all if none does or those have no content."""
    plain = narrow(instruction)
    without_reasons = _IN_BRACKETS.sub(" ", plain)
    plain = without_reasons if _content_words(without_reasons) else plain
    parts = [_LINK.sub("", plain[start:end]) for start, end in _split(_CLAUSE, plain)]
    asking = [_clause(part) for part in parts if any(each.search(part) for each in _ASKING)]
    asked = tuple(clause for clause in asking if clause.words)
    whole = _clause(plain)
    return asked or ((whole,) if whole.words else ())


@lru_cache(maxsize=_KNOWN_WORDS)
def _clause(text: str) -> Clause:
    plain = _NO_PROBLEM.sub(" ", text)
    is_negated = bool(_NEGATED.search(plain) or FORBIDS.search(plain))
    permits = bool(_PERMITS.search(text) or (not is_negated and _MAY.search(text)))
    key, words = (
        key_of(text) + "".join(each[1:] for each in option_words(text)),
        tuple(map(_root, _content_words(text))),
    )
    return Clause(text.strip(" .-*•"), key, words, is_negated, permits, bool(_DROPS.search(text)))


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
    if word in _NO_CONTENT or _DENIAL.match(word):
        return ""
    short = _SHORT_NOUN.fullmatch(word)
    stem = short[1] if short else strip_particle(_VERB_END.sub("", word))
    return "" if stem in _NO_CONTENT else key_of(stem)
