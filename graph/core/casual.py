"""Recognises messages that are only greetings, thanks, acknowledgements or farewells."""

from __future__ import annotations

import re
from typing import Final

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
    """Whether the message is nothing but a greeting, thanks, an acknowledgement or a farewell.

    Args:
        text: The user's message.
        previous_answer: The assistant's last answer. After a question or an offer, "yes" or "good" is an answer and
            not small talk; thanks, greetings and farewells stay small talk.
    """
    stripped = text.strip()
    if not stripped or len(stripped) > _MAX_CHARS or _NOT_CASUAL.search(stripped):
        return False
    words = _DECORATION.sub(" ", stripped).strip()
    if not (_ONLY_PHRASES.fullmatch(words) if words else _EMOJI.search(stripped)):
        return False
    return bool(_ONLY_SOCIAL.fullmatch(words)) or not _asks_or_offers(previous_answer)


def _asks_or_offers(answer: str) -> bool:
    """Whether the last paragraphs of an answer ask the user something or offer a next step."""
    answer = answer.strip()
    # Whole paragraphs, because a question can precede the list that it is about.
    begin = answer.rfind("\n\n", 0, max(0, len(answer) - _TAIL_CHARS))
    return bool(_ASKS.search(answer, begin + 1))
