"""Finds secrets in text: keys and tokens by their format, passwords by a preceding name.

    >>> find_secret("비밀번호는 다음 주에 바꾸기로 했다") is None
    True
    >>> find_secret("비밀번호는 봄날의곰123!").kind
    'password'
    >>> mask_secrets("DB: postgres://app:hunter2hunter@db/main")
    'DB: postgres://app:[secret: password in an address]@db/main'

Nothing is stored or logged, and a match doesn't contain the secret.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, zip_longest
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
# Names of algorithms, formats and models, which have digits like secrets.
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
    """Removes emphasis, brackets, closing punctuation and a Korean ending; `!` and `?` may be part of the value."""
    bare = value.strip("*_").lstrip("([").rstrip(_CLOSING)
    cut = _ENDING.sub("", bare)
    return cut if cut and not "가" <= cut[-1] <= "힣" else bare


def is_placeholder(value: str) -> bool:
    return bool(_PLACEHOLDER.fullmatch(value))


def is_password(value: str, *, is_explicit: bool) -> bool:
    """True if the value after a password's name is a password; outside assignments (`is_explicit`) it may be prose."""
    return not _is_public(value) and (is_explicit or _stands_out(value))


def is_token(value: str, *, is_explicit: bool) -> bool:
    """True if the value after a key's or token's name looks random; in prose, commit hashes are excluded."""
    drawn = _PUBLIC.sub("", value)
    drawn = drawn if is_explicit else _COMMIT.sub("", drawn)
    return not (_is_public(value) or _COUNTED.fullmatch(value)) and _is_random(drawn)


def _stands_out(value: str) -> bool:
    """True if the value, in prose after a password's name, is no ordinary word, number or name."""
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
    """True if all parts of the value are words and numbers; a single part must be a technical term."""
    runs = [run for run in _NOT_IN_WORD.split(value) if run]
    return all(_TERM.fullmatch(run) or (len(runs) > 1 and _WORD.fullmatch(run)) for run in runs)


def _is_random(value: str) -> bool:
    return any(_is_random_run(run) for run in _NOT_IN_RUN.split(value) if run)


def _is_random_run(run: str) -> bool:
    """True if the run has digits other than in words and counts, or changes case very often."""
    if len(run) < LEAST_CHARS or _bits(run) < _LEAST_BITS:
        return False
    if run.isalpha():
        changes = sum(left.isupper() != right.isupper() for left, right in pairwise(run))
        return len(run) >= _LEAST_LETTERS and changes >= len(run) / 3 and not _CAMEL.fullmatch(run)
    return not _WORD.fullmatch(run)


def _bits(value: str) -> float:
    """Returns the Shannon entropy in bits per character."""
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())


# For prefixes that may end a common word: not after an ASCII letter, digit or underscore.
_START: Final = r"(?<![A-Za-z0-9_])"
_SEGMENT: Final = "[A-Za-z0-9_-]"
_JWT_START: Final = r"(?<![A-Za-z0-9_-])"
_PEM_HEAD: Final = r"-----BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----"
_PEM_TAIL: Final = r"(?:[^-]++|-(?!----))*+-----END [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----"
_PEM_REST: Final = r"(?:(?:\s|\\[nr]){0,8}[A-Za-z0-9+/]{16,}+={0,2})++"

# Every pattern runs in linear time: its first characters are fixed, or it can't start inside a failed match, and no
# repetition is followed by a repetition of the same characters. A group, if any, is the secret within the match, unless
# it is a placeholder.
_SHAPES: Final = (
    ("private key", _PEM_HEAD + "(?:" + _PEM_TAIL + "|" + _PEM_REST + ")"),
    ("JWT", rf"{_JWT_START}eyJ{_SEGMENT}{{8,}}+\.eyJ{_SEGMENT}{{8,}}+\.{_SEGMENT}{{8,}}+"),
    ("AWS key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16,}+"),
    (
        "AWS key",
        r"(?i:secret[_ -]?access[_ -]?key|aws[_ -]?secret[_ -]?key)[\"']?\s{0,3}[=:]\s{0,3}[\"']?([A-Za-z0-9/+]{40,}+)",
    ),
    ("GitHub token", r"gh[pousr]_[A-Za-z0-9]{30,}+"),
    ("GitHub token", r"github_pat_[A-Za-z0-9_]{22,}+"),
    (
        "GitLab token",
        (
            rf"(?:gl(?:pat|ptt|dt|rtr?|cbt|ft|oas|imt|agent|soat|ffct|wt)-|GR1348941){_SEGMENT}{{16,}}+"
            r"(?:\.[A-Za-z0-9]{2,}+){0,3}"
        ),
    ),
    ("Slack token", r"(?:xox[a-z](?:\.xox[a-z])?|xapp)-[A-Za-z0-9-]{10,}+"),
    ("Slack webhook", r"hooks\.slack(?:-gov)?\.com/((?:services|workflows|triggers)/[A-Za-z0-9_/-]{20,}+)"),
    ("Discord webhook", r"discord(?:app)?\.com/api/webhooks/([0-9]{15,20}/[A-Za-z0-9_-]{30,}+)"),
    ("Anthropic key", rf"{_START}sk-ant-{_SEGMENT}{{20,}}+"),
    ("OpenAI key", rf"{_START}sk-(?:proj|svcacct|admin|service|None)-{_SEGMENT}{{20,}}+"),
    ("OpenAI key", rf"{_START}sk-(?:[a-z]{{2,4}}-)?(?:v[0-9]-)?[A-Za-z0-9]{{20,}}+"),
    ("Google key", rf"AIza{_SEGMENT}{{30,}}+"),
    ("Google token", rf"(?:ya29\.|GOCSPX-|{_START}1//0){_SEGMENT}{{20,}}+"),
    ("Hugging Face token", r"(?:hf|api_org)_[A-Za-z0-9]{24,}+"),
    ("Stripe key", rf"{_START}(?:(?:sk|rk)_(?:live|test)|whsec)_[A-Za-z0-9+/]{{16,}}+"),
    ("npm token", r"npm_[A-Za-z0-9]{30,}+"),
    ("PyPI token", rf"{_START}pypi-(?=[a-z-]{{0,40}}+[A-Z0-9_]){_SEGMENT}{{32,}}+"),
    ("Azure key", r"(?i:(?:account|sharedaccess)key)=([A-Za-z0-9+/]{30,}+={0,2})"),
    ("Azure key", r"[?&]sig=([A-Za-z0-9%+/]{30,}+={0,2})"),
    ("Azure key", r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,}+"),
    ("Telegram token", rf"{_START}[0-9]{{8,10}}:{_SEGMENT}{{32,}}+"),
    ("Discord token", rf"{_JWT_START}[MNO]{_SEGMENT}{{23,27}}\.{_SEGMENT}{{6}}\.{_SEGMENT}{{27,}}+"),
    ("SendGrid key", rf"{_START}SG\.{_SEGMENT}{{16,}}+\.{_SEGMENT}{{16,}}+"),
    ("Twilio key", rf"{_START}SK[0-9a-f]{{32,}}+"),
    ("Mail service key", rf"{_START}(?:key-[0-9a-f]{{32,}}+|[0-9a-f]{{32}}-us[0-9]{{1,2}})"),
    ("DigitalOcean token", r"do[opr]_v1_[0-9a-f]{32,}+"),
    ("Shopify token", r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32,}+"),
    ("Databricks token", r"dapi[0-9a-f]{32,}+(?:-[0-9])?"),
    ("Docker token", rf"dckr_[a-z]{{3}}_{_SEGMENT}{{20,}}+"),
    ("Vault token", rf"hv[sbr]\.{_SEGMENT}{{24,}}+"),
    ("Atlassian token", r"AT[A-Z]{3}3xFf[A-Za-z0-9_=-]{40,}+"),
    ("API key", rf"{_START}(?:lin_api|gsk|figd|glsa|sbp|ntn|nvapi|xai|pplx|r8|AGE-SECRET-KEY)[_-]{_SEGMENT}{{30,}}+"),
    (
        "authorization header",
        r"(?i:authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:basic|token)\s{1,3})([A-Za-z0-9+/._~-]{8,}+=*+)",
    ),
    ("authorization header", r"(?i:\bbearer\s{1,3})(?=[A-Za-z+/._~-]{0,200}+[0-9])([A-Za-z0-9+/._~-]{16,}+=*+)"),
    ("password in an address", r"://[^\s:/?#@\[\]]*+:([^\s/<>@]{3,}+)@[A-Za-z0-9\[가-힣]"),
    ("password in a command", r"(?<![\w-])(?:-u|--user)[ =][\"']?[^\s:\"'/]{1,64}+:(?!//)([^\s\"']{6,}+)"),
)

_PATTERNS: Final = tuple((kind, re.compile(pattern)) for kind, pattern in _SHAPES)
SHAPE_KINDS: Final = tuple(dict.fromkeys(kind for kind, _ in _SHAPES))


def shaped_secrets(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields start, end and kind of each secret recognised by its format; unordered, possibly overlapping."""
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span(pattern.groups)
            if not (pattern.groups and is_placeholder(match[1])):
                yield start, end, kind


_PASSWORD: Final = "password"  # noqa: S105  # the name of a kind
_TOKEN: Final = "key or token"  # noqa: S105  # the name of a kind
SECRET_KINDS: Final = (*SHAPE_KINDS, _PASSWORD, _TOKEN)

# A longer value is judged by this many characters, and masked completely.
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
    """The position of a secret in a text with composed letters (NFC); `kind` is one of `SECRET_KINDS`."""

    kind: str
    start: int
    end: int


def find_secret(text: str) -> SecretMatch | None:
    """Returns the first secret of a text, or None; ignores the marks of `mask_secrets`."""
    return next(_find_all(unicodedata.normalize("NFC", text)), None)


def mask_secrets(text: str) -> str:
    """Replaces each secret by a mark such as `[secret: GitHub token]`, in composed letters (NFC); idempotent."""
    composed = masked = unicodedata.normalize("NFC", text)
    while found := [*_find_all(masked)]:
        ends = [0, *(match.end for match in found)]
        parts = [masked[end : match.start] + f"[secret: {match.kind}]" for end, match in zip(ends, found, strict=False)]
        # Repeated, because text adjacent to a secret may now be recognised as a secret.
        masked = "".join([*parts, masked[ends[-1] :]])
    return text if masked == composed else masked


def _find_all(text: str) -> Iterator[SecretMatch]:
    """Yields the secrets between the marks, in order, without overlaps."""
    edges = [0, *(edge for mark in _MARK.finditer(text) for edge in mark.span()), len(text)]
    for start, end in list(pairwise(edges))[::2]:
        yield from (SecretMatch(kind, start + first, start + last) for first, last, kind in _join(text[start:end]))


def _join(text: str) -> Iterator[tuple[int, int, str]]:
    """Merges overlapping secrets; yields start, end, and the kind that is first in the table."""
    found = sorted(_rank(text))
    index = 0
    while index < len(found):
        start, end, rank, kind = found[index]
        index += 1
        while index < len(found) and found[index][0] < end:
            _, other_end, other_rank, other = found[index]
            end = max(end, other_end)
            rank, kind = min((rank, kind), (other_rank, other))
            index += 1
        yield start, end, kind


def _rank(text: str) -> Iterator[tuple[int, int, int, str]]:
    for start, end, kind in (*shaped_secrets(text), *_assigned(text)):
        yield start, end, SECRET_KINDS.index(kind), kind


def _assigned(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields values after names of secrets. A value ends at the next name, so that the text is read once."""
    masked_to = 0
    names = list(_NAME.finditer(text))
    for name, following in zip_longest(names, names[1:]):
        # A name followed by a space alone doesn't end the value: values contain no spaces.
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


def _value_behind(text: str, position: int, limit: int) -> tuple[str, int, int] | None:
    """Returns a value without quotes and endings, its start, and the end of the part to mask."""
    if quoted := _QUOTED.match(text, position):
        return quoted[1], quoted.start(1), quoted.end(1)
    value = _BARE.match(text, position, limit)
    if value is None:
        return None
    bare = strip_ending(value[0])
    start = text.index(bare, position)
    end = start + len(bare)
    rest = _RUN.match(text, end) if len(value[0]) == _JUDGED_CHARS else None
    return bare, start, rest.end() if rest else end
