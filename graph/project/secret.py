"""Finds secrets in text: keys and tokens by their form, passwords by the name that they stand behind.

    >>> find_secret("비밀번호는 다음 주에 바꾸기로 했다") is None
    True
    >>> find_secret("비밀번호는 봄날의곰123!").kind
    'password'
    >>> mask_secrets("DB: postgres://app:hunter2hunter@db/main")
    'DB: postgres://app:[secret: password in an address]@db/main'

Nothing is stored or logged, and a match doesn't hold the secret itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Final

from graph.project.secret_shape import SHAPE_KINDS, shaped_secrets
from graph.project.secret_value import LEAST_CHARS, is_password, is_token, strip_ending

_PASSWORD: Final = "password"  # noqa: S105  # the name of a kind
_TOKEN: Final = "key or token"  # noqa: S105  # the name of a kind
SECRET_KINDS: Final = (*SHAPE_KINDS, _PASSWORD, _TOKEN)

# What is longer is judged by so many characters, and masked whole.
_JUDGED_CHARS: Final = 256
_MARK: Final = re.compile(r"\[secret: (?:" + "|".join(map(re.escape, SECRET_KINDS)) + r")\]")
_NAME: Final = re.compile(
    r"""
    (?: (?P<password> pass(?:word|wd|phrase|code) | (?<![a-z])pwd?(?![a-z])
        | (?<![a-z])pass(?=(?:_[a-z0-9]{1,12})?["']?\s{0,3}[=:：]) | secret | credential
        | 비밀번호 | 비번 | 암호 | 패스워드 | 시크릿 )
      | (?: token | (?:api|access|auth|private|secret|master|service|account|client|signing|encryption)[ _-]?key
        | (?<=[_-])key | 토큰 | 키 ) )
    s? (?: [_-][a-z0-9]{1,12} | [0-9]{1,2} )?
    (?P<quote> ["'`”’*]{1,2} )?
    (?: [ ]?(?:값|문자열) )? (?: 는 | 은 | 이 | 가 | 를 | 을 | 도 )?
    (?: (?: [ ](?:[가-힣]{1,8}+|[a-z]{1,12}+) ){1,3} (?=[ ]?[:：]) )?
    (?: \s{0,3} (?P<assigned> :?=>? | [:：|→>(] | -> ) \s{0,3}
      | [ \t]{1,3} (?: (?:is|was|are|now|이제|지금|아직|현재) [ \t]{1,3} ){0,2} )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_QUOTED: Final = re.compile(rf"[\"'`“‘「『]([^\s\"'`”’」』]{{{LEAST_CHARS},}}+)[\"'`”’」』]")
_BARE: Final = re.compile(rf"[^\s<\"'`“‘「『][^\s<]{{{LEAST_CHARS - 1},{_JUDGED_CHARS - 1}}}")
_RUN: Final = re.compile(r"[^\s<]*+")


@dataclass(frozen=True)
class SecretMatch:
    """Where a secret stands in a text.

    Attributes:
        kind: One of `SECRET_KINDS`, such as "GitHub token".
        start: Its first character's place in the text, with composed letters (NFC).
        end: The place behind its last character.
    """

    kind: str
    start: int
    end: int


def find_secret(text: str) -> SecretMatch | None:
    """Returns the first secret of a text, None if there is none; the marks of `mask_secrets` are no secrets."""
    return next(_find_all(unicodedata.normalize("NFC", text)), None)


def mask_secrets(text: str) -> str:
    """Returns the text with a mark such as `[secret: GitHub token]` in each secret's place; idempotent.

    A text with a secret comes back with its letters composed (NFC), one without as it is.
    """
    composed = masked = unicodedata.normalize("NFC", text)
    while found := [*_find_all(masked)]:
        ends = [0, *(match.end for match in found)]
        parts = [masked[end : match.start] + f"[secret: {match.kind}]" for end, match in zip(ends, found, strict=False)]
        # Again, as what was glued to a secret may now stand alone and be seen to be one.
        masked = "".join([*parts, masked[ends[-1] :]])
    return text if masked == composed else masked


def _find_all(text: str) -> Iterator[SecretMatch]:
    """Yields the secrets between the marks in their order; they don't overlap."""
    edges = [0, *(edge for mark in _MARK.finditer(text) for edge in mark.span()), len(text)]
    for start, end in list(pairwise(edges))[::2]:
        yield from (SecretMatch(kind, start + first, start + last) for first, last, kind in _join(text[start:end]))


def _join(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields start, end and kind of each secret; of those that overlap one, with the kind of the first in the table."""
    found = sorted(_rank(text))
    place = 0
    while place < len(found):
        start, end, rank, kind = found[place]
        place += 1
        while place < len(found) and found[place][0] < end:
            _, other_end, other_rank, other = found[place]
            end = max(end, other_end)
            rank, kind = min((rank, kind), (other_rank, other))
            place += 1
        yield start, end, kind


def _rank(text: str) -> Iterator[tuple[int, int, int, str]]:
    for start, end, kind in (*shaped_secrets(text), *_assigned(text)):
        yield start, end, SECRET_KINDS.index(kind), kind


def _assigned(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields the values behind names that say secret. A value ends where the next name begins: all are read once."""
    masked_to = 0
    names = list(_NAME.finditer(text))
    for name, following in zip_longest(names, names[1:]):
        # A name behind which only a space stands is behind the value, which has none.
        limit = following.start() if following and following["assigned"] else len(text)
        value = _value_behind(text, name.end(), limit)
        if value is None or name.start() < masked_to:
            continue
        bare, start, end = value
        sign = name["assigned"] or ""
        is_explicit = "=" in sign or bool(sign and name["quote"] in ("'", '"'))
        is_secret = is_password if name["password"] else is_token
        if is_secret(bare[:_JUDGED_CHARS], is_explicit=is_explicit):
            masked_to = end
            yield start, end, _PASSWORD if name["password"] else _TOKEN


def _value_behind(text: str, place: int, limit: int) -> tuple[str, int, int] | None:
    """Returns a value without quotes and endings, its start, and the end of what is masked if it is a secret."""
    if quoted := _QUOTED.match(text, place):
        return quoted[1], quoted.start(1), quoted.end(1)
    value = _BARE.match(text, place, limit)
    if value is None:
        return None
    bare = strip_ending(value[0])
    start = text.index(bare, place)
    end = start + len(bare)
    rest = _RUN.match(text, end) if len(value[0]) == _JUDGED_CHARS else None
    return bare, start, rest.end() if rest else end
