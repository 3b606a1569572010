"""Which messages are only greetings, thanks, acknowledgements or farewells; knows nothing of what follows from it."""

from __future__ import annotations

import re
from typing import Final

_MAX_CHARS: Final = 40
_KOREAN: Final = (
    r"안녕(?:하세요|하십니까|히\s?(?:가|계)세요)?|반가(?:워요?|워|습니다)|하이|헬로|좋은\s?(?:아침|저녁|하루|밤)(?:이에요|입니다|되세요|보내세요)?|"
    r"(?:정말|너무|진짜|매우|아주)?\s?(?:고마워요?|고맙습니다|감사(?:해요?|합니다|드려요|드립니다)?)|땡큐|수고(?:했어요?|하셨(?:어요|습니다)|하세요)?|"
    r"네+|넵|넹|예|응+|어|웅|그래요?|그렇군요?|알겠(?:어요?|습니다)|알았(?:어요?|습니다)|오케이|오키|ㅇㅋ|ㅇㅇ|굿|좋(?:아요?|습니다|네요?)|"
    r"잘\s?(?:가요?|있어요?|자요?)|안녕히\s?주무세요|또\s?(?:봐요?|뵈어요|뵙겠습니다)|다음에\s?(?:봐요?|뵈어요|뵙겠습니다)|바이+|[ㅋㅎㅠㅜ]+"
)
_ENGLISH: Final = (
    r"hi+|hello+|hey+|yo|good\s(?:morning|afternoon|evening|night)|greetings|nice\sto\smeet\syou|"
    r"thanks?(?:\s(?:you|a\slot|so\smuch|again))*(?:\sso\smuch|\svery\smuch)?|thx|ty|cheers|much\sappreciated|"
    r"ok(?:ay)?|k|yes|yep|yeah|yup|sure|got\sit|i\ssee|understood|alright|right|cool|great|nice|perfect|awesome|good|"
    r"bye+|good\s?bye|see\s(?:you|ya)(?:\s(?:later|soon|tomorrow))?|later|take\scare|lol|haha+|there|all|everyone|again"
)
_NOT_CASUAL: Final = re.compile(r"[?？0-9`=<>{}\[\]/\\@#$%^&*_|]|https?:|www\.")
_DECORATION: Final = re.compile(r"[\s.,!~…·:;'\"^()♡♥❤️\U0001F300-\U0001FAFF\u2600-\u27BF-]+")
_EMOJI: Final = re.compile("[♡♥❤\U0001f300-\U0001faff\u2600-\u27bf]")
_PHRASE: Final = re.compile(rf"(?:{_KOREAN}|{_ENGLISH})", re.IGNORECASE)
_ASKS: Final = re.compile(r"[?？]|(?:까요|나요|가요|을까|ㄹ까|는지요|습니까)[.!~…\s]*$")
_TAIL_CHARS: Final = 160


def is_casual(text: str, previous_answer: str = "") -> bool:
    """Whether the message needs neither tools nor care: a greeting, thanks, an acknowledgement or a farewell.

    Args:
        text: The user's message.
        previous_answer: What the assistant said last. "Yes" after its question is an answer, not small talk.
    """
    stripped = text.strip()
    if not stripped or len(stripped) > _MAX_CHARS or _NOT_CASUAL.search(stripped):
        return False
    if _ASKS.search(previous_answer.strip()[-_TAIL_CHARS:]):
        return False
    words = _DECORATION.sub(" ", stripped).strip()
    return _is_all_phrases(words) if words else bool(_EMOJI.search(stripped))


def _is_all_phrases(text: str) -> bool:
    """Whether the text is nothing but phrases of the lists, each ending at a word's end; longest match first."""
    position = 0
    while position < len(text):
        ends = [m.end() for m in _matches_at(text, position) if m.end() == len(text) or text[m.end()] == " "]
        if not ends:
            return False
        position = max(ends) + 1
    return bool(text)


def _matches_at(text: str, position: int) -> list[re.Match[str]]:
    """Returns the matches that begin here, one for each possible end (a regex alternation alone gives only one)."""
    word_ends = [index for index in range(position + 1, len(text) + 1) if index == len(text) or text[index] == " "]
    return [match for end in word_ends if (match := _PHRASE.fullmatch(text, position, end))]
