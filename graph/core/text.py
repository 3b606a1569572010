"""Cleans and checks the text of a message, and makes a session's title of it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from graph.error import InputError

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"
_TITLE_CHARS: Final = 40
# Markdown that a title doesn't begin with.
LEADING_MARKS: Final = "#>*- `"
_BEGINNING: Final = 100
_UNSEEN_CATEGORIES: Final = {"Zs", "Zl", "Zp", "Cc", "Cf"}
# Invisible characters of visible categories: Hangul fillers, the blank braille cell, joiners and selectors.
_UNSEEN: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def plain_text(text: str) -> str:
    """Returns the text as every database and endpoint accepts it.

    NUL and lone surrogates become U+FFFD; a surrogate pair becomes its character.
    """
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
    """Whether the text has a visible character; `str.strip` keeps invisible ones such as a zero-width space."""
    # Most texts begin with one; of a file of ten million line feeds each different sign is looked at once.
    return any(map(_is_visible, text[:_BEGINNING])) or any(map(_is_visible, set(text)))


def _is_visible(sign: str) -> bool:
    return unicodedata.category(sign) not in _UNSEEN_CATEGORIES and not _UNSEEN.match(sign)


def title_of(text: str) -> str:
    """Returns the first visible line of a text as a title, at most 40 characters."""
    line = next((line.strip() for line in text.splitlines() if has_visible(line)), "")
    line = " ".join(line.lstrip(LEADING_MARKS).split()) or line
    return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1].rstrip() + "…"
