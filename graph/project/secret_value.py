"""Decides whether a value that stands behind a name such as `password` or `토큰` is a secret or ordinary text."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise
from typing import Final

LEAST_CHARS: Final = 8
_LEAST_BITS: Final = 2.0
_LEAST_LETTERS: Final = 12
_LONG_LETTERS: Final = 20
_PASSWORD_MARK: Final = re.compile(r"[!@#$%^&*]")
_DIGIT: Final = re.compile(r"\d")
_IN_PATH: Final = re.compile(r"[/\\.]")
_NOT_IN_WORD: Final = re.compile(r"[^A-Za-z0-9가-힣]+")
_NOT_IN_RUN: Final = re.compile(r"[^A-Za-z0-9]+")
_LETTERS_AND_MARK: Final = re.compile(r"[A-Za-z가-힣][!@#$^][A-Za-z가-힣]")
_PUBLIC: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9A-Fa-f]{40}|[0-9A-Fa-f]{64}"
    r")(?![0-9A-Za-z])"  # UUID, SHA-1, SHA-256
    r"|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}"  # mail address
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_COMMIT: Final = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{7,12}(?![0-9A-Za-z])")
_PLACEHOLDER: Final = re.compile(
    r"<.*|\{\{?.*|\$[{(].*|\$(?:[A-Z_][A-Z0-9_]*|[a-z_]+)|%[\w()]+%?|\[[A-Za-z가-힣_.:-]*\]?|.*\.\.\..*|.*….*"
    r"|(?:your|my|our|the|some|any|new|old|example|sample|dummy|fake|insert|enter|replace|change|put|here|여기|예시|입력|변경)"
    r"(?:[_.-][A-Za-z가-힣_.-]*|[a-z_-]*?(?:me|it|this|here|value|pass(?:word)?|secret|token|key|값|하세요)s?(?:[_-]?here)?)?"
    r"|redacted|masked|hidden|placeholder|unset|undefined|optional|required|none|null|todo|tbd|없음|미정|비공개|생략|가림"
    r"|(?:user|db|api|access|secret|auth|current|confirm|client|root|admin|refresh|[a-z_]{1,24}_)?[_-]?"
    r"(?:name|pass(?:word)?|passwd|pwd|secret|token|key|비밀번호|암호|토큰|키)s?",
    re.IGNORECASE | re.DOTALL,
)
_CODE: Final = re.compile(
    r"[A-Za-z_]{1,80}(?:(?:\.|->|::)[A-Za-z_]\w{0,80}){0,8}[(\[].*|[A-Za-z_]{1,80}(?:(?:\.|->|::)[A-Za-z_]{1,80}){1,8}",
    re.DOTALL,
)
_PATH: Final = re.compile(
    r"[a-z]{2,10}://.*|(?:~|\.{1,2})?/.*|[A-Za-z]:\\.*|(?:[\w.-]{1,60}/){1,20}[\w.-]{0,60}", re.DOTALL
)
# Names of algorithms, formats and models have digits, as secrets do.
_TERM: Final = re.compile(
    r"(?:aes|sha|rsa|hmac|md|bcrypt|scrypt|argon|pbkdf|ed|ecdsa|ecdh|curve|x|oauth|jwt|jws|jwe|hs|rs|es|ps|base|utf|pkcs"
    r"|tls|ssl|cl|o|gpt|v)\d{1,6}[a-z]{0,4}|1password",
    re.IGNORECASE,
)
_WORD: Final = re.compile(
    r"[A-Za-z가-힣]{1,15}\d{0,4}|[A-Za-z가-힣]+|v?\d{1,8}[A-Za-z]{0,3}|\d{1,4}(?:[A-Za-z]{1,3}\d{1,4}){1,2}[A-Za-z]?"
    r"|[가-힣]{0,10}\d{1,8}[가-힣]{1,10}"
)
_CAMEL: Final = re.compile(r"(?:[A-Z]{0,6}[a-z]{2,}+|[A-Z]{2,6}(?=[A-Z][a-z]|$))++")
_UNIT: Final = r"(?:[kmgt]i?b|k|m|b|x|ms|s|sec|min|h|d|days?|px|[cmk]m|kg|th|chars?|bits?|bytes?|tokens?)?"
_KOREAN_UNIT: Final = (
    r"(?:자|개|글자|번|회|일|월|년|주|시|분|초|명|원|만|천|억|차|종|건|가지|배|달|퍼센트|까지|부터|이상|이하|에서)"
    r"[가-힣]*"
)
_COUNTED: Final = re.compile(
    rf"[\d.,:~/%+-]++{_UNIT}[^\w]*+|[가-힣]{{0,10}}[\d.,:~/%+-]++{_UNIT}{_KOREAN_UNIT}[^\w]*+", re.IGNORECASE
)
_ENDING: Final = re.compile(
    r"(?:이었|였|이)?(?:입니다|습니다|습니까|에요|예요|이야|이다|라고|라는|이고|이며|인데|이니|으로|부터|까지|에서|에게|처럼|보다)$"
    r"|(?:야|다|로|을|를|은|는|이|가|에|의|와|과|도|만|요|임|고|며)$",
)
_CLOSING: Final = ".,;:)]}>\"'`”’」』》|\\"


def strip_ending(value: str) -> str:
    """Takes emphasis, brackets, closing marks and a Korean ending off a value; `!` and `?` may belong to it."""
    bare = value.strip("*_").lstrip("([").rstrip(_CLOSING)
    cut = _ENDING.sub("", bare)
    return cut if cut and not "가" <= cut[-1] <= "힣" else bare


def is_placeholder(value: str) -> bool:
    """Returns whether a value only says what should stand there, such as `<password>` or `$PASSWORD`."""
    return bool(_PLACEHOLDER.fullmatch(value))


def is_password(value: str, *, is_explicit: bool) -> bool:
    """Returns whether a value behind a password's name is one.

    Args:
        value: Without quotes and endings.
        is_explicit: It is assigned as in code or settings (`=`, a quoted name); otherwise the text may be prose.
    """
    return not _is_public(value) and (is_explicit or _stands_out(value))


def is_token(value: str, *, is_explicit: bool) -> bool:
    """Returns whether a value behind a key's or token's name looks drawn at random; names, numbers and paths don't.

    In prose the first digits of a commit don't either.
    """
    drawn = _PUBLIC.sub("", value)
    drawn = drawn if is_explicit else _COMMIT.sub("", drawn)
    return not (_is_public(value) or _COUNTED.fullmatch(value)) and _is_random(drawn)


def _stands_out(value: str) -> bool:
    """Returns whether a value behind a password's name in prose is no word, number or name of that prose."""
    if _COUNTED.fullmatch(value):
        return value.isdecimal()
    if not _DIGIT.search(value):
        is_long = value.isascii() and value.isalpha() and len(value) >= _LONG_LETTERS
        return is_long or _is_random(value) or bool(_LETTERS_AND_MARK.search(value))
    return bool(_PASSWORD_MARK.search(value)) or not _is_compound(value)


def _is_public(value: str) -> bool:
    if len(_PUBLIC.sub("", value)) < LEAST_CHARS or _bits(value) < _LEAST_BITS:
        return True
    if is_placeholder(value) or _CODE.fullmatch(value):
        return True
    return bool(_PATH.fullmatch(value)) and not any(_is_random_run(run) for run in _IN_PATH.split(value))


def _is_compound(value: str) -> bool:
    """Returns whether the parts of a value are words and numbers; one part alone must be a term."""
    runs = [run for run in _NOT_IN_WORD.split(value) if run]
    return all(_TERM.fullmatch(run) or (len(runs) > 1 and _WORD.fullmatch(run)) for run in runs)


def _is_random(value: str) -> bool:
    return any(_is_random_run(run) for run in _NOT_IN_RUN.split(value) if run)


def _is_random_run(run: str) -> bool:
    """Returns whether digits stand in the run otherwise than in words and counts, or both cases change all the time."""
    if len(run) < LEAST_CHARS or _bits(run) < _LEAST_BITS:
        return False
    if run.isalpha():
        changes = sum(left.isupper() != right.isupper() for left, right in pairwise(run))
        return len(run) >= _LEAST_LETTERS and changes >= len(run) / 3 and not _CAMEL.fullmatch(run)
    return not _WORD.fullmatch(run)


def _bits(value: str) -> float:
    """Returns the Shannon entropy in bits a character."""
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())
