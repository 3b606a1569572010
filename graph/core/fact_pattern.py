"""What facts look like: the patterns of each kind, in the order in which they claim their place in a line."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from graph.core.fact_name import NAMES
from graph.core.fact_number import COUNTS, DATES, DATES_BY_SIGN, DAYS, INDEFINITE, MONEY, NUMBERS, VAGUE

Kind = Literal[
    "rule", "negation", "identifier", "code", "link", "email", "path",
    "money", "date", "number", "quoted", "name", "count", "vague",
]  # fmt: skip
"""What a fact is. "count" is a quantity in words; "vague" is too common to be compared: 오늘, 하나, today."""

_LINKS: Final = (r"(?<![A-Za-z])https?://[!#-&(*-;=?-Z^-_a-z|~]{1,300}(?<![.,;:!?])",)
_EMAILS: Final = (
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}+@[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{1,63}){1,5}(?<![-.])",
)
_CODES: Final = (
    r"(?<!`)`(?P<fact>[^`\n]{1,80})`(?!`)",
    r"(?<![A-Za-z0-9_.])[A-Za-z_][A-Za-z0-9_]{1,50}+(?:\.[A-Za-z0-9_]{1,50}+){0,4}\(\)",
)
_FILE_TYPE: Final = (
    "(?:py|js|tsx?|jsx|md|txt|json|ya?ml|toml|csv|sql|sh|pdf|xlsx?|docx?|pptx?|png|jpe?g|html?|css|go|rs|java|cpp|env"
    "|ini|cfg|conf|log|db|zip|lock)"
)
_PATHS: Final = (
    r"(?<![A-Za-z0-9_])[A-Za-z]:\\[A-Za-z0-9_.\\-]{1,200}(?<![.])",
    r"(?<![A-Za-z0-9_./~<가-힣-])(?:~|\.{1,2})?(?:/[A-Za-z0-9_.@+-]{1,80}+){2,20}(?<![.])",
    r"(?<![A-Za-z0-9_./~<가-힣-])(?:~|\.{1,2})?/[A-Za-z][A-Za-z0-9_.-]{1,80}(?<![.])",
    r"(?<![A-Za-z0-9_./-])(?:[A-Za-z0-9_.-]{1,60}+/){1,20}[A-Za-z0-9_-]{1,60}+\.[A-Za-z][A-Za-z0-9]{0,9}",
    rf"(?<![A-Za-z0-9_./-])[A-Za-z0-9_-]{{1,60}}+(?:\.[a-z]{{1,10}})?\.{_FILE_TYPE}(?![A-Za-z0-9_])",
)
_LETTER_AND_DIGIT: Final = r"(?=[A-Za-z0-9_./-]{0,40}[0-9])(?=[A-Za-z0-9_./-]{0,40}[A-Za-z])"
# 14GB, 2nd, 3.5x, 48-hour
_NO_QUANTITY: Final = r"(?![0-9][0-9.,]{0,20}+(?:[A-Za-z]{1,4}(?![A-Za-z0-9_-])|-[a-z]{2}))"
_IDENTIFIERS: Final = (
    rf"(?<![A-Za-z0-9_]){_NO_QUANTITY}{_LETTER_AND_DIGIT}[A-Za-z0-9_]{{1,60}}+(?:[-.][A-Za-z0-9_]{{1,60}}+){{0,6}}",
)
_CODE_WORDS: Final = (
    r"(?<![A-Za-z0-9_.])[a-z_][a-z0-9_]{1,39}+(?:\.[a-z_][a-z0-9_]{1,39}+){1,5}(?:\.[A-Z][A-Za-z0-9]{1,39}+)?(?!\()",
    r"(?<![A-Za-z0-9_])[A-Za-z0-9]{1,60}+(?:_[A-Za-z0-9]{1,60}+){1,10}",
    r"(?<![A-Za-z0-9_])[A-Za-z]{0,30}[a-z][A-Z][A-Za-z0-9]{1,40}",
)
_QUOTED: Final = (
    r"(?<![0-9A-Za-z가-힣.!?…])['‘](?P<fact>[^'‘’\n]{2,40})['’](?![0-9A-Za-z])",
    # The keys of JSON are none.
    r"(?<![0-9A-Za-z가-힣.!?…])[\"“](?P<fact>[^\"“”\n]{2,40})[\"”](?!\s?:)",
    r"[「『《〈](?P<fact>[^「『《〈」』》〉\n]{1,40})[」』》〉]",
)


_BESIDE_NUMBER: Final = r"[0-9]\s?[A-Za-z가-힣]|[A-Za-z가-힣.$€£¥₩]\s?[0-9]"
# The third is what a line must have, or none of the patterns is tried: most lines are short and have little of it.
_TABLE: Final[tuple[tuple[Kind, tuple[str, ...], str], ...]] = (
    ("link", _LINKS, "://"),
    ("email", _EMAILS, "@"),
    ("code", _CODES, "[`(]"),
    ("path", _PATHS, r"[/.\\]"),
    ("date", DATES_BY_SIGN, "[0-9]"),
    ("code", _CODE_WORDS, "[._A-Z]"),
    ("identifier", _IDENTIFIERS, "[0-9]"),
    ("money", MONEY, _BESIDE_NUMBER),
    ("date", DATES, _BESIDE_NUMBER),
    ("date", DAYS, "요일|day"),
    ("number", NUMBERS, "[0-9]"),
    ("name", NAMES, "[A-Z가-힣]"),
    ("vague", INDEFINITE, "몇"),
    ("count", COUNTS, "[A-Za-z가-힣]"),
    ("vague", VAGUE, "[A-Za-z가-힣]"),
)


class FactPatterns(NamedTuple):
    """The patterns of a kind, and what a line needs to be searched for them."""

    kind: Kind
    patterns: tuple[re.Pattern[str], ...]
    needed: re.Pattern[str]


PATTERNS: Final = tuple(
    FactPatterns(kind, tuple(map(re.compile, patterns)), re.compile(needed)) for kind, patterns, needed in _TABLE
)
"""Each takes what none before it took; a group named `fact` is the fact, else the whole is."""
QUOTED: Final = tuple(re.compile(pattern) for pattern in _QUOTED)
"""Found beside the others, as a quoted term may hold them."""
