"""Splits Korean and English text into sentences and finds their content words."""

from __future__ import annotations

import re
from typing import Final

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

_WORD: Final = re.compile(
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
    """Splits a text into sentences, each on one line with single spaces; list marks and empty lines are left out.

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
    for word in _WORD.findall(sentence):
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
    """Returns a word without its plural or possessive s; "class" and "3s" stay."""
    return word[:-1] if len(word) > 3 and word.isalpha() and word[-1] == "s" and word[-2] not in "su" else word  # noqa: PLR2004  # shorter words are mostly no plurals
