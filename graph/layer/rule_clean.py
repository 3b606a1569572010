"""Decodes rules files and removes their invisible content."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from graph.core.text import plain_text
from graph.value.error import PathError

_LINE_END: Final = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_SYMBOL_CATEGORIES: Final = {"So", "Sm"}
_UNSEEN_CATEGORIES: Final = {"Cc", "Cf", "Cs"}
# Invisible characters of visible or unassigned categories: fillers, selectors, tags, default ignorable characters.
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_JOINERS: Final = {"\u200c", "\u200d"}
_STYLES: Final = {"\ufe0e", "\ufe0f"}
# Characters to check one by one: all but the most common visible ones.
_LOOKED_AT: Final = re.compile(r"[^\n\t -~\xa1-\xac\xae-\u02ff가-힣]")
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_IMPORT: Final = re.compile(r"(?<![^\s(])@(?:(?:~|\.{1,2})?/[\w./-]+|[\w/-][\w./-]*\.[A-Za-z]\w*)")


@dataclass(frozen=True)
class CleanedText:
    """A cleaned text and what was removed; a space replaces each HTML comment.

    An unclosed comment reaches to the end, as in a browser.
    """

    text: str
    invisible_count: int
    comment_count: int


def clean_rules(text: str) -> CleanedText:
    """Removes invisible characters and HTML comments; idempotent.

    Invisible are format characters (tags, bidirectional marks, zero width), controls, fillers and variation selectors.
    Joiners between two letters stay, as several scripts need them, and style selectors after a symbol.
    """
    lines = _LINE_END.sub("\n", text)
    visible = _replace_unseen(lines, lambda _: "")
    # Not "": the text around a comment must not become another comment.
    cleaned, comment_count = _COMMENT.subn(" ", visible)
    return CleanedText(cleaned, len(lines) - len(visible), comment_count)


def show_unseen(text: str) -> str:
    """Replaces invisible characters by their code points, such as `⟦U+200B⟧`, for display."""
    return _replace_unseen(_LINE_END.sub("\n", text), lambda sign: f"⟦U+{ord(sign):04X}⟧")


def count_imports(text: str) -> int:
    """Counts imports such as `@docs/style.md` or `@~/rules` outside of code; none is followed."""
    return len(_IMPORT.findall(_CODE.sub(" ", text)))


def _replace_unseen(text: str, replacement: Callable[[str], str]) -> str:
    def look_at(found: re.Match[str]) -> str:
        before, behind = text[max(0, found.start() - 1) : found.start()], text[found.end() : found.end() + 1]
        return found[0] if _is_seen(found[0], before or " ", behind or " ") else replacement(found[0])

    return _LOOKED_AT.sub(look_at, text)


def _is_seen(sign: str, before: str, behind: str) -> bool:
    if sign in _JOINERS:
        return _is_letter(before) and _is_letter(behind)
    if sign in _STYLES:
        # No ASCII character has styles, and after a comment's ">" the selector would be left alone.
        return not before.isascii() and unicodedata.category(before) in _SYMBOL_CATEGORIES and not _UNSEEN.match(before)
    return unicodedata.category(sign) not in _UNSEEN_CATEGORIES and not _UNSEEN.match(sign)


def _is_letter(sign: str) -> bool:
    # A mark, such as a virama, is part of its letter.
    return unicodedata.category(sign)[0] in "LM" and not _UNSEEN.match(sign)


_LOOKED_AT_BYTES: Final = 8_192
_UTF_16: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass(frozen=True)
class DecodedText:
    """The text of a file or its beginning: whole lines, with U+FFFD for invalid bytes."""

    text: str
    bad_count: int
    unread_bytes: int


def decode_rules(head: bytes, size_bytes: int) -> DecodedText:
    """Decodes UTF-8 with or without a byte order mark, and UTF-16 with one; drops an incomplete last line.

    Raises `PathError` (`binary`) for a NUL in the first 8 KiB.
    """
    codec = _UTF_16.get(head[:2], "utf-8")
    data = head[2:] if codec in _UTF_16.values() else head.removeprefix(codecs.BOM_UTF8)
    if "\0" in data[:_LOOKED_AT_BYTES].decode(codec, "ignore"):
        raise PathError("binary")
    unread_bytes = size_bytes - len(head)
    if unread_bytes > 0:
        whole_lines = data[: _last_line_end(data, "\n".encode(codec))]
        unread_bytes += len(data) - len(whole_lines)
        data = whole_lines
    text = data.decode(codec, "replace")
    bad_count = text.count("\ufffd") - data.decode(codec, "ignore").count("\ufffd")
    return DecodedText(plain_text(text), bad_count, unread_bytes)


def _last_line_end(data: bytes, line_end: bytes) -> int:
    width = len(line_end)
    at = data.rfind(line_end)
    while at > 0 and at % width:  # a match across two characters
        at = data.rfind(line_end, 0, at + width - 1)
    return at + width if at >= 0 else 0
