"""Cleans a model's draft: removes reasoning, fences, headings and character counts around the summary."""

from __future__ import annotations

import re
from typing import Final

from graph.core.thinking import split_whole

_FENCE: Final = re.compile(r"\A(`{3,}|~{3,})(?:markdown|md|text|txt|plaintext|summary)?[ \t]*\n(.*)\n\1\Z", re.DOTALL)
_INNER_FENCE: Final = re.compile(r"^[^\S\n]*+(?:`{3,}|~{3,})", re.MULTILINE)

_MARKUP: Final = " \t#*_>:：.!\"'“”"
_LABEL: Final = re.compile(r"\A[#*_ \t]*(?:요약(?:본|문)?|summary)[*_ ]*[:：][*_]*[ \t]*(?=\S)", re.IGNORECASE)
_HEADING: Final = re.compile(
    r"(?:(?:네|물론입니다|알겠습니다|sure|certainly|of course|okay|ok)[,.! ]+)?"
    r"(?:(?:(?:전체|이전|지난|대화|구간|내용)(?:의|를|을)?\s*){0,3}요약(?:본|문|\s?내용)?"
    r"|(?:다음은|아래는|이하는|여기는?)\s.{0,40}요약.{0,12}"
    r"|(?:(?:the|a|an|concise|brief|conversation|chat)\s+){0,4}summary"
    r"(?:\s+of\s+(?:(?:the|this|our)\s+)?(?:conversation|chat|discussion|dialogue|turns?(?:\s++[\d–-]++)++)(?:\s+so\s+far)?)?"
    r"|(?:here(?:['’]s|\s+is)|below\s+is|this\s+is|the\s+following\s+is)\s.{0,40}\bsummary\b.{0,30})",
    re.IGNORECASE,
)
_COUNT: Final = re.compile(
    r"(?<!\s)\s*+[(\[（]\s*+"
    r"(?P<sure>(?:(?:총|전체|공백\s?포함|글자\s?수|분량|total|length|character count)[\s:：]*+)*+)"
    r"(?:약|대략|about|approx\.?|approximately|~)?\s*+(?P<count>\d[\d,]{0,11}+)\s*+(?:자|글자|단어|characters?|chars?|words?)"
    r"(?:\s*+[,/]?+\s*+(?:공백\s?포함|공백\s?제외|including spaces|total|in total))?\s*+[)\]）]\s*+\Z",
    re.IGNORECASE,
)
_LEAST_COUNT_SHARE: Final = 0.5
_MOST_COUNT_SHARE: Final = 2.0


def clean_draft(text: str) -> str:
    """Removes text around the summary; the same words inside stay.

    Removed are thoughts at the beginning, even if unclosed; a fence round the whole; a heading line ("요약:", "Here is
    the summary:"); a count at the end ("(총 612자)").
    """
    cleaned = text.strip()
    while True:
        before = cleaned
        cleaned = split_whole(cleaned)[1].strip()
        for step in (_without_fence, _without_heading, _without_count):
            cleaned = step(cleaned).strip()
        if cleaned == before:
            return cleaned


def _without_fence(text: str) -> str:
    fenced = _FENCE.match(text)
    if fenced is None or len(_INNER_FENCE.findall(fenced.group(2))) % 2:
        return text  # a text that only begins and ends with code
    return fenced.group(2)


def _without_heading(text: str) -> str:
    first, _, rest = text.partition("\n")
    is_marked = first.strip()[-1:] in {":", "：", ".", "*", "_"} or first.lstrip().startswith("#")
    if rest.strip() and is_marked and _HEADING.fullmatch(first.strip(_MARKUP)):
        return rest
    return _LABEL.sub("", text, count=1)


def _without_count(text: str) -> str:
    found = _COUNT.search(text)
    if found is None or not found.start():
        return text
    body = text[: found.start()]
    share = int(found.group("count").replace(",", "")) / len(body)
    is_own_line = "\n" in found.group(0)[: len(found.group(0)) - len(found.group(0).lstrip())]
    if found.group("sure") or is_own_line or _LEAST_COUNT_SHARE <= share <= _MOST_COUNT_SHARE:
        return body
    return text
