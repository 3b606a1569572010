"""Cleans a model's draft: removes reasoning, fences, JSON, headings, offers and character counts around the summary."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from graph.core.thinking import split_whole

_FENCE: Final = re.compile(
    r"\A(`{3,}|~{3,})(?:markdown|md|text|txt|plaintext|summary|json)?[ \t]*\n(.*)\n\1\Z", re.DOTALL
)
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
_TEXT_FIELDS: Final = ("summary", "title", "요약", "제목", "text", "content", "result", "answer")
# A last sentence that says nothing of the chat.
_OFFER: Final = re.compile(
    r"(?<=[.!?…。\n])[ \t]{0,3}(?:(?:혹시 |언제든 ?지? ?)?(?:추가|더 |다른|궁금|필요|도움|수정|원하)[^\n.!?]{0,60}?"
    r"(?:말씀|알려|물어|문의|요청)[^\n.!?]{0,20}(?:세요|십시오|바랍니다|됩니다)"
    r"|(?:please |just )?(?:let me know|feel free to|would you like|do you want me to|is there anything|i hope this"
    r"|i(?:'m| am) happy to|if you(?:'d| would| have| need| want))\b[^\n.!?]{0,160})[.!?~ ]{0,4}\Z",
    re.IGNORECASE,
)
_OFFER_CHARS: Final = 300
_LEAST_COUNT_SHARE: Final = 0.5
_MOST_COUNT_SHARE: Final = 2.0


def clean_draft(text: str) -> str:
    """Removes text around the summary; the same words inside stay.

    Removed are thoughts at the beginning, even if unclosed; a fence or JSON round the whole; a heading line ("요약:",
    "Here is the summary:"); an offer of more help and a count at the end ("(총 612자)").
    """
    cleaned = text.strip()
    while True:
        before = cleaned
        cleaned = split_whole(cleaned)[1].strip()
        for step in (_without_fence, _without_json, _without_heading, _without_offer, _without_count):
            cleaned = step(cleaned).strip()
        if cleaned == before:
            return cleaned


def _without_fence(text: str) -> str:
    fenced = _FENCE.match(text)
    if fenced is None or len(_INNER_FENCE.findall(fenced.group(2))) % 2:
        return text  # a text that only begins and ends with code
    return fenced.group(2)


def _without_json(text: str) -> str:
    bare = text.strip("`").strip().removeprefix("json").strip()
    try:
        value = json.loads(bare, strict=False) if bare[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return text
    if isinstance(value, Mapping):
        fields = [name for name in _TEXT_FIELDS if value.get(name)] or (list(value) if len(value) == 1 else [])
        value = value[fields[0]] if fields else None
    lines = value if isinstance(value, list) else [value]
    texts = [line for line in lines if isinstance(line, str)]
    return "\n".join(texts) if texts and len(texts) == len(lines) else text


def _without_offer(text: str) -> str:
    found = _OFFER.search(text, max(1, len(text) - _OFFER_CHARS))
    return text[: found.start()] if found else text


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
