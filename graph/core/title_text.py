"""Finds the words that a session's title is made of: a person's first, behind what clients put in front of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from graph.core.text import has_visible, title_of

_MOST_PARTS: Final = 50
_BLANK: Final = re.compile(r"\s*")
_NAME: Final = r"[A-Za-z][\w.:-]{0,60}"
_FIELDS: Final = r"(?:\s[^<>]{0,1000})?"
_OPENING_TAG: Final = re.compile(rf"<({_NAME}){_FIELDS}>")
# Around a person's own words.
_SPOKEN: Final = re.compile(r"(?i)(?:user_?)?(?:task|query|question|message|input|prompt|request|feedback)")
_TAG: Final = re.compile(rf"</?{_NAME}{_FIELDS}/?>")
# A single tag, the heading of a block, a field of DSPy, a label.
_OTHER_PARTS: Final = (
    re.compile(rf"</{_NAME}>|<{_NAME}{_FIELDS}/>|<{_NAME}{_FIELDS}>(?=\s*\n)|<[!?][^<>]{{0,1000}}>"),
    re.compile(r"#{1,6} [^\n]{1,300}\n\s*(?=<[A-Za-z])"),
    re.compile(r"\[\[ ## [^\[\]\n]{1,80} ## \]\]"),
    re.compile(
        r"[#>*_ ]{0,8}(?:(?:new|current|user'?s?) )?(?:task|question|query|request|prompt|input|instruction|message"
        r"|user|human|작업|과제|질문|요청|사용자|메시지)[*_ ]{0,3}[:：][*_]{0,2}(?=\s|\Z|[^\x00-\x7f])",
        re.IGNORECASE,
    ),
)
_FENCE: Final = re.compile(r"(`{3,})[^`\n]{0,80}\n")
_FENCE_LINE: Final = re.compile(r"^`{3,}[^`\n]{0,80}$", re.MULTILINE)
# What a client says in its user's place: what it summarised, or set up (Gemini CLI and Qwen Code).
_SUMMARY: Final = re.compile(
    r"\W{0,3}(?:(?:here is|here's|this is|below is|following is) (?:a|the) (?:\w{1,20} )?summary of (?:the|our|your)"
    r" (?:\w{1,20} )?(?:conversation|chat|discussion|history|session)|this session is being continued from"
    r"|another language model started to|i spoke to you previously about|(?:previous |earlier )?conversation summary\b"
    r"|(?:지금까지|이전|앞선)의? ?대화(?:의|를)? 요약|this is the [\w ]{1,40}\. we are setting up the context)"
    r"[^:\]\n]{0,300}[:\]]?",
    re.IGNORECASE,
)


def opening_title(texts: Iterable[str]) -> str:
    """Returns the title of a session that begins with these messages of the user.

    It is made of the first words of a person; without any, of the first message without its tags.
    """
    first = ""
    for text in texts:
        if words := first_words(text):
            return title_of(words)
        first = first or (text if has_visible(text) else "")
    summary = _SUMMARY.match(first, _end_of_blank(first, 0))
    bare = _FENCE_LINE.sub("", _TAG.sub("\n", first[summary.end() if summary else 0 :]))
    return title_of(bare) or title_of(first)


def first_words(text: str) -> str:
    """Returns a message from the first words of a person on; "" if there are none."""
    at = _end_of_blank(text, 0)
    for _ in range(_MOST_PARTS):
        if _SUMMARY.match(text, at):
            return ""
        tag = _OPENING_TAG.match(text, at)
        end = text.find(f"</{tag[1]}>", tag.end()) if tag else -1
        if tag and end >= 0 and _SPOKEN.fullmatch(tag[1]) and has_visible(text[tag.end() : end]):
            text, at = text[tag.end() : end], 0
        elif tag and end >= 0:
            at = end
        elif (after := _end_of_part(text, at)) > at:
            at = after
        else:
            break
        at = _end_of_blank(text, at)
    return text[at:].rstrip() if has_visible(text[at:]) else ""


def _end_of_part(text: str, at: int) -> int:
    """Returns where a part without words of a person ends, `at` if there is none."""
    if fence := _FENCE.match(text, at):
        end = text.find(f"\n{fence[1]}", fence.end() - 1)
        return end + 1 + len(fence[1]) if end >= 0 else at
    return next((part.end() for pattern in _OTHER_PARTS if (part := pattern.match(text, at))), at)


def _end_of_blank(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at
