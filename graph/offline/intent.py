"""Classifies what a user's message asks for, by its wording in Korean and English."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

from graph.core.casual import is_casual
from graph.core.sentence import content_terms
from graph.core.zone import without_places

Intent = Literal[
    "time", "identity", "ability", "folding", "greeting", "thanks", "farewell", "acknowledged",
    "table", "recap", "question", "request", "statement",
]  # fmt: skip

_NOTE: Final = re.compile(
    r"(?:꼭\s)?(?:기억|메모|적어)(?:해)?\s?(?:줘요?|주세요|둬요?|두세요|놔)\s*[:：,.!]*\s*"
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
_TELL: Final = re.compile(r"알려|찾아|말해|보여|기억|\b(?:tell|show|find|give|list|remind)\b", re.IGNORECASE)
_NOW: Final = re.compile(r"지금|현재|오늘|\b(?:now|current|currently|today)\b", re.IGNORECASE)
_TIME_FILLER: Final = re.compile(
    r"지금|현재|오늘|시각|시간|날짜|요일|이야|인가요?|이에요|예요|인지|알려\S*|말해\S*|줘\S*|주세요"
    r"|줄래\S*|궁금\S*|좀|뭐\S*|혹시"
    r"|\b(?:now|right|time|local|today|date|day|hello|hi|tell|check)\b",
    re.IGNORECASE,
)
# In this order: the first one that matches decides.
_WORDING: Final[dict[Intent, str]] = {
    "identity": (
        r"(?:^|\s)(?:너|넌|당신|네가|니가|자네)\S{0,2}\s?(?:은|는)?\s?(?:누구|뭐|무엇|정체|어떤 모델|무슨 모델)"
        r"|^누구(?:야|세요|니|신가요|시죠|예요)"
        r"|(?:무슨|어떤)\s?모델|자기\s?소개|who\sare\syou|what\sare\syou\b(?!\s\w+ing)|(?:what|which)\smodel"
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
        r"|\bsummari[sz]e\b|\brecap\b|\bso\sfar\b"
        r"|what\s(?:did|have)\s(?:we|i)\s(?:talk|discuss|say|said|told|tell)|what\sdo\syou\s(?:remember|know)"
        r"|\babout\sme\b"
    ),
    "request": (
        r"^(?:can|could|would|will)\syou\b(?!\sremember)|(?:해|써|만들어|알려|찾아|그려|바꿔|골라|적어|말해|도와)\s?(?:줘|주세요|주라|줄래|달라|봐)"
        r"|(?:부탁|추천|번역|작성|설명)(?:해|드|합|$)"
        r"|^(?:please\s)?(?:write|make|create|translate|recommend|explain|list|draw|find|tell|show|give|suggest|help|compare|calculate)\b"
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


def find_intent(text: str) -> Intent:
    """Returns what the message asks for; "statement" if it asks for nothing."""
    stripped = text.strip()
    if is_casual(stripped):
        return _first_match(_SMALL_TALK, stripped, "acknowledged")
    if _is_time_question(stripped):
        return "time"
    if _NOTE.search(stripped) and not stripped.endswith(("?", "？")):
        return "statement"
    return _first_match(_PATTERNS, stripped, "statement")


def _first_match(patterns: Mapping[Intent, re.Pattern[str]], text: str, default: Intent) -> Intent:
    return next((intent for intent, pattern in patterns.items() if pattern.search(text)), default)


def asks_to_look_up(sentence: str) -> bool:
    """Whether it asks for something that may have been said: a question, or a request to tell, find or show."""
    intent = find_intent(sentence)
    return intent == "question" or (intent == "request" and bool(_TELL.search(sentence)))


def without_note(statement: str) -> str:
    """Returns a statement without the words that ask to remember it."""
    return _NOTE.sub("", statement).strip()


def _is_time_question(text: str) -> bool:
    """Whether it asks for the current time: only a place may be named beside it, so not "when is the meeting"."""
    if not _TIME.search(text):
        return False
    rest = content_terms(_TIME_FILLER.sub(" ", _TIME.sub(" ", without_places(text))))
    return not rest or (bool(_NOW.search(text)) and len(rest) <= 2)  # noqa: PLR2004  # one stray word has two bigrams
