"""The embedded offline model's own sentences in both languages, and how to recognise them."""

from __future__ import annotations

import re
from typing import Final

from graph.core.language import split_sentences
from prompt.system.framing import Language

KOREAN: Final = {
    "introduction": (
        "저는 네트워크 없이 도는 내장 오프라인 모델입니다. "
        "OPENAI_API_KEY나 OPENAI_BASE_URL을 설정하면 실제 모델이 답합니다."
    ),
    "greeting": (
        "안녕하세요! 이름, 일정, 예산, 결정처럼 기억할 것을 편하게 적어 주세요. 나중에 물어보시면 그대로 찾아 드립니다."
    ),
    "thanks": "천만에요. 이어서 말씀해 주세요.",
    "farewell": "안녕히 가세요. 이 대화는 저장되어 있으니 언제든 이어서 하실 수 있습니다.",
    "acknowledged": "네, 이어서 말씀해 주세요.",
    "ability": (
        "새 글을 지어내지는 못하지만, 이 대화에 나온 것을 기억했다가 찾아 드리고, "
        "표로 정리하고, 현재 시각을 알려 드릴 수 있습니다."
    ),
    "noted": "기억해 두겠습니다: {}",
    "related": "앞서 하신 말씀과 이어집니다.",
    "found": "앞에서 나눈 이야기에서 찾았습니다.",
    "nowhere": "요약된 턴의 원문까지 찾아보았지만 꼭 그 이야기는 나오지 않습니다.",
    "closest": "가장 가까운 이야기는 이렇습니다.",
    "not_found": "앞에서 나눈 이야기에서는 그 답을 찾지 못했습니다. 저는 이 대화에 나온 것만으로 답합니다.",
    "known": "지금 기억하고 있는 것은 이렇습니다.",
    "nothing_known": "아직 기억할 만한 이야기를 나누지 않았습니다. 이름, 일정, 예산처럼 기억할 것을 알려 주세요.",
    "recap": "지금까지의 이야기를 정리하면 이렇습니다.",
    "cannot_write": "새로운 글을 지어내거나 바깥 지식을 가져오지는 못합니다. 그런 요청에는 실제 모델이 필요합니다.",
    "blind": "저는 이미지를 볼 수 없습니다. 이미지를 보려면 그것을 받는 실제 모델이 필요합니다.",
    "table": "대화에 나온 것을 표로 정리했습니다.",
    "table_head": "| 내용 | 출처 |",
    "time": (
        "지금 {place}{topic} {at.year}년 {at.month}월 {at.day}일 {weekday} {half} {hour}시 {at.minute}분입니다. "
        "({zone}, {offset})"
    ),
    "no_clock": "이번 답에서는 시계를 볼 수 없습니다. 다시 한 번 물어봐 주세요.",
    "tool_said": "도구가 알려 준 내용입니다.",
    "folding": (
        "세 턴이 끝날 때마다 그 세 턴을 하나로 요약합니다. 4턴, 7턴, 10턴이 시작될 때부터 "
        "모델에는 원문 대신 그 요약과 아직 요약하지 않은 최근 턴만 갑니다.\n\n"
        "- 길이: 원문 글자 수 × 압축률입니다. "
        "압축률은 요약 패널의 슬라이더에서 0.1부터 0.5까지 선택하며, 다음 요약부터 적용됩니다.\n"
        "- 만드는 법: 저는 숫자, 날짜, 이름, 결정이 든 문장을 뽑아 이어 붙입니다. "
        "실제 모델을 연결하면 그 모델이 요약을 씁니다.\n"
        "- 원문: 요약된 턴도 지워지지 않고 모두 남아 있으며, 요약은 오른쪽 패널에서 볼 수 있습니다."
    ),
}
ENGLISH: Final = {
    "introduction": (
        "I'm the embedded offline model and run without a network. "
        "Set OPENAI_API_KEY or OPENAI_BASE_URL and a real model answers."
    ),
    "greeting": (
        "Hello! Tell me what's worth keeping: names, dates, budgets, decisions. "
        "Ask later and I'll find it word for word."
    ),
    "thanks": "You're welcome. Go on whenever you like.",
    "farewell": "Goodbye. This conversation is kept, so you can pick it up at any time.",
    "acknowledged": "All right, go on.",
    "ability": (
        "I can't write anything new, but I remember what is said here, find it again, "
        "put it into a table and tell the time."
    ),
    "noted": "Noted: {}",
    "related": "This goes with what you said before.",
    "found": "This is what I found in our conversation.",
    "nowhere": "I looked through the earlier turns word for word, too: that isn't there.",
    "closest": "This comes closest.",
    "not_found": "I couldn't find that in our conversation. I answer only from what has been said here.",
    "known": "This is what I have kept so far.",
    "nothing_known": "There is nothing to look back on yet. Tell me a name, a date or a budget to keep.",
    "recap": "Here is our conversation so far.",
    "cannot_write": "I can't write new text or bring in outside knowledge. That takes a real model.",
    "blind": "I can't see images. That takes a real model that reads them.",
    "table": "Here is what was said, as a table.",
    "table_head": "| What was said | Where |",
    "time": "In {place} it is {at:%H:%M} on {weekday}, {at:%Y-%m-%d}. ({zone}, {offset})",
    "no_clock": "I can't look at the clock in this answer. Please ask once more.",
    "tool_said": "This is what the tool returned.",
    "folding": (
        "Every three turns are condensed into a summary. It takes its place as turn 4, 7, 10 and so on begins, and "
        "from then on the model is sent that summary instead of the text, with the recent turns that have none yet.\n\n"
        "- Length: characters of the text × the compression rate. Choose the rate with the slider, from 0.1 to 0.5; "
        "it applies from the next summary on.\n"
        "- Making: I pick the sentences with numbers, dates, names and decisions. Connect a real model and it writes "
        "the summaries.\n"
        "- The text: summarised turns are kept, whole. The panel on the right shows every summary."
    ),
}
PHRASES: Final[dict[Language, dict[str, str]]] = {"ko": KOREAN, "en": ENGLISH}
# Earlier versions added a signature to every answer, which stored chats still have.
_FORMER: Final = {"— 내장 오프라인 모델", "— embedded offline model"}
_SENTENCES: Final = _FORMER | {
    sentence for phrases in PHRASES.values() for phrase in phrases.values() for sentence in split_sentences(phrase)
}
# What the clock told. In a summary it may stand without its place and time zone.
_TIME_TOLD: Final = re.compile(
    r"^지금 \S.*\d시 \d+분입니다|^In \S.* it is \d\d:\d\d on|^\(?[\w/+-]+, UTC[+\d:-]*\)?\.?$"
)
_NOTED: Final = tuple(phrases["noted"].partition("{")[0] for phrases in PHRASES.values())
_SOURCE_LABEL: Final = re.compile(
    r"\((?:[\d-]+턴 요약에서|\d+턴의 원문에서|이전 대화에서"
    r"|from the summary of turns [\d-]+|from turn \d+|from earlier)\)$"
)


def label_source(language: Language, turns: str, *, is_recalled: bool) -> str:
    """Renders the source of a quotation: summarised turns, the turn found by `recall`, or "" for a raw turn."""
    if is_recalled:
        return f"({turns}턴의 원문에서)" if language == "ko" else f"(from turn {turns})"
    if language == "ko":
        return f"({turns}턴 요약에서)" if turns else "(이전 대화에서)"
    return f"(from the summary of turns {turns})" if turns else "(from earlier)"


def is_own_phrase(sentence: str) -> bool:
    if sentence in _SENTENCES or sentence.startswith(_NOTED):
        return True
    return bool(_SOURCE_LABEL.search(sentence) or _TIME_TOLD.search(sentence))
