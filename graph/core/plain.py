"""Text as every database, endpoint and page takes it; used where text enters, so that all of them hold the same."""

from __future__ import annotations

import re
from typing import Any, Final

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


def plain_text(text: str) -> str:
    """Returns the text with NUL and each half of a character as U+FFFD; two halves that meet are the character."""
    if not _UNSTORABLE.search(text):
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\x00", _REPLACEMENT)


def plain_value(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape, returned in its shape
    """Returns a JSON value with each text in it plain, keys too."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, dict):
        return {plain_value(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(item) for item in value]
    return value
