"""Compares text by its tokens: whatever case, spacing, separators or Korean particle it is written with."""

from __future__ import annotations

import re
from typing import Final

from graph.core.remembered import remembered

# The number of groups is bounded: a list of three-digit numbers looks like one number.
_DIGITS: Final = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,7}+(?![0-9])|[0-9]++)"
# 6천520, 3억 5천만, 180만
AMOUNT: Final = rf"(?:{_DIGITS}(?:[십백천만억조]{{1,3}}+(?:\s?{_DIGITS})?+){{0,6}}+)"
CHAIN: Final = rf"(?:{AMOUNT}(?:[-./:~∼–]{AMOUNT}){{0,8}}+)"
"""Regular expression of a whole number: thousands, decimals, Korean magnitudes, a range, a date or time in figures."""

_TOKEN: Final = re.compile(rf"[0-9]++(?=[A-Za-z]+[0-9])[A-Za-z0-9]++|[A-Za-z][A-Za-z0-9]*+|{CHAIN}|[^\W_]|[%$€£¥₩+#°]")
# Bounded repetitions keep the search linear.
_NUMBER: Final = re.compile(CHAIN)
_DATE_DOTS: Final = re.compile(
    r"(?<![0-9A-Za-z_])(?<![0-9A-Za-z_][-./:~])([0-9]{4})\. ([0-9]{1,2})\. (?=[0-9]{1,2}(?![0-9]))"
)
# 제3호 is 3호, and the share 20 대 80 is 20:80.
_ORDINAL: Final = re.compile(r"(?<![가-힣])제\s?(?=[0-9])")
RATIO: Final = r"(?<![0-9A-Za-z.,:])[0-9]{1,3} 대 [0-9]{1,3}(?![0-9A-Za-z.,:]|\s?[명개건석장원살번])"
"""Regular expression of a share in words: 20 대 80."""
_RATIO: Final = re.compile(RATIO)
_WIDE: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_RANGE_MARK: Final = str.maketrans("~∼–/", "----")
_SHORT: Final = re.compile(r"(?<![0-9.])0(?=[0-9](?![0-9.]))")


def narrow(text: str) -> str:
    """Returns a text with full-width forms as ASCII and no-break spaces as spaces; offsets don't change."""
    return text.translate(_WIDE).replace("\u00a0", " ").replace("\u3000", " ")


def keys_of(text: str) -> str:
    """Returns the keys of a text's lines, a line each; unlike `key_of`, what was read of a line isn't read again."""
    return "\n".join(map(_key_of_line, text.split("\n")))


def key_of(text: str) -> str:
    """Returns a text's comparison key: tokens between single spaces, with a space at each end; " " without tokens.

    A token is a number, an ASCII word, a currency or unit mark, or a single other letter, so that Hangul is found
    whatever particle follows. "AUTH-4821" equals "auth 4821", "1,800,000원" "1800000 원"; "17" is not in "170",
    "1.7" or "K17".
    """
    dated = _DATE_DOTS.sub(r"\1-\2-", narrow(text))
    if "제" in dated or " 대 " in dated:
        dated = _RATIO.sub(lambda match: match[0].replace(" 대 ", ":"), _ORDINAL.sub("", dated))
    return "".join([" ", *(f"{_canonical(match[0])} " for match in _TOKEN.finditer(dated))])


_key_of_line = remembered(key_of)


def inner_offsets(text: str) -> bytearray:
    """Returns a byte for each offset, 1 inside a token; no fact begins or ends there."""
    inner = bytearray(len(text) + 1)
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        inner[start + 1 : end] = b"\x01" * (end - start - 1)
    return inner


def _canonical(token: str) -> str:
    if not "0" <= token[0] <= "9" or _NUMBER.fullmatch(token) is None:
        return token.casefold()
    number = "".join(token.replace(",", "").split()).translate(_RANGE_MARK)
    if number.count(".") == 1 and "-" not in number and ":" not in number:
        return number.casefold()
    return _SHORT.sub("", number.replace(".", "-")).casefold()


def one_of(words: str) -> str:
    """Returns a regular expression that matches any of the space-separated words, longest first."""
    return f"(?:{'|'.join(sorted(words.split(), key=len, reverse=True))})"


PARTICLE: Final = one_of("""
에게서는 에서부터 으로부터 에서는 에서도 에서만 에서의 에게는 에게도 으로는 으로도 으로만 으로서 으로써 까지는 까지만
까지도 부터는 이라고 이라는 이라도 이라면 이지만 입니다 이에요 이었고 인데요 에게서 한테서 께서는 에서 에게 한테 께서
으로 까지 부터 보다 처럼 마다 조차 마저 이나 이랑 이며 이고 이자 이다 이죠 이요 인데 라고 라는 하고 에는 에도 에만
로는 로도 로서 로써 과의 와의 과는 와는 만은 만의 만을 이란 밖에 대로 예요 였고 은 는 이 가 을 를 의 에 도 만 로 과 와
랑 나 야 요 인 고 고요 이고요
""")
"""Regular expression of a particle, the longest first."""
NOUN_END: Final = rf"(?={PARTICLE}?(?![가-힣]))"
"""Regular expression of the end of a noun: a particle that ends the word, or the end of the word."""

_PARTICLE_END: Final = re.compile(rf"{PARTICLE}$")
_HANGUL_END: Final = re.compile(r"[가-힣]{1,8}$")
_LEAST_CHARS: Final = 2
# Nouns that end like a particle; the rest would be no noun.
_WHOLE_WORD_LIST: Final = """
회의 주의 동의 강의 논의 정의 문의 합의 건의 고양이 어린이 아이 나이 차이 종이 오이 사이 놀이 먹이 길이 높이 깊이 넓이
전화로 도로 경로 진로 서로 별로 새로 바로 따로 국가 평가 휴가 작가 물가 증가 추가 참가 가격대로 지도 제도 속도 온도
정도 태도 각도 강도 의도 시도 보도 포도 효과 결과 사과 학과 성과 통과 투자 의자 감자 피자 남자 여자 혼자 환자 기만
불만 참고 광고 사고 창고 재고 최고 보고 하나 누나 개인 확인 본인 주인 할인 부인 애인 승인 요인 원인 메인 가을 마을
노을 은 이 필요 주요 중요 수요 개요 소요 분야 시야 평야 사랑 자랑 마이 제이 케이 로마 대만 제주도 경기도 강원도 전라도
경상도 충청도 북해도
"""
_WHOLE: Final = frozenset(_WHOLE_WORD_LIST.split())


def strip_particle(word: str) -> str:
    """Returns a word without the Korean particle at its end.

    The rest has at least two syllables, or one after a space or another script; a noun that merely ends like a particle
    (회의, 지도) stays whole.
    """
    run = _HANGUL_END.search(word)
    found = _PARTICLE_END.search(run[0]) if run and word not in _WHOLE else None
    if run is None or found is None:
        return word
    left = word[: run.start() + found.start()]
    return word if len(left) < _LEAST_CHARS or left[-1].isspace() else left
