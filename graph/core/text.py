"""Cleans and measures the text of messages, and derives session titles."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage

from graph.core.turn import image_parts, text_of
from graph.value.error import InputError

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"
# What isn't seen: signs that turn round how others are shown, letters that only models see, selectors of variations,
# joiners, fillers.
HIDING: Final = re.compile(
    "[\\x7f-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f"
    "\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]"
)
_TITLE_CHARS: Final = 80
# Markdown that a title doesn't begin with.
LEADING_MARKS: Final = "#>*- `"
_BEGINNING: Final = 100
_UNSEEN_CATEGORIES: Final = {"Zs", "Zl", "Zp", "Cc", "Cf"}


def plain_text(text: str) -> str:
    """Replaces NUL and lone surrogates, which not every database and endpoint accepts, by U+FFFD."""
    if not _UNSTORABLE.search(text):
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\x00", _REPLACEMENT)


def plain_value(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape, returned in its shape
    """Returns a JSON value with `plain_text` applied to every text in it, keys included."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, Mapping):
        return {plain_value(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(item) for item in value]
    return value


def check_text(text: str, *, max_chars: int) -> None:
    """Checks that a text can be a message.

    Raises:
        InputError: `empty` (no visible character) or `too_long` (over `max_chars`).
    """
    if not has_visible(text):
        raise InputError("empty")
    if len(text) > max_chars:
        raise InputError("too_long", f"{len(text)} > {max_chars}")


def has_visible(text: str) -> bool:
    """Returns True if a character is visible; `str.strip` keeps invisible ones such as a zero-width space."""
    # Most texts begin with one; the set keeps a file of ten million line feeds cheap.
    return any(map(_is_visible, text[:_BEGINNING])) or any(map(_is_visible, set(text)))


def _is_visible(sign: str) -> bool:
    return unicodedata.category(sign) not in _UNSEEN_CATEGORIES and not HIDING.match(sign)


def title_of(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if has_visible(line)), "")
    line = " ".join(line.lstrip(LEADING_MARKS).split()) or line
    return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1].rstrip() + "…"


# Its size isn't known here: OpenAI counts 765 for 1,024 x 1,024 pixels, Anthropic some 1,600 at most.
IMAGE_TOKENS: Final = 1_000
_OTHER_WEIGHT: Final = 0.754
_DIGIT_WEIGHT: Final = 0.934
_LONG_NUMBER: Final = re.compile(r"[0-9]{3,}")
_GROUP_DIGITS: Final = 3
_CLASSES: Final = (
    (re.compile(r"[A-Za-z\u00c0-\u024f]"), 0.217),
    (re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]"), 0.811),
    (re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"), 0.717),
    (re.compile(r"[0-9]"), _DIGIT_WEIGHT),
    (re.compile(r"[!-/:-@\[-`{-~\u2010-\u2027\u3000-\u303f\uff01-\uff0f]"), 0.47),
    (re.compile(r"\s"), 0.122),
)


def estimate_tokens(text: str) -> int:
    """Estimates the tokens of a text; 0 for an empty text, else at least 1."""
    if not text:
        return 0
    # Counter counts in C, and a long prompt has 10,000 characters but only some hundred different ones.
    tokens = sum(count * _weight(character) for character, count in Counter(text).items())
    return max(1, round(tokens - sum(_saved(len(number)) for number in _LONG_NUMBER.findall(text))))


def _saved(digits: int) -> float:
    """Returns the excess weight of a number's digits: a number has one token per group, and one to begin it."""
    return digits * _DIGIT_WEIGHT - (1 - -digits // _GROUP_DIGITS)


@lru_cache(maxsize=16_384)
def _weight(character: str) -> float:
    return next((weight for pattern, weight in _CLASSES if pattern.match(character)), _OTHER_WEIGHT)


def message_tokens(message: AnyMessage) -> int:
    """Estimates the tokens of a message: its text, its tool calls as JSON, and `IMAGE_TOKENS` for each image."""
    tokens = estimate_tokens(text_of(message)) + IMAGE_TOKENS * len(image_parts(message))
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            tokens += estimate_tokens(call["name"] + json.dumps(call["args"], ensure_ascii=False))
    return tokens


def measure(message: AnyMessage) -> tuple[int, int]:
    return len(text_of(message)), message_tokens(message)


def sum_tokens(messages: Iterable[AnyMessage]) -> int:
    return sum(message_tokens(message) for message in messages)
