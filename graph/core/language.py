"""Detects the script of a text, so that a summary follows the user's language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage

from graph.core.attached import own_words
from graph.core.turn import IMAGE_MARK, text_of
from prompt.system.framing import Language

_NOT_OWN_WORDS: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|^[^\S\n]*+>[^\n]*|\"[^\"\n]*\"", re.DOTALL | re.MULTILINE
)
_QUOTES: Final = (("“", "”"), ("「", "」"))
_SCRIPTS: Final = (
    ("ko", re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")),
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")),
    ("cyrillic", re.compile(r"[\u0400-\u04ff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff]")),
    ("latin", re.compile(r"[A-Za-z\u00c0-\u024f]")),
)
# A protocol's speakers look like those of a conversation, so they are left out with what they say.
_PASTED: Final = re.compile(
    r"```.*?(?:```|\Z)|^[^\S\n]*+(?:>|\[(?:user|assistant|system|tool|previous summary)\]|</?[a-z])[^\n]*",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_ASCII_SCRIPTS: Final = _SCRIPTS[-1:]
_OWN_SHARE: Final = 0.2
_MIN_WORDS: Final = 4
_MIN_OWN_WORDS: Final = 2
# A longer message is judged by so much of its beginning and of its end.
_END_CHARS: Final = 5_000
_KNOWN_TEXTS: Final = 16


def user_language(messages: Iterable[AnyMessage]) -> str | None:
    """Returns the script of most of the user's messages, each judged by itself; None if there are no words.

    Each message has one vote, so that a long text that the user pastes doesn't outvote what the user says. A fifth of
    Hangul words is enough for "ko": Korean text may consist mostly of Latin terms, and other text has none. Of equal
    scripts the one that was found first counts.
    """
    votes = Counter(script for message in messages if (script := _script_of(message)) is not None)
    return max(votes, key=lambda script: votes[script]) if votes else None


def user_scripts(messages: Iterable[AnyMessage]) -> frozenset[str]:
    """Returns every script that one of the user's messages has at least two own words in."""
    return frozenset(
        script for message in messages for script, count in _own_words(message).items() if count >= _MIN_OWN_WORDS
    )


def session_language(opening: AnyMessage | None) -> Language:
    """Returns the language of a session's fixed sentences by its first message; Korean if that has no words."""
    script = user_language([] if opening is None else [opening])
    return "ko" if script in (None, "ko") else "en"


def is_written_in(text: str, scripts: Collection[str]) -> bool:
    """Whether a text is in one of these scripts; also true if this can't be decided (no script, or too few words)."""
    if not scripts or len(text.split(maxsplit=_MIN_WORDS)) < _MIN_WORDS:
        return True
    shares = _shares(_count_words(_without_quoted(text)))
    return not shares or any(shares.get(script, 0) >= _least_share(script) for script in scripts)


@lru_cache(maxsize=_KNOWN_TEXTS)
def own_lines(text: str, script: str) -> str:
    """Returns a user's text without what was pasted into it.

    That is files, blocks of code, and lines that are quoted, in another script, markup, or a protocol's with their
    speaker.
    """
    return "\n".join(line for line in _PASTED.sub(" ", own_words(text)).split("\n") if is_written_in(line, {script}))


def _least_share(script: str) -> float:
    return 1 - _OWN_SHARE * 2 if script == "latin" else _OWN_SHARE


def _script_of(message: AnyMessage) -> str | None:
    """Returns the script of one message of the user, None if it has no words."""
    text = _own_text(message)
    lines = text.splitlines()
    # What the user asks stands before or behind a long text that is pasted.
    for counts in (_first_counts(lines), _first_counts(reversed(lines))):
        if counts["ko"] >= _MIN_OWN_WORDS and counts["ko"] >= counts.total() / 2:
            return "ko"
    shares = _shares(_count_words(text))
    for script in ("ko", "ja"):
        if shares.get(script, 0) >= _OWN_SHARE:
            return script
    return max(shares, key=lambda script: shares[script]) if shares else None


def _first_counts(lines: Iterable[str]) -> Counter[str]:
    """Returns the counts of the first line that has any words."""
    return next((counts for line in lines if (counts := _count_words(line))), Counter())


def _own_text(message: AnyMessage) -> str:
    if not isinstance(message, HumanMessage):
        return ""
    text = own_words(text_of(message)).replace(IMAGE_MARK, " ")
    return _without_quoted(text if len(text) <= 2 * _END_CHARS else f"{text[:_END_CHARS]}\n{text[-_END_CHARS:]}")


def _without_quoted(text: str) -> str:
    """Returns a text without code, addresses and quotations."""
    left = _NOT_OWN_WORDS.sub(" ", text)
    for opening, closing in _QUOTES:
        left = _without_pairs(left, opening, closing)
    return left


def _without_pairs(text: str, opening: str, closing: str) -> str:
    """Returns a text without what stands between two marks in one line.

    A pattern would look for the closing mark to the end of the line from each opening mark again.
    """
    kept: list[str] = []
    at = 0
    while (begin := text.find(opening, at)) >= 0 and (end := text.find(closing, begin)) >= 0:
        line_end = text.rfind("\n", begin, end)
        kept += (text[at:begin], " ") if line_end < 0 else (text[at : line_end + 1],)
        at = (end if line_end < 0 else line_end) + 1
    return "".join(kept) + text[at:]


def _own_words(message: AnyMessage) -> Counter[str]:
    """Counts the user's own words by script, outside code and quotes; none in other messages."""
    return _count_words(_own_text(message))


def _count_words(text: str) -> Counter[str]:
    """Counts words by script; a word counts for the first script of the list that it contains."""
    counts: Counter[str] = Counter()
    for word, times in Counter(text.split()).items():
        for name, pattern in _ASCII_SCRIPTS if word.isascii() else _SCRIPTS:
            if pattern.search(word):
                counts[name] += times
                break
    return counts


def _shares(counts: Counter[str]) -> dict[str, float]:
    return {script: count / counts.total() for script, count in counts.items()}
