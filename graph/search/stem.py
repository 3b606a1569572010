"""Stems English words as SQLite's index does, so that every index finds the same forms of a word (Porter, 1980)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

_SHORTEST_BYTES: Final = 3
_LONGEST_BYTES: Final = 64
_VOWELS: Final = b"aeiou"
_KEPT_DOUBLE: Final = b"lsz"

_Suffixes = Sequence[tuple[bytes, bytes]]
# In each step the first suffix that a word has decides.
_RESTORED: Final[_Suffixes] = ((b"at", b"ate"), (b"bl", b"ble"), (b"iz", b"ize"))
_DOUBLE: Final[_Suffixes] = (
    (b"ational", b"ate"), (b"tional", b"tion"), (b"enci", b"ence"), (b"anci", b"ance"), (b"izer", b"ize"),
    (b"logi", b"log"), (b"bli", b"ble"), (b"alli", b"al"), (b"entli", b"ent"), (b"eli", b"e"), (b"ousli", b"ous"),
    (b"ization", b"ize"), (b"ation", b"ate"), (b"ator", b"ate"), (b"alism", b"al"), (b"iveness", b"ive"),
    (b"fulness", b"ful"), (b"ousness", b"ous"), (b"aliti", b"al"), (b"iviti", b"ive"), (b"biliti", b"ble"),
)  # fmt: skip
_SINGLE: Final[_Suffixes] = (
    (b"ical", b"ic"), (b"ness", b""), (b"icate", b"ic"), (b"iciti", b"ic"), (b"ful", b""), (b"ative", b""),
    (b"alize", b"al"),
)  # fmt: skip
_LAST: Final[_Suffixes] = tuple(
    (suffix, b"")
    for suffix in (
        b"al", b"ance", b"ence", b"er", b"ic", b"able", b"ible", b"ant", b"ement", b"ment", b"ent", b"ion", b"ou",
        b"ism", b"ate", b"iti", b"ous", b"ive", b"ize",
    )
)  # fmt: skip


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Returns the stem of a word in lower case; a word that doesn't end with an English letter is its own stem."""
    if not "a" <= word[-1:] <= "z":
        return word
    said = word.encode()
    if not _SHORTEST_BYTES <= len(said) <= _LONGEST_BYTES:
        return word
    said = _without_participle(_without_plural(said))
    if said.endswith(b"y") and _has_vowel(said[:-1]):
        said = said[:-1] + b"i"
    said = _replaced(said, _DOUBLE, _is_measured)
    said = _replaced(said, _SINGLE, _is_measured)
    said = _replaced(said, _LAST, _is_long)
    # A stem may end within a character only where two bytes of it are alike.
    return _without_end(said).decode(errors="replace")


def _without_plural(said: bytes) -> bytes:
    if not said.endswith(b"s") or said.endswith(b"ss"):
        return said
    is_double = (said.endswith(b"sses") and said != b"sses") or (said.endswith(b"ies") and said != b"ies")
    return said[: -2 if is_double else -1]


def _without_participle(said: bytes) -> bytes:
    if said.endswith(b"eed") and said != b"eed":
        return said[:-1] if _is_measured(said[:-3]) else said
    ending = next((ending for ending in (b"ed", b"ing") if said.endswith(ending) and said != ending), b"")
    if not ending or not _has_vowel(said[: -len(ending)]):
        return said
    said = said[: -len(ending)]
    restored = _replaced(said, _RESTORED, lambda _: True)
    if restored != said:
        return restored
    if said[-1] not in _VOWELS + _KEPT_DOUBLE and said[-2:-1] == said[-1:]:
        return said[:-1]
    return said + b"e" if _measure(said) == 1 and _is_closed(said) else said


def _without_end(said: bytes) -> bytes:
    if said.endswith(b"e"):
        rest = said[:-1]
        if _is_long(rest) or (_measure(rest) == 1 and not _is_closed(rest)):
            said = rest
    return said[:-1] if said.endswith(b"ll") and _is_long(said[:-1]) else said


def _replaced(said: bytes, suffixes: _Suffixes, is_right: Callable[[bytes], bool]) -> bytes:
    for suffix, ending in suffixes:
        if said.endswith(suffix) and len(said) > len(suffix):
            rest = said[: -len(suffix)]
            is_joined = suffix != b"ion" or rest[-1:] in (b"s", b"t")
            return rest + ending if is_joined and is_right(rest) else said
    return said


def _is_measured(said: bytes) -> bool:
    return _measure(said) > 0


def _is_long(said: bytes) -> bool:
    return _measure(said) > 1


def _measure(said: bytes) -> int:
    """Returns how often a consonant follows a vowel."""
    kinds = _consonants(said)
    return sum(after and not before for before, after in pairwise(kinds))


def _is_closed(said: bytes) -> bool:
    """Whether it ends with consonant, vowel and consonant, the last none of w, x and y."""
    return said[-1:] not in (b"w", b"x", b"y") and ([False, False, *_consonants(said)][-3:] == [True, False, True])


def _has_vowel(said: bytes) -> bool:
    return any(sign in _VOWELS or (sign == ord("y") and place > 0) for place, sign in enumerate(said))


def _consonants(said: bytes) -> list[bool]:
    """Tells of each byte whether it is a consonant; y is one, but not behind another."""
    kinds: list[bool] = []
    for sign in said:
        is_vowel = sign in _VOWELS or (sign == ord("y") and bool(kinds) and kinds[-1])
        kinds.append(not is_vowel)
    return kinds
