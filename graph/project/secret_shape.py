"""The table of secrets known by their form: tokens with a prefix, private keys, addresses with a password."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from graph.project.secret_value import is_placeholder

# Where a prefix may end a common word, it begins behind no letter, digit or underscore of ASCII.
_START: Final = r"(?<![A-Za-z0-9_])"
_SEGMENT: Final = "[A-Za-z0-9_-]"
_JWT_START: Final = r"(?<![A-Za-z0-9_-])"
_PEM_HEAD: Final = r"-----BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----"
_PEM_TAIL: Final = r"(?:[^-]++|-(?!----))*+-----END [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----"
_PEM_REST: Final = r"(?:(?:\s|\\[nr]){0,8}[A-Za-z0-9+/]{16,}+={0,2})++"

# Every pattern runs in linear time: its first characters are fixed, or it can't begin inside what it failed on, and no
# repetition is followed by one of the same characters. A group, if there is one, is the secret within the match, unless
# a placeholder stands there.
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
    """Yields start, end and kind of each secret that is known by its form; in no order, and they may overlap."""
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            start, end = match.span(pattern.groups)
            if not (pattern.groups and is_placeholder(match[1])):
                yield start, end, kind
