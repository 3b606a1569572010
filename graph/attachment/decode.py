"""Decodes the bytes of a text file whose encoding nobody says."""

from __future__ import annotations

import codecs
import re
from typing import Final

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What no text has; nearly every binary file has one of them.
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
# A syllable or sign of EUC-KR. Text in CP949 has some; a Western text with one of CP949's rare syllables for each curly
# apostrophe has none.
_EUC_KR: Final = re.compile(rb"[\xa1-\xfe]{2}")


def decode(data: bytes) -> str | None:
    """Returns the text of UTF-8, of UTF-16 with a byte order mark, or of CP949, which has all of EUC-KR.

    Returns:
        None if it is none of these, or binary.
    """
    encodings = ("utf-16",) if data.startswith(_UTF_16) else ("utf-8-sig", "cp949")
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        is_text = "\0" not in text
        if encoding == "cp949":
            is_text = is_text and _EUC_KR.search(data) is not None and not _CONTROL.search(text)
        return text if is_text else None
    return None
