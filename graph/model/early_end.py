"""Ends the stream of an answer that only repeats itself, or that is longer than anybody can use."""

from __future__ import annotations

from typing import Final

_CHECKED_CHARS: Final = 256
# Of so many characters at the end of an answer, a sixth at most may be the part that is repeated. Words are repeated
# on purpose less than signs: tables, rows of zeros, separators and laughter may be long.
_WORDS_CHARS: Final = 2_000
_SIGNS_CHARS: Final = 4_000
_LEAST_TIMES: Final = 6
_LEAST_LETTERS: Final = 3
_PROBE_CHARS: Final = 24


class EarlyEndSignal(Exception):  # noqa: N818 - a signal, no error: it only ends the call
    """The answer is ended here; what was said of it counts."""


class EarlyEnd:
    """Hears the text of one attempt of a call.

    Usage:
        >>> end = EarlyEnd()
        >>> end.hear("The answer.")

    Args:
        most_chars: How long it may become; None for any length.
    """

    def __init__(self, most_chars: int | None = None) -> None:
        self._most_chars = most_chars
        self._end = ""
        self._chars = 0
        self._unchecked_chars = 0

    def hear(self, text: str) -> None:
        """Takes the next piece.

        Raises:
            EarlyEndSignal: The answer is to end.
        """
        self._end = (self._end + text)[-_SIGNS_CHARS:]
        self._chars += len(text)
        self._unchecked_chars += len(text)
        if self._most_chars is not None and self._chars > self._most_chars:
            raise EarlyEndSignal
        if self._unchecked_chars >= _CHECKED_CHARS:
            self._unchecked_chars = 0
            if repeats_itself(self._end):
                raise EarlyEndSignal

    def restart(self) -> None:
        """Forgets what was heard: the call is tried again."""
        self._end, self._chars, self._unchecked_chars = "", 0, 0


def repeats_itself(text: str) -> bool:
    """Returns True if a text ends with nothing but one passage, letter for letter, over and over."""
    for chars in (_WORDS_CHARS, _SIGNS_CHARS):
        if len(text) < chars:
            return False
        passage = _repeated(text[-chars:])
        letters = {char for char in passage if char.isalpha()}
        if passage and (chars == _SIGNS_CHARS or len(letters) >= _LEAST_LETTERS):
            return True
    return False


def _repeated(text: str) -> str:
    """Returns the shortest passage that a text consists of from its first letter on; "" if it is said too few times."""
    probe, at = text[-_PROBE_CHARS:], len(text) - _PROBE_CHARS
    while (at := text.rfind(probe, 0, at + _PROBE_CHARS - 1)) >= 0:
        period = len(text) - _PROBE_CHARS - at
        if period > len(text) // _LEAST_TIMES:
            return ""
        if text[period:] == text[:-period]:
            return text[:period]
    return ""
