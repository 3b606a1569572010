"""Detects the script of a text, so that a summary follows the user's language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage

from graph.core.turn import text_of
from prompt.system.framing import Language

_NOT_OWN_WORDS: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|^\s*>.*$|\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」", re.DOTALL | re.MULTILINE
)
_SCRIPTS: Final = (
    ("ko", re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")),
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")),
    ("cyrillic", re.compile(r"[\u0400-\u04ff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff]")),
    ("latin", re.compile(r"[A-Za-z\u00c0-\u024f]")),
)
_WORD: Final = re.compile(r"\S+")
_OWN_SHARE: Final = 0.2
_MIN_WORDS: Final = 4


def _word_shares(text: str) -> dict[str, float]:
    """Returns the share of words by script; a word counts for the first script of the list that it contains."""
    scripts = [next((name for name, pattern in _SCRIPTS if pattern.search(word)), "") for word in _WORD.findall(text)]
    counts = Counter(script for script in scripts if script)
    return {script: count / counts.total() for script, count in counts.items()}


def user_language(messages: Iterable[AnyMessage]) -> str | None:
    """Returns the script of the user's own words, outside code and quotes; None if there are none.

    A fifth of Hangul words is enough for "ko": Korean text may consist mostly of Latin terms, and other text has none.
    """
    own = " ".join(_NOT_OWN_WORDS.sub(" ", text_of(m)) for m in messages if isinstance(m, HumanMessage))
    shares = _word_shares(own)
    if not shares:
        return None
    for script in ("ko", "ja"):
        if shares.get(script, 0) >= _OWN_SHARE:
            return script
    return max(shares, key=lambda script: shares[script])


def session_language(opening: AnyMessage | None) -> Language:
    """Returns the language of a session's fixed sentences by its first message; Korean if that has no words."""
    script = user_language([] if opening is None else [opening])
    return "ko" if script in (None, "ko") else "en"


def is_written_in(text: str, language: str | None) -> bool:
    """Whether a text is in that script; also true if this can't be decided (None, or too few words)."""
    words = _WORD.findall(text)
    if language is None or len(words) < _MIN_WORDS:
        return True
    shares = _word_shares(_NOT_OWN_WORDS.sub(" ", text))
    if not shares:
        return True
    if language == "latin":
        return shares.get("latin", 0) >= 1 - _OWN_SHARE * 2
    return shares.get(language, 0) >= _OWN_SHARE
