"""Splits a model input into sentences, detects the request in the message, and finds earlier relevant sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Final, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from graph.core.language import ASKING, DATE, INTRODUCTION, content_terms, is_casual, split_sentences
from graph.core.snapshot import without_places
from graph.core.turn import is_note, is_recalled, with_words
from graph.fold.fact_find import fact_spans
from graph.fold.replaced import changed_in
from graph.fold.word_kind import is_rule
from graph.offline.phrase import is_own_phrase, label_source
from graph.search.term import has_content_of
from prompt.system.framing import (
    COMPACTION_HEADING,
    CONTEXT_PART,
    CURRENT_PART,
    LEDGER_HEADING,
    RECENT_PART,
    SPEAKER,
    SUMMARY_HEADING,
    VERBATIM_NOTE,
    VOLATILE_HEADING,
    Language,
)
from prompt.tool.words import recalled_texts

Intent = Literal[
    "time", "identity", "ability", "folding", "greeting", "thanks", "farewell", "acknowledged",
    "table", "recap", "question", "request", "statement",
]  # fmt: skip

QUOTATIONS: Final = 3
"""Number of sentences quoted per question."""

_NOTE: Final = re.compile(
    r"(?:꼭\s)?(?:기억|메모|적어)(?:해)?\s?(?:줘요?|주세요|둬요?|두세요|놔)\s*[:：,.!]*\s*"
    r"|(?:절대\s)?잊지\s?(?:마세요|말아\s?(?:줘요?|주세요))\s?[:：]\s*"
    r"|^(?:please\s)?(?:remember|keep\sin\smind|note)(?:\s(?:that|this))?\b\s*[:,.!]*\s*(?!.*\?$)",
    re.IGNORECASE,
)
_TIME: Final = re.compile(
    r"몇\s?시(?!간|에|부터|까지)|(?:현재|지금)\s?(?:시각|시간|날짜)|시간\s?(?:좀\s)?알려"
    r"|(?:시각|날짜)\S?\s?(?:좀\s)?(?:알려|뭐)"
    r"|오늘\S?\s?(?:며칠|무슨\s?요일|몇\s?월|날짜)|무슨\s?요일"
    r"|what(?:'s|\sis)?\s(?:the\s)?(?:current\s)?(?:local\s)?(?:time|date)|current\s(?:time|date)"
    r"|time\s(?:is\sit|now)|the\stime"
    r"|what\sday\sis|today'?s\sdate",
    re.IGNORECASE,
)
_GIVEN: Final = re.compile(
    r"(?:^|\s)(?:이|다음|아래|첨부한?)\s?(?:글|문장|문단|기사|문서|텍스트|논문|보고서|코드|이?메일)\S*\s(?:좀\s)?(?:요약|정리)"
    r"|\bsummari[sz]e\s(?:this|the(?:\sfollowing)?)\s(?:article|text|paragraph|document|e-?mail|page|paper|report|code)",
    re.IGNORECASE,
)
_HELLO: Final = re.compile(r"^(?:안녕\S*|하이|헬로|hi|hello|hey)(?:\sthere)?[\s,.!?~]+", re.IGNORECASE)
_TELL: Final = re.compile(r"알려|찾아|말해|보여|기억|\b(?:tell|show|find|give|list|remind)\b", re.IGNORECASE)
_NOW: Final = re.compile(r"지금|현재|오늘|\b(?:now|current|currently|today)\b", re.IGNORECASE)
_TIME_FILLER: Final = re.compile(
    r"지금|현재|오늘|시각|시간|날짜|요일|이야|인가요?|이에요|예요|인지|알려\S*|말해\S*|줘\S*|주세요"
    r"|줄래\S*|궁금\S*|좀|뭐\S*|혹시"
    r"|\b(?:now|right|time|local|today|date|day|hello|hi|tell|check)\b",
    re.IGNORECASE,
)
# What an English request for an answer begins with, and one that may also change a value: "make it 60 days".
_PRODUCING: Final = (
    r"write(?!\s(?:this|that|it)\sdown)|make\s(?:me|us|an?(?!\snote)|some)|(?:fix|correct)\s(?:this|these|my)"
    r"|create|translate|recommend|explain|list|draw|find|tell|show|give|suggest|help|compare|calculate"
    r"|proofread|rewrite|rephrase|improve|shorten|generate|implement|debug|refactor|convert|solve|teach"
    r"|describe|compose|analy[sz]e|brainstorm|act\sas|pretend|imagine"
    r"|(?:draft|edit|review|code|program|design|build)\s(?:an?|the|this|my|our|me|some)"
)
_VERBS: Final = rf"{_PRODUCING}|write|make|fix|correct"
# In this order: the first one that matches decides.
_WORDING: Final[dict[Intent, str]] = {
    "identity": (
        r"(?:^|\s)(?:너|넌|당신|네가|니가|자네)\S{0,2}\s?(?:은|는)?\s?(?:누구|뭐|무엇|정체|어떤 모델|무슨 모델)"
        r"|^누구(?:야|세요|니|신가요|시죠|예요)"
        r"|(?:무슨|어떤)\s?모델|자기\s?소개(?!\s?[서글문])|who\sare\syou|what\sare\syou\b(?!\s\w+ing)|(?:what|which)\smodel"
        r"|introduce\syourself"
    ),
    "folding": (
        r"(?:요약|접기|접히|접는|폴드|압축률?)\S{0,3}.{0,14}(?:언제|어떻게|왜|방식|원리|뭐야|무엇|뭔가)"
        r"|(?:언제|어떻게|왜|어떤 원리).{0,14}(?:요약(?!해)|접[히기는]|압축)"
        r"|(?:when|how|why)\b.{0,40}\b(?:summar|fold|compress)|what\s(?:is|are|does).{0,20}(?:fold|compression)"
    ),
    "ability": (
        r"(?:뭐|뭘|무엇|무얼|어떤 (?:것|걸|일))\S{0,2}\s?.{0,4}할 수 있|도움말|사용법"
        r"|what\s(?:can|do)\syou\s(?:do\b|help)"
        r"|^help\W*$|how\sdo\si\suse"
    ),
    "table": (
        r"표로|표를|도표|테이블|(?:계획|일정|플랜)\S{0,3}\s?(?:좀\s)?(?:세워|짜|만들|정리)|(?:계획|일정)표"
        r"|\b(?:as|in|into)\s(?:a\s)?table|\btable\sof"
        r"|(?:make|write|create|draw|give|build|show|plan)\b.{0,30}\b(?:table|plan|schedule|itinerary)"
        r"|^plan\s(?:a|my|the|our)\b"
    ),
    "recap": (
        r"요약해|정리해|지금까지|여태까지|무슨\s?(?:얘기|이야기|말|대화)|뭐라고\s?(?:했|말)"
        r"|기억(?:하는|나는|하고 있는)\s?(?:것|거|게|건|내용)"
        r"|(?:뭘|무엇을|뭐를?)\s?기억"
        r"|나에\s?대해|내가\s?(?:말한|얘기한|알려준)\s?(?:것|거|게|걸|내용)"
        r"|\bsummari[sz]e\b|(?:^|\b(?:please|you)\s)sum\s(?:it\s)?up\b|\brecap\b|\bso\sfar\b"
        r"|what\s(?:did|have)\s(?:we|i)\s(?:talk|discuss|say|said|told|tell)|what\sdo\syou\s(?:remember|know)"
        r"|\babout\sme\b"
    ),
    "request": (
        r"^(?:can|could|would|will)\syou\b(?!\sremember)|(?:해|써|만들어|알려|찾아|그려|바꿔|골라|적어|말해|도와)\s?(?:줘|주세요|주라|줄래|달라|봐)"
        r"|(?<![을를])(?<![을를]\s)(?:줘요?|주세요|주라|줄래요?|달라)\s*(?:$|[\n.,:;!?~…])|(?<=[가-힣])\s?(?:줄|주실)\s?수\s?(?:있|없)"
        r"|(?<=[가-힣])\s?주시겠"
        r"|(?:짜|고쳐|지어|다듬어|풀어|뽑아)\s?(?:봐|라)|부탁(?:해|드|합|$)"
        r"|(?:추천|번역|작성|설명|수정|교정|분석|검토|구현|변환|비교|계산)(?:해(?:봐|라)?\s*(?:$|[\n.,:;!?~…])|$)"
        rf"|^(?:(?:please|let'?s|now)\s)?(?:{_VERBS})\b"
        r"|^i(?:'d|\swould)?\s(?:want|need|like)\s(?:you\sto|help)\b"
        r"|^i\sneed\s(?:an?|some)\s(?:\w+\s){0,3}"
        r"(?:regex|script|function|program|query|code|essay|poem|story|speech|letter|e-?mail|article|outline|template)\b"
    ),
    "question": (
        r"[?？]\s*$|(?:까요|나요|가요|는지요|습니까|였지|했지|었지|이지|였죠|했죠|인가|인지)[.!~…\s]*$"
        r"|(?:^|\s)(?:뭐|무엇|언제|어디|누구|누가|얼마|몇|왜)\S{0,4}(?:\s|$)"
        r"|^(?:what|when|where|who|whose|which|how|why|do|does|did|is|are|was|were|can|could)\b"
    ),
}
_SOCIAL: Final[dict[Intent, str]] = {
    "thanks": r"고마|고맙|감사|땡큐|수고|\b(?:thank|thanks|thx|ty|cheers|appreciated)\b",
    "farewell": r"잘\s?(?:가|있|자)|안녕히|또\s?[봐뵈뵙]|다음에|바이|\b(?:bye|goodbye|see\s(?:you|ya))\b",
    "greeting": r"안녕|반가|반갑|하이|헬로|좋은\s?(?:아침|저녁|하루)|\b(?:hi+|hello+|hey+|good|greetings|nice)\b",
}
_PATTERNS: Final = {intent: re.compile(wording, re.IGNORECASE) for intent, wording in _WORDING.items()}
_SMALL_TALK: Final = {intent: re.compile(wording, re.IGNORECASE) for intent, wording in _SOCIAL.items()}


_PLEASE: Final = r"\s?(?:줘|주[세시십실라]|줄|달라)"
_POLITELY: Final = (
    r"(?:please\s|(?:can|could|would|will)\syou\s(?:please\s)?|i(?:'d|\swould)?\s(?:want|need|like)\syou\sto\s)"
)
# Asks for a text, also where it says how: 꼭 세 줄로 요약해 주세요.
_PRODUCES: Final = re.compile(
    rf"(?:(?<!신경)(?<!신경\s)써|(?<!날)짜|지어|그려|풀어|다듬어|만들어|세워|알려|찾아|말해|보여|골라|도와|읽어|가르쳐|뽑아){_PLEASE}"
    r"|(?:추천|번역|작성|설명|요약|정리|교정|첨삭|분석|구현|변환|비교|계산|소개)(?:해|[을를])?\s?(?:줘|주|줄|달라|부탁)"
    rf"|[는은인을할될]지\s(?:[꼭좀]\s)?[가-힣]{{1,4}}{_PLEASE}|^(?:can|could|would|will)\syou\b[^.!?\n]*\b(?:if|whether)\b"
    r"|(?<![가-힣])(?:글|문장|문단|텍스트|코드|함수|쿼리|이?메일)(?:[을를]|\s좀)\s"
    rf"|^{_POLITELY}?(?:{_PRODUCING})\b",
    re.IGNORECASE,
)
# Sets how all texts are written from now on: 앞으로는 원 단위로 써 주세요.
_FROM_NOW_ON: Final = re.compile(
    rf"(?:앞으로[는도]|(?:이제|다음)부터[는도]?)\s[^.!?\n]{{0,60}}?[로게]\s?[가-힣]{{1,4}}{_PLEASE}"
    r"|\b(?:from\snow\son|going\sforward|henceforth)\b",
    re.IGNORECASE,
)
# Asks that what was said is kept.
_KEEPS: Final = re.compile(
    rf"(?:꼭\s|반드시\s)?(?:지켜|따라|챙겨|(?:기억|메모|기록|명심|유의|주의|참고|준수|숙지|유지|반영|적용)해){_PLEASE}[가-힣]*"
    r"|(?:기억|메모|기록|명심|유의|주의|참고|준수|숙지|유지|반영|적용|양해|협조|잘|(?<!주)시[길기])[을를]?\s?부탁[가-힣]*"
    rf"|^{_POLITELY}?(?:(?:make|be)\ssure|make\sa\snote|(?:keep|bear)\s(?:this\s|that\s|it\s)?in\smind|write\s\w+\sdown"
    r"|(?:remember|note|know)\b(?=\sthat\b|\sthis\b|:)|(?:stick|keep)\sto|not\sforget|follow|respect|observe)\b",
    re.IGNORECASE,
)
_BEHIND_VALUE: Final = re.compile(
    rf"(?:\s[가-힣]{{2,3}}?)?(?:까지|부터|쯤|경|정도)?(?:으?로만?\s[^.!?:,\n]{{0,30}}?{_PLEASE}|이고|이며|이니|이므로|인데|이라서)"
)
_TEXT_SIZE: Final = re.compile(
    r"(?:[자줄]|문장|문단|단어|(?:word|line|sentence|paragraph|character)s?)$", re.IGNORECASE
)
_HANGUL: Final = re.compile("[가-힣]")
_VALUED: Final = ("date", "money", "number", "count")
_LONGEST_KEPT: Final = 300
_KNOWN_SENTENCES: Final = 1_024


def find_intent(text: str) -> Intent:
    """Returns the intent of a message; "statement" if it requests nothing."""
    stripped = text.strip()
    if is_casual(stripped):
        return _first_match(_SMALL_TALK, stripped, "acknowledged")
    if _is_time_question(stripped):
        return "time"
    if _NOTE.search(stripped) and not stripped.endswith(("?", "？")):
        return "statement"
    asked = _without_kept(_HELLO.sub("", stripped))
    return "request" if _GIVEN.search(asked) else _first_match(_PATTERNS, asked, "statement")


def _without_kept(text: str) -> str:
    """Returns a message without the sentences that ask only to keep what was said: 꼭 지켜 주세요, make it 60 days."""
    sentences = split_sentences(text)
    asked = [sentence for sentence in sentences if not _is_kept(sentence)]
    return text if len(asked) == len(sentences) else "\n".join(asked)


@lru_cache(maxsize=_KNOWN_SENTENCES)  # an answer asks for those of a message several times
def _is_kept(sentence: str) -> bool:
    is_question = sentence.endswith(("?", "？"))
    is_request = _PATTERNS["request"].search(sentence) or (ASKING.search(sentence) and not is_question)
    if len(sentence) > _LONGEST_KEPT or not is_request:
        return False
    if _FROM_NOW_ON.search(sentence):
        return True
    if _PRODUCES.search(sentence):
        return False
    # An English rule is no request, but a request may have one: fix the bug, but don't rename anything.
    is_order = bool(_HANGUL.search(sentence)) and is_rule(sentence)
    return is_order or bool(_KEEPS.search(sentence)) or _sets_value(sentence)


def _sets_value(sentence: str) -> bool:
    given = (fact for _, end, fact in fact_spans(sentence) if _BEHIND_VALUE.match(sentence, end))
    return any(
        # "코드를 Rust로 바꿔 주세요" asks for code.
        (fact.kind in _VALUED and not _TEXT_SIZE.search(fact.text)) or (fact.kind == "name" and not fact.text.isascii())
        for fact in (*given, *changed_in(sentence))
    )


def _first_match(patterns: Mapping[Intent, re.Pattern[str]], text: str, default: Intent) -> Intent:
    return next((intent for intent, pattern in patterns.items() if pattern.search(text)), default)


def _is_time_question(text: str) -> bool:
    """Returns True for the current time, with nothing but a place named; "when is the meeting" doesn't count."""
    if not _TIME.search(text):
        return False
    rest = content_terms(_TIME_FILLER.sub(" ", _TIME.sub(" ", without_places(text))))
    return not rest or (bool(_NOW.search(text)) and len(rest) <= 2)  # noqa: PLR2004  # one stray word has two bigrams


def asks_to_look_up(sentence: str) -> bool:
    intent = find_intent(sentence)
    return intent == "question" or (intent == "request" and bool(_TELL.search(sentence)))


def asks_for_new_text(sentence: str) -> bool:
    """Returns True for a request that takes more than what was said: to write, to explain, to translate."""
    return find_intent(sentence) == "request" and not _TELL.search(sentence)


def without_note(statement: str) -> str:
    """Returns a statement without the words that ask to note it; "" if it has no others (꼭 지켜 주세요)."""
    noted = _NOTE.sub("", statement).strip()
    return "" if _KEEPS.search(noted) and not content_terms(_KEEPS.sub(" ", noted)) else noted


_CONTEXT, _RECENT, _CURRENT = (part.partition("{")[0] for part in (CONTEXT_PART, RECENT_PART, CURRENT_PART))
_LINE: Final = re.compile(r"^(USER|ASSISTANT|TOOL): ", re.MULTILINE)
_RULE: Final = "\n\n---\n\n"


def unpacked(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Returns the messages in the form of the "interval" strategy: summaries in a system message, single messages.

    Within a frame all lines of quoted text are indented, so that none can imitate the frame.
    """
    return [part for message in messages for part in _parts(message)]


def _parts(message: BaseMessage) -> Iterator[BaseMessage]:
    text = message.text
    if not isinstance(message, HumanMessage):
        yield message
    elif text.startswith(COMPACTION_HEADING):
        summary, _, own = text.removeprefix(COMPACTION_HEADING).partition(_RULE)
        # There is a note between the summary and the rule.
        yield _summary(summary.strip().rpartition("\n\n")[0] if own else summary)
        yield from _parts(with_words(message, own))
    elif text.startswith((_CONTEXT, _RECENT, VOLATILE_HEADING)) and f"\n\n{_CURRENT}" in text:
        before, _, own = text.partition(f"\n\n{_CURRENT}")
        before, _, _ = f"\n\n{before}".partition(f"\n\n{VOLATILE_HEADING}")
        summary, _, recent = before.partition(f"\n\n{_RECENT}")
        if summary:
            yield _summary(summary.strip().removeprefix(_CONTEXT))
        lines = _LINE.split(recent)
        for speaker, turn_text in zip(lines[1::2], lines[2::2], strict=True):
            yield HumanMessage(turn_text) if speaker == "USER" else AIMessage(turn_text)
        yield with_words(message, own)
    else:
        yield message


def _summary(text: str) -> SystemMessage:
    return SystemMessage(f"{SUMMARY_HEADING['ko']}\n{text}")


_HEADING: Final = re.compile("^(?:" + "|".join(map(re.escape, SUMMARY_HEADING.values())) + ")$", re.MULTILINE)
_RECORD: Final = re.compile(r"^\[(?:Turns )?(\d+(?:-\d+)?)턴?\] ?", re.MULTILINE)
_KEPT_HEADING: Final = re.compile("^(?:" + "|".join(map(re.escape, LEDGER_HEADING.values())) + ")$", re.MULTILINE)
_KEPT: Final = re.compile(r"^- \((?:turn )?(?P<turn>\d+)턴?\) (?P<text>[^\n]+)$", re.MULTILINE)
_SPEAKERS: Final = "|".join(sorted({name for names in SPEAKER.values() for name in names.values()}))
_QUOTED_SPEAKER: Final = re.compile(rf"^(?:{_SPEAKERS}): ")


@dataclass(frozen=True)
class Passage:
    """An earlier sentence, with the turns of its summary or the turn found by `recall`; "" for a raw turn."""

    text: str
    turns: str
    is_recalled: bool = False

    def source(self, language: Language) -> str:
        return label_source(language, self.turns, is_recalled=self.is_recalled)


def read_passages(messages: Iterable[BaseMessage]) -> list[Passage]:
    """Returns the sentences of summaries and messages, oldest first and without duplicates.

    Left out are questions, requests, small talk, the embedded model's own phrases, and answers in raw turns.
    """
    return _distinct(
        Passage(each, turns, is_recalled=is_kept)
        for text, turns, is_kept in _sources(messages)
        for each in _statements(text)
    )


def read_recalled(result: str) -> list[Passage]:
    """Returns the sentences in a result of `recall`, the oldest turn first and without duplicates."""
    turns = sorted(recalled_texts(result), key=lambda recalled: recalled.turn)
    return _distinct(
        Passage(each, str(recalled.turn), is_recalled=True) for recalled in turns for each in _statements(recalled.text)
    )


def has_summaries(messages: Iterable[BaseMessage]) -> bool:
    return any(isinstance(message, SystemMessage) and _HEADING.search(message.text) for message in messages)


def _sources(messages: Iterable[BaseMessage]) -> Iterator[tuple[str, str, bool]]:
    """Yields texts with their turns; True for what the user said word for word in a turn that is folded."""
    for message in messages:
        if isinstance(message, SystemMessage):
            heading = _HEADING.search(message.text)
            records, *kept = _KEPT_HEADING.split(message.text[heading.end() :] if heading else "", maxsplit=1)
            parts = _RECORD.split(records)
            for text, turns in zip(parts[0::2], ("", *parts[1::2]), strict=False):
                yield text, turns, False
            for line in _KEPT.finditer("".join(kept)):
                yield line["text"], line["turn"], True
        elif not (isinstance(message, AIMessage) or is_recalled(message) or is_note(message)):
            yield message.text, "", False


def _statements(text: str) -> Iterator[str]:
    for sentence in split_sentences(text):
        clean = without_note(_QUOTED_SPEAKER.sub("", sentence))
        is_empty = clean in ("", *VERBATIM_NOTE.values())
        if is_empty or is_own_phrase(clean) or is_casual(clean):
            continue
        if not ASKING.search(clean) or _is_kept(clean):
            yield clean


def _distinct(passages: Iterable[Passage]) -> list[Passage]:
    found: dict[str, Passage] = {}
    for passage in passages:
        found.setdefault(passage.text, passage)
    return list(found.values())


_LEAST_SCORE: Final = 0.25
_MISSING_WEIGHT: Final = 0.3
_NAME: Final = re.compile(r"이름|누구|\b(?:name|who)\b", re.IGNORECASE)
# Kinds of facts by kinds of questions: "what's my name" shares no word with its answer "I'm Alex".
_ASKED_KINDS: Final = (
    (_NAME, INTRODUCTION, 0.5),
    (re.compile(r"언제|며칠|날짜|몇\s?[시월일]|\b(?:when|date|day)\b", re.IGNORECASE), DATE, 0.15),
    (
        re.compile(r"얼마|비용|예산|가격|\b(?:how much|cost|price|budget)\b", re.IGNORECASE),
        re.compile(r"\d\s?(?:만|천|백)?\s?원|[$€£₩]\s?\d"),
        0.15,
    ),
)
# Words without content of their own, next to the subject of the question.
_POINTING: Final = re.compile(
    r"(?<!\S)(?:제|내|네|너|나|저|우리|그|이|좀|이야기\S*|얘기\S*|내용\S*)(?!\S)|\b(?:remind|exactly|please)\b",
    re.IGNORECASE,
)
# The last word of a Korean question, or the one before "알려 줘"; the answer has a different form of it.
_VERB: Final = re.compile(r"(?<=\S)\s++[가-힣]+(?:지\s[가-힣\s]{1,40}+)?[\s?？!.~…]*+$")


def find_relevant(passages: Sequence[Passage], question: str, limit: int = QUOTATIONS) -> list[Passage]:
    """Returns the passages that share most terms with the question, best first; empty if they share too few.

    Rare terms weigh more. Of equal passages the later one comes first, as it may correct the earlier one.
    """
    asked = content_terms(question)
    terms = [content_terms(passage.text) for passage in passages]
    counts = Counter(term for found in terms for term in found)
    weights = {term: log(1 + len(passages) / counts[term]) for term in asked if counts[term]}
    whole = (sum(weights.values()) + _MISSING_WEIGHT * (len(asked) - len(weights))) or 1.0
    kinds = [(answer, bonus) for asking, answer, bonus in _ASKED_KINDS if asking.search(question)]
    scores = [
        sum(weights[term] for term in found & weights.keys()) / whole
        + sum(bonus for answer, bonus in kinds if answer.search(passage.text))
        for passage, found in zip(passages, terms, strict=True)
    ]
    least = max(_LEAST_SCORE, max(scores, default=0.0) / 2)
    found = [index for index, score in enumerate(scores) if score >= least]
    found.sort(key=lambda index: (scores[index], index), reverse=True)
    return [passages[index] for index in found[:limit]]


def is_answered(question: str, passages: Sequence[Passage]) -> bool:
    """Returns True if the most relevant passages together have every word of the question except its verb."""
    found = "\n".join(passage.text for passage in find_relevant(passages, question))
    # "I'm Alex" answers "what's my name" with none of its words.
    words = _NAME.sub(" ", question) if INTRODUCTION.search(found) else question
    return bool(found) and has_content_of(found, _VERB.sub("", _POINTING.sub(" ", words)))
