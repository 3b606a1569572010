"""Detects languages, splits sentences and recognises small talk."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage

from graph.core.attached import own_words
from graph.core.pasted import without_pasted
from graph.core.turn import ANY_IMAGE_MARK, text_of
from prompt.system.framing import Language

_NOT_OWN_WORDS: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|^[^\S\n]*+>[^\n]*|\"[^\"\n]*\"", re.DOTALL | re.MULTILINE
)
_QUOTES: Final = (("“", "”"), ("「", "」"))
_SCRIPTS: Final = (
    ("ko", re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")),
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")),
    ("cyrillic", re.compile(r"[\u0400-\u04ff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff]")),
    ("latin", re.compile(r"[A-Za-z\u00c0-\u024f]")),
)
# A pasted transcript's speakers look like those of a conversation, so their lines are left out.
_PASTED: Final = re.compile(
    r"```.*?(?:```|\Z)|^[^\S\n]*+(?:>|\[(?:user|assistant|system|tool|previous summary)\]|</?[a-z])[^\n]*",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_ASCII_SCRIPTS: Final = _SCRIPTS[-1:]
_OWN_SHARE: Final = 0.2
_MIN_WORDS: Final = 4
_MIN_OWN_WORDS: Final = 2
_LATIN_WORD: Final = re.compile(r"[a-z\u00df-\u024f\u1e00-\u1eff]{1,40}")
# Of the languages that most users of Latin script write.
_FOREIGN_WORD_LIST: Final = """
der die das und ich nicht ist ein eine mit für auf den dem zu le la les des du de une un et est je pas que pour dans el
los las y es por con del para il di che non per è sono o os um uma não em com het een van niet dat ik voor op og det på
til och att som är ett nie jest się bir ve bu için yang dan untuk không là và của
"""
_FOREIGN_WORDS: Final = frozenset(_FOREIGN_WORD_LIST.split())
# A longer message is judged by this much of its beginning and end.
_END_CHARS: Final = 5_000
_KNOWN_TEXTS: Final = 16


def user_language(messages: Iterable[AnyMessage]) -> str | None:
    """Returns the script of most of the user's messages; None if there are no words.

    Each message has one vote, so that a long pasted text doesn't outvote the user. A fifth of Hangul words is enough
    for "ko": Korean text may consist mostly of Latin terms.
    """
    votes = Counter(script for message in messages if (script := _script_of(message)) is not None)
    return max(votes, key=lambda script: votes[script]) if votes else None


def is_english(messages: Iterable[AnyMessage]) -> bool:
    """Returns False if a user who writes in Latin script has more little words of another language than of English."""
    words = Counter(word for message in messages for word in _LATIN_WORD.findall(_own_text(message).lower()))
    foreign = sum(words[word] for word in _FOREIGN_WORDS)
    return not foreign or sum(words[word] for word in STOP_WORDS) > foreign


def user_scripts(messages: Iterable[AnyMessage]) -> frozenset[str]:
    """Returns every script with at least two own words in a message of the user."""
    return frozenset(
        script for message in messages for script, count in _own_words(message).items() if count >= _MIN_OWN_WORDS
    )


def session_language(messages: Iterable[AnyMessage], default: Language = "ko") -> Language:
    """Returns the language of a session's fixed sentences, by the user's first message that has words."""
    return next((language for message in messages if (language := _language_of(message))), default)


def system_language(text: str) -> Language | None:
    """Returns the language of a program's system message; None if it has no words."""
    return _language_of(HumanMessage(text))


def _language_of(message: AnyMessage) -> Language | None:
    script = _script_of(message)
    return None if script is None else "ko" if script == "ko" else "en"


def is_written_in(text: str, scripts: Collection[str]) -> bool:
    """Returns True if a text is in one of the scripts, or if undecidable (no script, or too few words)."""
    if not scripts or len(text.split(maxsplit=_MIN_WORDS)) < _MIN_WORDS:
        return True
    shares = _shares(_count_words(_without_quoted(text)))
    return not shares or any(shares.get(script, 0) >= _least_share(script) for script in scripts)


@lru_cache(maxsize=_KNOWN_TEXTS)
def own_lines(text: str, script: str) -> str:
    """Returns a user's text without pasted files and passages, code, quotes, markup, speakers' lines, other scripts."""
    left = without_pasted(_PASTED.sub(" ", own_words(text)))
    return "\n".join(line for line in left.split("\n") if is_written_in(line, {script}))


def _least_share(script: str) -> float:
    return 1 - _OWN_SHARE * 2 if script == "latin" else _OWN_SHARE


def _script_of(message: AnyMessage) -> str | None:
    text = _own_text(message)
    lines = text.splitlines()
    # The user's question precedes or follows a long pasted text.
    for counts in (_first_counts(lines), _first_counts(reversed(lines))):
        if counts["ko"] >= _MIN_OWN_WORDS and counts["ko"] >= counts.total() / 2:
            return "ko"
    shares = _shares(_count_words(text))
    for script in ("ko", "ja"):
        if shares.get(script, 0) >= _OWN_SHARE:
            return script
    return max(shares, key=lambda script: shares[script]) if shares else None


def _first_counts(lines: Iterable[str]) -> Counter[str]:
    return next((counts for line in lines if (counts := _count_words(line))), Counter())


def _own_text(message: AnyMessage) -> str:
    if not isinstance(message, HumanMessage):
        return ""
    text = ANY_IMAGE_MARK.sub(" ", own_words(text_of(message)))
    return _without_quoted(text if len(text) <= 2 * _END_CHARS else f"{text[:_END_CHARS]}\n{text[-_END_CHARS:]}")


def _without_quoted(text: str) -> str:
    left = _NOT_OWN_WORDS.sub(" ", text)
    for opening, closing in _QUOTES:
        left = _without_pairs(left, opening, closing)
    return left


def _without_pairs(text: str, opening: str, closing: str) -> str:
    """Removes text between two marks in the same line, in linear time (a regular expression would be quadratic)."""
    retained: list[str] = []
    at = 0
    while (begin := text.find(opening, at)) >= 0 and (end := text.find(closing, begin)) >= 0:
        line_end = text.rfind("\n", begin, end)
        retained += (text[at:begin], " ") if line_end < 0 else (text[at : line_end + 1],)
        at = (end if line_end < 0 else line_end) + 1
    return "".join(retained) + text[at:]


def _own_words(message: AnyMessage) -> Counter[str]:
    return _count_words(_own_text(message))


def _count_words(text: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word, times in Counter(text.split()).items():
        for name, pattern in _ASCII_SCRIPTS if word.isascii() else _SCRIPTS:
            if pattern.search(word):
                counts[name] += times
                break
    return counts


def _shares(counts: Counter[str]) -> dict[str, float]:
    return {script: count / counts.total() for script, count in counts.items()}


DATE: Final = re.compile(
    r"\d{4}[-./]\s?\d{1,2}|\d{1,2}월|\d{1,2}일|\d{1,2}시|[월화수목금토일]요일|\d{1,2}:\d{2}"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\s+\d|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
)
INTRODUCTION: Final = re.compile(
    r"(?:저|나)는 \w{2,10}(?:이?고|이?며|입니다|이?예요|이에요|이?야)\b|이름[은이]|[Mm]y name|\bI(?:'m| am) [A-Z]"
)

ASKING: Final = re.compile(
    r"[?？]\s*$|(?:줘요?|주세요|주라|줄래요?|달라|주시겠어요)[.!~…\s]*$|^(?:please|can you|could you)\b", re.IGNORECASE
)

_ABBREVIATION: Final = re.compile(
    r"(?:^|[\s(\[])(?:[A-Za-z]|e\.g|i\.e|etc|vs|cf|approx|ca|Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|Inc|Ltd|Co|Corp|No|Nos|Vol|Fig|Eq|pp?"
    r"|al|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|(?:[A-Za-z]\.)+[A-Za-z])\.$"
)
# A space follows a sentence end, or Hangul if the space was omitted. So 3.14, v1.2.3 and URLs stay whole.
_END: Final = re.compile(
    r"(?:(?<![.!?…])[.!?…]+[\"'”’」』)\]]*(?=\s)|[。！？]+[”’」』]*|(?<=[다요죠까음임함])[.!?]+(?=[가-힣]))\s*"
)
_NUMBERED: Final = re.compile(r"(?:^|\d\.\s)\d{1,4}\.$")
_MARK: Final = re.compile(r"^(?:[-*•·▪]\s+|#{1,6}\s+|>\s?)+")
_TABLE_ROW: Final = re.compile(r"^\|(.+)\|$")
_RULE: Final = re.compile(r"[\s|:=_*`~#>-]*")

_SPLIT_WORD: Final = re.compile(
    r"https?://[^\s<>\"')]+|[A-Za-z0-9_]+(?:[.:/@+-][A-Za-z0-9_]+)*|[가-힣]+|[\u3040-\u30ff\u4e00-\u9fff]+"
)
_STOP_WORD_LIST: Final = """
a an and any are as at be been but by can could did do does for from had has have he her his how i if in into is it its
me my no not of on or our please she should so some tell than that the their them then there these they this to us was
we were what when where which who whom whose why will with would you your about again also just let give show know want
need ok okay remember said say
"""
# Bigrams of endings and question words, which have no content.
_STOP_BIGRAM_LIST: Final = """
니다 습니 입니 합니 됩니 있습 없습 했습 었습 았습 세요 어요 아요 예요 에요 해요 이에 해줘 려줘 주세 알려 말해 에서 으로
에게 까지 부터 하고 에는 이라 라고 이고 하는 하기 그리 리고 무엇 뭐야 뭐였 였지 었지 언제 어디 누구 얼마 어떻 떻게 어떤
몇시 인가 인지 는지 나요 을까 할까 이야 거야 것은 것이 것을 그것 이것 저는 제가 나는 내가 우리 지금 이번 그런 이런 하면
해서 해야 하지 대한 대해 위해 있는 있어 없는 없어 했어 했던 였던 이었 했지 기억
"""
STOP_WORDS: Final = frozenset(_STOP_WORD_LIST.split())
STOP_BIGRAMS: Final = frozenset(_STOP_BIGRAM_LIST.split())
_STOP_SYLLABLES: Final = frozenset("은는이가을를의에도만과와로나요네야지고게서면")


def split_sentences(text: str) -> list[str]:
    """Splits a text into sentences, without list marks and empty lines.

    No sentence ends in a decimal, version, URL, date such as `2026. 3. 15.`, numbered point or abbreviation.
    """
    return [sentence for line in text.splitlines() for sentence in _split_line(line)]


def _split_line(line: str) -> list[str]:
    line = _MARK.sub("", " ".join(line.split()))
    if row := _TABLE_ROW.match(line):
        # A table row is one statement; its bars would be noise.
        line = ", ".join(cell for cell in (part.strip() for part in row.group(1).split("|")) if cell)
    sentences: list[str] = []
    start = 0
    for end in _END.finditer(line):
        before = line[max(start, end.end() - 12) : end.end()].rstrip()
        is_date = before[-2:-1].isdigit() and line[end.end() : end.end() + 1].isdigit()
        if is_date or _ABBREVIATION.search(before) or _NUMBERED.search(before):
            continue
        sentences.append(line[start : end.end()].rstrip())
        start = end.end()
    sentences.append(line[start:].strip())
    return [sentence for sentence in sentences if not _RULE.fullmatch(sentence)]


def content_terms(sentence: str) -> set[str]:
    """Returns the content terms of a sentence: words, numbers and identifiers in lower case, Hangul as bigrams."""
    terms: set[str] = set()
    for word in _SPLIT_WORD.findall(sentence):
        if "가" <= word[0] <= "힣":
            pairs = {word[i : i + 2] for i in range(len(word) - 1)} - STOP_BIGRAMS
            terms |= {pair for pair in pairs if pair[0] not in _STOP_SYLLABLES or len(word) == len(pair)}
            if len(word) == 1 and word not in _STOP_SYLLABLES:
                terms.add(word)
        else:
            lowered = word.lower()
            if lowered not in STOP_WORDS:
                terms.add(_stem(lowered))
    return terms


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.isalpha() and word[-1] == "s" and word[-2] not in "su" else word  # noqa: PLR2004  # shorter words are mostly no plurals


_MAX_CHARS: Final = 40
_SOCIAL: Final = (
    r"안녕(?:하세요|하십니까|히\s?(?:가|계)세요)?|반가(?:워요?|워|습니다)|하이|헬로|좋은\s?(?:아침|저녁|하루|밤)(?:이에요|입니다|되세요|보내세요)?|"
    r"(?:정말|너무|진짜|매우|아주)?\s?(?:고마워요?|고맙습니다|감사(?:해요?|합니다|드려요|드립니다)?)|땡큐|수고(?:했어요?|하셨(?:어요|습니다)|하세요)?|"
    r"잘\s?(?:가요?|있어요?|자요?)|안녕히\s?주무세요|또\s?(?:봐요?|뵈어요|뵙겠습니다)|다음에\s?(?:봐요?|뵈어요|뵙겠습니다)|바이+|[ㅋㅎㅠㅜ]+|"
    r"hi+|hello+|hey+|yo|good\s(?:morning|afternoon|evening|night)|greetings|nice\sto\smeet\syou|"
    r"thanks?(?:\s(?:you|a\slot|so\smuch|again))*(?:\sso\smuch|\svery\smuch)?|thx|ty|cheers|much\sappreciated|"
    r"bye+|good\s?bye|see\s(?:you|ya)(?:\s(?:later|soon|tomorrow))?|take\scare|lol|haha+"
)
# These can also answer a question or accept an offer.
_REPLY: Final = (
    r"네+|넵|넹|예|응+|어|웅|그래요?|그렇군요?|알겠(?:어요?|습니다)|알았(?:어요?|습니다)|오케이|오키|ㅇㅋ|ㅇㅇ|굿|좋(?:아요?|습니다|네요?)|"
    r"ok(?:ay)?|k|yes|yep|yeah|yup|sure|got\sit|i\ssee|understood|alright|right|cool|great|nice|perfect|awesome|good|"
    r"later|there|all|everyone|again"
)
_NOT_CASUAL: Final = re.compile(r"[?？0-9`=<>{}\[\]/\\@#$%^&*_|]|https?:|www\.")
_DECORATION: Final = re.compile(r"[\s.,!~…·:;'\"^()♡♥❤️\U0001F300-\U0001FAFF\u2600-\u27BF-]+")
_EMOJI: Final = re.compile("[♡♥❤\U0001f300-\U0001faff\u2600-\u27bf]")
# Each phrase ends where a word ends.
_ONLY_SOCIAL: Final = re.compile(rf"(?:(?:{_SOCIAL})(?: |$))+", re.IGNORECASE)
_ONLY_PHRASES: Final = re.compile(rf"(?:(?:{_SOCIAL}|{_REPLY})(?: |$))+", re.IGNORECASE)

# Broad on purpose: to take small talk for an answer is harmless, but a yes taken for small talk would be ignored.
_ASKS: Final = re.compile(
    r"[?？]"
    r"|(?:(?<!니)까|까요|나요|가요|는지요|래요|어때요?|줘)(?=[\s.!~…'\"’”)\]]|$)"
    r"|주세요|십시오|주시[면겠]|바랍니다|부탁|(?:고르|정하|말씀하)세요"
    r"|(?:원하|필요하|괜찮으|좋으|동의하|바라)(?:시)?(?:면|신다면|다면)|드릴\s?수|해\s?볼\s?수"
    r"|(?<![알르])겠습니다|(?<!그렇)게요(?=[\s.!~…]|$)"
    r"|\b(?:shall|should|may|can|could)\s(?:i|we)\b|\b(?:i|we)(?:['’]ll|\swill|\scan|\scould)\b|\bgoing\sto\b"
    r"|\b(?:would|do|are|could)\syou\b|\bif\syou(?:['’]d)?\s(?:like|want|prefer|wish|agree)\b|\bwant\sme\sto\b|\blet\sme\sknow\b"
    r"|\btell\sme\b|\b(?:say|reply|respond|confirm|choose|pick|select)\b|\bup\sto\syou\b|\byour\s(?:call|choice)\b|\bhappy\sto\b",
    re.IGNORECASE,
)
_TAIL_CHARS: Final = 1_000


def is_casual(text: str, previous_answer: str = "") -> bool:
    """Returns True if the message is nothing but a greeting, thanks, an acknowledgement or a farewell.

    After an answer that asks or offers something, "yes" or "good" is an answer and not small talk.
    """
    stripped = text.strip()
    if not stripped or len(stripped) > _MAX_CHARS or _NOT_CASUAL.search(stripped):
        return False
    words = _DECORATION.sub(" ", stripped).strip()
    if not (_ONLY_PHRASES.fullmatch(words) if words else _EMOJI.search(stripped)):
        return False
    return bool(_ONLY_SOCIAL.fullmatch(words)) or not _asks_or_offers(previous_answer)


def _asks_or_offers(answer: str) -> bool:
    answer = answer.strip()
    # Whole paragraphs, because a question can precede the list that it is about.
    begin = answer.rfind("\n\n", 0, max(0, len(answer) - _TAIL_CHARS))
    return bool(_ASKS.search(answer, begin + 1))
