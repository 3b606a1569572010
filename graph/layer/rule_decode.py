"""Decodes the bytes of a rules file."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Final

from graph.core.text import plain_text
from graph.error import PathError

_LOOKED_AT_BYTES: Final = 8_192
_UTF_16: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass(frozen=True)
class DecodedText:
    """The text of a file, or of its beginning.

    Attributes:
        text: Its whole lines; U+FFFD stands for what is no character.
        bad_count: How often it does.
        unread_bytes: Bytes of the file behind the text.
    """

    text: str
    bad_count: int
    unread_bytes: int


def decode_rules(head: bytes, size_bytes: int) -> DecodedText:
    """Decodes UTF-8 with or without a byte order mark, and UTF-16 with one.

    Args:
        head: The first bytes of a file. If the file is longer, its last line isn't whole and is left out.
        size_bytes: Length of the file.

    Raises:
        PathError: `binary`: NUL stands in its first 8 KiB.
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
    while at > 0 and at % width:  # the end of one character and the beginning of the next
        at = data.rfind(line_end, 0, at + width - 1)
    return at + width if at >= 0 else 0
