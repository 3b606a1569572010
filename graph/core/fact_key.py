"""Makes the keys by which facts are compared: the same for every spacing, case and separator, never for two numbers."""

from __future__ import annotations

import re
from typing import Final

# A list of numbers of three digits looks like one with any number of groups.
_DIGITS: Final = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,7}+(?![0-9])|[0-9]++)"
# 6천520, 3억 5천만, 180만
_AMOUNT: Final = rf"(?:{_DIGITS}(?:[십백천만억조]{{1,3}}+(?:\s?{_DIGITS})?+){{0,6}}+)"
CHAIN: Final = rf"(?:{_AMOUNT}(?:[-./:~∼–]{_AMOUNT}){{0,8}}+)"
"""Regular expression of a whole number: thousands, decimals, Korean magnitudes, a range, a date or time in figures."""

_TOKEN: Final = re.compile(rf"[0-9]++(?=[A-Za-z]+[0-9])[A-Za-z0-9]++|[A-Za-z][A-Za-z0-9]*+|{CHAIN}|[^\W_]|[%$€£¥₩+#°]")
# Its repetitions are bounded, so that no number is read to its end again and again.
_NUMBER: Final = re.compile(CHAIN)
_DATE_DOTS: Final = re.compile(
    r"(?<![0-9A-Za-z_])(?<![0-9A-Za-z_][-./:~])([0-9]{4})\. ([0-9]{1,2})\. (?=[0-9]{1,2}(?![0-9]))"
)
_WIDE: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_RANGE_MARK: Final = str.maketrans("~∼–/", "----")
_SHORT: Final = re.compile(r"(?<![0-9.])0(?=[0-9](?![0-9.]))")


def narrow(text: str) -> str:
    """Returns a text with full-width forms as ASCII and no-break spaces as spaces; every character keeps its place."""
    return text.translate(_WIDE).replace("\u00a0", " ").replace("\u3000", " ")


def key_of(text: str) -> str:
    """Returns the key of a text: its tokens between single spaces, with a space at each end; " " if it has none.

    A token is a number, an ASCII word, a currency or unit mark, or one other letter, so that Hangul is found whatever
    particle follows. "AUTH-4821" and "auth 4821", "1,800,000원" and "1800000 원", "2027-01-17" and "2027. 1. 17." are
    the same; "17" is not in "170", "1.7", "17:30" or "K17".
    """
    dated = _DATE_DOTS.sub(r"\1-\2-", narrow(text))
    return "".join([" ", *(f"{_canonical(match[0])} " for match in _TOKEN.finditer(dated))])


def inner_places(text: str) -> bytearray:
    """Returns a byte for each place between two characters, 1 where it lies inside a token; a fact never ends there."""
    places = bytearray(len(text) + 1)
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        places[start + 1 : end] = b"\x01" * (end - start - 1)
    return places


def _canonical(token: str) -> str:
    if not "0" <= token[0] <= "9" or _NUMBER.fullmatch(token) is None:
        return token.casefold()
    number = "".join(token.replace(",", "").split()).translate(_RANGE_MARK)
    if number.count(".") == 1 and "-" not in number and ":" not in number:
        return number.casefold()
    return _SHORT.sub("", number.replace(".", "-")).casefold()
