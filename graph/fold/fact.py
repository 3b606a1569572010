"""Finds the facts of a text, checks which of them a summary contains, and writes the missing ones in a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import filterfalse
from typing import Final, Literal, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from graph.core.turn import is_repetition, text_of

# The number of groups is bounded: a list of three-digit numbers looks like one number.
_DIGITS: Final = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,7}+(?![0-9])|[0-9]++)"
# 6천520, 3억 5천만, 180만
_AMOUNT: Final = rf"(?:{_DIGITS}(?:[십백천만억조]{{1,3}}+(?:\s?{_DIGITS})?+){{0,6}}+)"
CHAIN: Final = rf"(?:{_AMOUNT}(?:[-./:~∼–]{_AMOUNT}){{0,8}}+)"
"""Regular expression of a whole number: thousands, decimals, Korean magnitudes, a range, a date or time in figures."""

_TOKEN: Final = re.compile(rf"[0-9]++(?=[A-Za-z]+[0-9])[A-Za-z0-9]++|[A-Za-z][A-Za-z0-9]*+|{CHAIN}|[^\W_]|[%$€£¥₩+#°]")
# Bounded repetitions keep the search linear.
_NUMBER: Final = re.compile(CHAIN)
_DATE_DOTS: Final = re.compile(
    r"(?<![0-9A-Za-z_])(?<![0-9A-Za-z_][-./:~])([0-9]{4})\. ([0-9]{1,2})\. (?=[0-9]{1,2}(?![0-9]))"
)
_WIDE: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_RANGE_MARK: Final = str.maketrans("~∼–/", "----")
_SHORT: Final = re.compile(r"(?<![0-9.])0(?=[0-9](?![0-9.]))")


def narrow(text: str) -> str:
    """Returns a text with full-width forms as ASCII and no-break spaces as spaces; offsets don't change."""
    return text.translate(_WIDE).replace("\u00a0", " ").replace("\u3000", " ")


def key_of(text: str) -> str:
    """Returns a text's comparison key: tokens between single spaces, with a space at each end; " " without tokens.

    A token is a number, an ASCII word, a currency or unit mark, or a single other letter, so that Hangul is found
    whatever particle follows. "AUTH-4821" equals "auth 4821", "1,800,000원" "1800000 원"; "17" is not in "170",
    "1.7" or "K17".
    """
    dated = _DATE_DOTS.sub(r"\1-\2-", narrow(text))
    return "".join([" ", *(f"{_canonical(match[0])} " for match in _TOKEN.finditer(dated))])


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
랑 나 야 요 인 고
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


_TITLE: Final = one_of("""
씨 과장 부장 차장 대리 팀장 사장 회장 대표 교수 박사 선생 의원 장관 총리 대통령 감독 기자 변호사 검사 판사 의사 간호사
앵커 아나운서 작가 선수 코치 위원장 후보 대변인 원장 실장 국장 본부장 상무 전무 매니저 주임 가수
""")
_SURNAME: Final = (
    "[김이박최정강조윤장임한오서신권황안송류유홍전고문양손배백허남심노하곽성차주우구민진지엄채원천방공현함변염"
    "추도소석선설마길표명기반왕옥육인맹제모탁국]"
)
_COMMON_SURNAME: Final = "[김이박최정강조윤임오서권황송류홍]"
# Words before a title that begin like a surname.
_NO_NAME: Final = one_of("""
주연 조연 신인 유명 인기 남자 여자 남성 전직 현직 양측 이번 전임 현역 주인공 고객 손님 부모 하나 선생 사장 부장 원장
의장 조교 명예 남녀 남주 신임 정식 전문 담당 인간 최고 한국 강력 서울 성우 주치 모든 기성 국회 변호 구단 반장 소속
원작 최종 전담 도지 장인 장모 이사 과장 차장 공주 진행 전체 현지 대학 국내 정부 지도 주장 외국 동료 해당 한편 민주
우리 이런 그런 방송 제작 연출 공동 마지막 천재 기존 정말 국가 국무 신체 국민 차기 이름 유가 체육 원내 반대
""")
_NO_SIR: Final = "(?!날|글|말|솜|아저|아가|불|홀|마음|맵|눈)"
_PLACE: Final = one_of("""
대학교 대학원 고등학교 중학교 초등학교 경찰서 엔터테인먼트 게스트하우스 연구소 미술관 박물관 위원회 은행 그룹 전자
항공 호텔 공항 병원 료칸 신문 일보 협회 재단 법원 구청 시청 센터 공원 빌딩 극장 역
""")
# 지역, 구역, 무역 …: words that end in 역 but are no stations.
_NO_STATION: Final = "(?<![지무통방전영용해광현주단반번권수노병배]역)(?<![^입]구역)"
_LATIN_WORD: Final = r"[A-Z][A-Za-z0-9]{1,30}+(?:['’&-][A-Za-z0-9]{1,30}+)?(?<!['’]s)"
_LATIN_NAME: Final = rf"{_LATIN_WORD}(?: {_LATIN_WORD}){{0,4}}(?![A-Za-z0-9_])"
# Capitalised within a sentence, but no names.
_NO_LATIN_NAME: Final = (
    r"(?!(?:I'|Never|The|This|That|It|If|But|And|So|OK|Okay|Yes|No|Please|Also|Then|We|You|My|In|On|A)(?![A-Za-z]))"
)

NAMES: Final = (
    rf"(?<![가-힣])(?!{_NO_NAME})(?P<fact>{_SURNAME}[가-힣]{{1,2}})\s?{_TITLE}님?{NOUN_END}",
    rf"(?<![가-힣])(?!{_NO_NAME})(?P<fact>{_SURNAME}[가-힣]{{2}})(?:님|\s(?:군|양)){NOUN_END}",
    r"(?<![가-힣])(?P<fact>[가-힣]{2,5})(?=\s?\([0-9]{2}(?:세\)|[)·,]))",
    rf"(?<![가-힣]){_NO_SIR}(?P<fact>[가-힣]{{2,6}})\s씨{NOUN_END}",
    rf"(?<![가-힣]){_COMMON_SURNAME}(?:모\s?|\s)?{_TITLE}님?{NOUN_END}",
    r"이름[은이]\s(?P<fact>[가-힣]{2,5}?)(?=이?고|이?에요|예요|입니다|이?야|이?라)",
    r"(?<![가-힣])[저나]는\s(?P<fact>[가-힣]{2,5}?)(?=이?라고)",
    rf"(?<![0-9A-Za-z가-힣])[가-힣A-Za-z]{{2,10}}{_PLACE}{_NO_STATION}{NOUN_END}",
    rf"(?<=[a-z0-9,;:가-힣)] ){_NO_LATIN_NAME}{_LATIN_NAME}",
    rf"(?<![A-Za-z0-9_.'’-]){_LATIN_WORD}(?: {_LATIN_WORD}){{1,4}}(?![A-Za-z0-9_])",
    r"(?<![A-Za-z0-9_.-])[A-Z]{2,12}(?![A-Za-z0-9_])",
    r"(?<=[가-힣\s(·,])[A-Z][A-Za-z]{2,30}(?=[가-힣(·])",
)


START: Final = r"(?<![0-9A-Za-z_])(?<![0-9A-Za-z_][-./:~])"
"""Where a number may start: not inside a word, an identifier or another number."""
_END: Final = r"(?![0-9A-Za-z_])"


_MONTH: Final = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_DAY: Final = r"[0-9]{1,2}(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:,?\s[0-9]{4})?"
_DATE_UNIT: Final = r"(?:년대|년도|주년|개월|개년|세기|분기|시즌|주일|주기|년|월(?!드)|일|주(?!자|인|차|택))"
_PART_OF_DAY: Final = r"(?:(?:오전|오후|새벽|아침|저녁|밤|낮)\s?)?"
_TIME_UNIT: Final = r"(?:시간|시(?!즌)|분(?!기)|초)"
_WHEN: Final = (
    r"(?:\s?(?:초반|중반|후반|중순|하순|초순|이후|이전|전|후|뒤|말|초)(?=(?:에|까지|부터|의|은|는)?(?![가-힣])))?"
)

DATES_BY_SIGN: Final = (
    rf"{START}[0-9]{{4}}(?:[-./][0-9]{{1,2}}){{2}}(?![0-9])",
    rf"{START}[0-9]{{4}}\. [0-9]{{1,2}}\. [0-9]{{1,2}}(?![0-9])",
    rf"{START}[0-9]{{1,2}}:[0-9]{{2}}(?::[0-9]{{2}})?(?:\s?[ap]\.?m\.?|\s?[AP]M)?(?![0-9A-Za-z:])",
)
"""Dates and times in figures only; tried before identifiers, which would match them too."""
DATES: Final = (
    rf"(?<![A-Za-z]){_MONTH}\s{_DAY}{_YEAR}(?![0-9A-Za-z:])",
    rf"{START}{_DAY}\s(?:of\s)?{_MONTH}{_YEAR}{_END}",
    rf"(?<![A-Za-z]){_MONTH}\s[0-9]{{4}}{_END}",
    rf"{START}[0-9]{{1,2}}\s?(?:[ap]m{_END}|[ap]\.m\.|[AP]M{_END})",
    rf"{_PART_OF_DAY}{START}{CHAIN}여?\s?{_TIME_UNIT}(?:\s?{CHAIN}\s?{_TIME_UNIT})*(?:\s?반{NOUN_END})?{_WHEN}",
    rf"{START}{CHAIN}여?\s?{_DATE_UNIT}(?:\s?{CHAIN}\s?{_DATE_UNIT})*{_WHEN}",
)
DAYS: Final = (
    r"(?<![가-힣])[월화수목금토일]요일",
    r"(?<![A-Za-z])(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day(?=s?(?![A-Za-z]))",
)
MONEY: Final = (
    rf"[$€£¥₩]\s?{CHAIN}(?:\s?(?:[kKmM]|bn|million|billion|thousand){_END})?",
    rf"{START}{CHAIN}여?\s?(?:원|달러|엔(?![터진])|유로(?!파)|위안|파운드)",
    rf"{START}{CHAIN}\s?(?:won|dollars?|euros?|yen|USD|KRW|EUR|JPY|GBP|bucks){_END}",
    rf"(?<![A-Za-z])(?:USD|KRW|EUR|JPY|GBP)\s?{CHAIN}",
)

_COUNTER: Final = one_of("""
킬로미터 킬로그램 센티미터 센티 킬로 미터 그램 리터 퍼센트 포인트 헥타르 기가바이트 메가바이트 기가 메가 바이트 페이지
차례 가지 마리 그루 글자 단계 학년 학기 층 번째 번 개국 개 명 인분 인승 인치 인(?![데가지것분승치]) 건 회말 회초 회차
회 위 점대 점 살 세트 세 배 호선 호기 호 권 장 편 화 탄 기 대 곳 병 잔 쪽 자리 자 줄 등급 등 급 강 연승 승 패 골 표 석
채 척 통 판 팀 사람 박 종류 종 부 막 라운드 차전 차 과목 문항 쌍 켤레 벌 평 도 단 집 발 루 홀 사 선 심
""")
_SPACED_COUNTER: Final = one_of("""
명 개 건 회 번 위 점 살 배 층 곳 가지 마리 병 권 장 편 번째 차례 박 페이지 킬로 미터 퍼센트 포인트 사람 줄 잔 대 쪽
단계
""")
_UNIT: Final = (
    r"(?:(?:millisecond|second|sec|minute|min|hour|hr|day|night|week|month|year|person|time|line|row|character|token"
    r"|request|user|item|file|page|byte|mile|meter|metre|pound|degree|worker|retry|guest|ticket|room)s?"
    r"|people|percent|feet|inches|retries|ms|km|kg|cm|mm|[KMGT]i?B|[kMG]bps|[kMG]?Hz|s|h|m|g|x)"
)
_LIST_MARK: Final = r"(?:(?<=^)|(?<=^[\s|*-])|(?<=^\s\s)|(?<=^\| ))[0-9]{1,2}[.)]\s"
# Whole, as its parts would be three facts: 0113 496 0144, (02) 123-4567, +82 10 1234 5678.
_PHONE: Final = (
    r"(?:\+[0-9]{1,3}[ .-](?:\(0\)[ .-]?)?[0-9]{1,4}|\([0-9]{2,5}\)|0[0-9]{1,4})"
    r"[ .-]?[0-9]{3,4}[ .-][0-9]{4}(?![0-9A-Za-z_])"
)
NUMBERS: Final = (
    rf"{START}{_PHONE}",
    rf"{START}{CHAIN}\s?(?:%|°C?|℃)",
    rf"{START}{CHAIN}[A-Za-z]{{1,4}}{_END}",
    rf"{START}{CHAIN}[\s-]?{_UNIT}{_END}",
    rf"{START}{CHAIN}여?{_COUNTER}",
    rf"{START}{CHAIN}여?\s{_SPACED_COUNTER}{NOUN_END}",
    rf"(?!{_LIST_MARK}){START}{CHAIN}{_END}",
)

_KO_NUMBER: Final = one_of("""
한두 두세 서너 열두 열한 다섯 여섯 일곱 여덟 아홉 스무 서른 마흔 수십 수백 수천 이삼 백만 천만 첫 한 두 세 네 열 백 천
""")
_KO_COUNTED: Final = one_of("""
번째 가지 마리 사람 시간 차례 마디 종류 남자 여자 배우 아들 딸 친구 나라 주인공 작품 달러 개월 글자 번 개 명 주 잔 병
편 장 살 곳 분 권 대 줄 골 쌍 채 회 건 방 손 배 표 원 갑 폭 판 달
""")
_EN_NUMBER: Final = "(?i:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|half an?)"
COUNTS: Final = (
    rf"(?<![가-힣])(?!한편|한대|천장|세대|열병){_KO_NUMBER}\s?{_KO_COUNTED}{NOUN_END}",
    rf"(?<![A-Za-z]){_EN_NUMBER}[\s-]{_UNIT}{_END}",
)
_MONTH_OR_HOUR: Final = one_of("년 월 일 시 초 주 개국")
INDEFINITE: Final = (
    rf"(?<![가-힣])[십백천]?몇\s?(?:십|백|천|만|억)?\s?(?:{_KO_COUNTED}|{_COUNTER}|{_MONTH_OR_HOUR}){NOUN_END}",
)
"""Indefinite amounts, "how many" or "a few": never compared, nor is the number word in 몇 천 원."""
_VAGUE_WORD: Final = one_of("""
이날 오늘 어제 내일 모레 그제 전날 다음날 이튿날 전일 작년 올해 내년 지난해 재작년 지난달 이달 내달 지난주 주말 평일
하루 이틀 사흘 나흘 열흘 보름 일주일 반년 일년 매년 매해 매달 매주 매일 크리스마스 설날 추석 한글날 삼일절 광복절 여름
가을 겨울 상반기 하반기 오전 오후 새벽 아침 저녁 자정 정오 새해 신년 연말 연초 이듬해 전년 당일 하나 둘 셋 한번 한개
한마디 한가지
""")
VAGUE: Final = (
    rf"(?<![가-힣]){_VAGUE_WORD}{NOUN_END}",
    rf"(?<![가-힣])(?:이번|다음|지난|올)\s?(?:주|달|해|시즌|여름|가을|겨울|봄|초|말){NOUN_END}",
    r"(?<![A-Za-z])(?i:today|tomorrow|yesterday|tonight|(?:next|last|this) (?:week|month|year))(?![A-Za-z])",
)
"""Words of time and number that are too common, or too soon out of date, to be compared."""


Kind = Literal[
    "rule", "negation", "identifier", "code", "link", "email", "path",
    "money", "date", "number", "quoted", "name", "count", "vague",
]  # fmt: skip
""""count" is a quantity in words; "vague" is too common to be compared: 오늘, 하나, today."""

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
    # JSON keys are no quoted terms.
    r"(?<![0-9A-Za-z가-힣.!?…])[\"“](?P<fact>[^\"“”\n]{2,40})[\"”](?!\s?:)",
    r"[「『《〈](?P<fact>[^「『《〈」』》〉\n]{1,40})[」』》〉]",
)


_BESIDE_NUMBER: Final = r"[0-9]\s?[A-Za-z가-힣]|[A-Za-z가-힣.$€£¥₩]\s?[0-9]"
# The third is a precondition for trying the patterns, as most lines are short and fail it.
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
    """The patterns of a kind, and a pattern that a line must match before they are tried."""

    kind: Kind
    patterns: tuple[re.Pattern[str], ...]
    needed: re.Pattern[str]


PATTERNS: Final = tuple(
    FactPatterns(kind, tuple(map(re.compile, patterns)), re.compile(needed)) for kind, patterns, needed in _TABLE
)
"""Each matches only text that no earlier one matched; a group named `fact` is the fact, else the whole match."""
QUOTED: Final = tuple(re.compile(pattern) for pattern in _QUOTED)
"""Matched independently, as a quoted term may contain other facts."""


_SENTENCE_END: Final = re.compile(r"(?<=[.!?。！？])\s+")
_MAX_CHARS: Final = 120
_KNOWN_WORDS: Final = 4_096

# Where an English order begins; elsewhere "always" and "never" are mostly narrative.
_ORDER: Final = r"(?:^|[,;:]\s|\b(?:please|and|but|so)\s)"
_FORBIDS: Final = re.compile(
    r"절대(?:로)?[^.!?\n]{0,40}?(?:안|못|말|마|않|없|금지|싫|빼)"
    r"|지\s?(?:마(?![가-힣]{0,12}(?:련|음))|말(?:아|고|것|기|자|라| 것))"
    r"|(?:은|는|도|면|선|건)\s(?:절대(?:로)?\s)?안\s?(?:돼|되|됩)|(?:하|되|쓰|가|넣)면\s?안"
    r"|(?<![가-힣])빼\s?(?:주|고|줘|달|라)|(?<![가-힣])(?:제외|금지|사양|불가)(?:하|해|로|입|예|이|[.!?]|$)"
    r"|알레르기|알러지|못\s?먹|안\s?먹|(?<![가-힣])(?:피해|삼가)\s?(?:주|줘)|그만\s?(?:해|하)"
    r"|(?:없이|말고|않게|않도록|않았으면)\s[^.!?\n]{0,40}?(?:주세요|줘|해요|하세요|부탁|주십시오|바랍|합시다|해라|좋겠)"
    rf"|(?i:{_ORDER}(?:(?:never|avoid|leave out|stop|no more|(?:do not|don['’]t)(?! worry| forget))\s\w)"
    r"|\b(?:must never|must not|mustn['’]t|not allowed|forbidden|allergic|under no circumstances|no longer allowed)\b"
    r"|\b(?:you|we|they|it)\sshould(?:n['’]t|\snot|\snever)\s|^no\s(?!one|matter|problem|worries|idea|way|doubt)\w"
    r"|\bI\s(?:don['’]t|do not|can['’]t|cannot)\s(?:want\s(?!to)|like|eat|drink)\b"
    r"|\bwithout\s\w+[^.!?\n]{0,40}?\bplease\b)"
)
_RULES: Final = re.compile(
    r"(?<![가-힣])(?:앞으로(?:는|도)?|항상|언제나|반드시|매번|꼭)\s[^.!?\n]{0,60}?(?:주세요|줘|해요|하세요|부탁|주십시오|바랍|합니다|해야|할\s?것|답해|써)"
    rf"|(?i:\bfrom now on\b|{_ORDER}(?:always|make sure|be sure to|every time you)\s(?!\w+ing\b))"
)
# A question about a prohibition forbids nothing: "what did I say must never be used?".
_ASKS: Final = re.compile(
    r"(?:라고|다고|자고|하게)\s?(?:말씀)?(?:한|했|하신|하셨|말한|말했)[^.!?。！？\n]{0,60}[?？]$"
    r"|(?i:^(?:(?:and|so|but|exactly)\s)?(?:which|what|who|why)\b[^\n]*[?？]$)"
)
_FIRST_PERSON: Final = re.compile(r"알레르기|알러지|못\s?먹|안\s?먹|(?i:allergic|\bI\s)")
# Wording of summaries. In a user's message these words alone make no fact: "never" may be narrative there.
_TOLD: Final = re.compile(
    r"절대|금지|제외|항상|언제나|반드시|무조건|앞으로는|규칙|안\s?(?:돼|되|됩|된|됨)|(?<![가-힣])안 [가-힣]"
    r"|지\s?(?:마(?:세요|십시오|라|요|시고|셔)?(?=[\s.,!~…]|$)|말(?:아|고|자|것|기|라)|않기|않아야)"
    r"|(?i:(?:^|[,;:.!—-]\s*|\b(?:please|and|but|so)\s+)(?:just\s+)?(?:do not|don['’]t)\s"
    r"|(?:^|[;:)]\s+|\b(?:please|and|but|you)\s+)(?:never|always|avoid)\s|\bat all times\b"
    r"|\buser\b[^.!?\n]{0,40}?\b(?:never|always|not to|does not|doesn['’]t|avoid|avoids|forbids)\b"
    r"|\bmust(?:n['’]t)?\s(?!be\b|have\b)|\b(?:shall|should)(?:\s+not|n['’]t)\s(?!be\b)"
    r"|\b(?:not allowed|forbid(?:den|s)?|forbade|prohibit(?:ed|s)?|under no circumstances)\b"
    r"|\b(?:i|we)\s+(?:do not|don['’]t|never)\s+(?:want|like|eat|drink|use|accept|allow)\b)"
)
_NEGATED: Final = re.compile(
    r"않|못|금지|제외|싫|없|불가|피하|피할|피해|아니|아닌|안\s?(?:돼|되|됩|된|됨|먹|씀|쓰|함|하|할|해|타|감|가)|(?<![가-힣])안\s|지\s?[마말]"
    r"|말\s?것|말고|(?<![가-힣])[빼뺀뺄]|사양|알레르기|알러지|그만|삼가|거부|반대"
    r"|(?i:\b(?:no|not|never|without|avoid\w*|exclud\w*|forb\w*|ban(?:ned|s)?|prohibit\w*|except|skip|allerg\w*|hate\w*"
    r"|cannot|none|refus\w*|against|leave out|instead of)\b|n['’]t\b)"
)
_HANGUL: Final = re.compile(r"[가-힣]+")
_VERB_END: Final = re.compile(r"(?<=[가-힣]{2})(?:하지|하게|하고|하면|해서|하는|하기|지|게|서|면)$")
_NO_CONTENT_LIST: Final = """
절대 절대로 앞으로 앞으로는 앞으로도 항상 언제나 반드시 매번 꼭 그냥 그리고 그런데 제발 정말 아니 그건 그것 이건 이것
저는 제가 나는 내가 우리 주세요 해 줘 주고 주십시오 돼요 돼 됩니다 되요 안 못 마 마세요 말아 말고 말아줘 말아주세요 빼
빼고 빼주세요 빼줘 있어요 있어 없이 하지 하면 금지 제외 알레르기 알러지 a an the to of in on at and or but for with is
are be do don t not no never must mustn should shouldn please always i me my you your it this that from now every time
make sure any so can avoid want like use using used
"""
_NO_CONTENT: Final = frozenset(_NO_CONTENT_LIST.split())


class SummarySentence(NamedTuple):
    """A sentence that an instruction is compared with: its key, and whether it is negated."""

    key: str
    is_negated: bool


def instructions_in(line: str) -> Iterator[tuple[int, int, Literal["negation", "rule"]]]:
    """Yields start, end and kind of each sentence of a line that forbids something or sets a lasting rule.

    A sentence longer than 120 characters gives the stretch around the matched words.
    """
    for start, end in _sentences(line):
        sentence = line[start:end]
        forbidden = _FORBIDS.search(sentence)
        found = forbidden or _RULES.search(sentence)
        if found is None or (_ASKS.search(sentence) and not _FIRST_PERSON.search(found.group())):
            continue
        first, last = start, end
        if end - start > _MAX_CHARS:
            middle = start + found.start()
            first, last = max(start, middle - _MAX_CHARS // 2), min(end, middle + _MAX_CHARS // 2)
        yield first, first + len(line[first:last].rstrip(" .!?。！？~…")), "negation" if forbidden else "rule"


def is_rule(sentence: str) -> bool:
    """Returns True if a sentence forbids something or sets a rule, in a user's or a summary's wording."""
    return any(pattern.search(sentence) for pattern in (_FORBIDS, _RULES, _TOLD))


def instruction_key(sentence: str) -> str:
    """Returns the key of an instruction: the keys of its content words joined by "|"; "" without content words."""
    plain = narrow(sentence)
    words = dict.fromkeys(map(_key_of_word, _HANGUL.findall(plain)))
    others = dict.fromkeys(
        f" {token} " for token in key_of(plain).split() if token.isalnum() and not _HANGUL.match(token)
    )
    return "|".join(word for word in [*words, *others] if word.strip() and word.strip() not in _NO_CONTENT)


def summary_sentences(line: str) -> Iterator[SummarySentence]:
    plain = narrow(line)
    for start, end in _sentences(plain):
        sentence = plain[start:end]
        yield SummarySentence(key_of(sentence), bool(_NEGATED.search(sentence) or _FORBIDS.search(sentence)))


def holds_instruction(key: str, sentences: Iterable[SummarySentence], *, is_negated: bool) -> bool:
    """Returns True if a sentence has at least half of an instruction's words and, if required, is negated."""
    words = key.split("|")
    return any(
        2 * sum(word in sentence.key for word in words) >= len(words)
        for sentence in sentences
        if sentence.is_negated or not is_negated
    )


def _sentences(line: str) -> Iterator[tuple[int, int]]:
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(line)), len(line)]:
        part = line[start:end]
        left = len(part) - len(part.lstrip())
        if part.strip():
            yield start + left, start + len(part.rstrip())
        start = end


@lru_cache(maxsize=_KNOWN_WORDS)
def _key_of_word(word: str) -> str:
    return key_of(_stem(word))


def _stem(word: str) -> str:
    if word in _NO_CONTENT or word[0] in "않못말":
        return ""
    return strip_particle(_VERB_END.sub("", word))


_WEIGHTS: Final[dict[Kind, float]] = {
    "negation": 10.0,
    "rule": 9.0,
    "identifier": 5.0,
    "email": 5.0,
    "link": 4.5,
    "path": 4.5,
    "code": 4.5,
    "money": 4.0,
    "date": 3.5,
    "number": 3.0,
    "name": 2.5,
    "quoted": 2.0,
    "count": 1.5,
    "vague": 0.5,
}
_FIRM_WEIGHT: Final = 4.5
_LITTLE_DIGITS: Final = 2
_ANSWER_WEIGHT: Final = 0.5
_TOOL_WEIGHT: Final = 0.4
# A fold asks for the facts of each of its messages several times: for its request and for each draft.
_KNOWN_TEXTS: Final = 64
_MOST_FIRST: Final = 4_000
_MOST_LAST: Final = 1_000
_INSTRUCTIONS: Final = ("negation", "rule")
_UNCOUNTED: Final = ("count", "vague")
LINE_LABELS: Final[Mapping[Literal["ko", "en"], str]] = {"ko": "사실: ", "en": "Facts: "}


@dataclass(frozen=True)
class Fact:
    """Text that is right or wrong letter for letter: an identifier, a number, a date, a name, a prohibition.

    Attributes:
        text: As written, without a Korean particle behind it.
        key: `key_of`; for a rule or prohibition, its content words (`instruction_key`).
        weight: Cost of losing the fact; above 0.
        is_of_user: True if the user said it; set by `facts_of`.
        is_cell: True in a line that is a row of a table or the output of a machine.
    """

    kind: Kind
    text: str
    key: str
    weight: float = 1.0
    is_of_user: bool = field(default=False, compare=False)
    is_cell: bool = field(default=False, compare=False)

    @property
    def identity(self) -> tuple[str, str]:
        """Equal for facts with the same meaning; a rule or prohibition never equals a fact of another kind."""
        return self.kind if self.kind in _INSTRUCTIONS else "", self.key

    @property
    def says_little(self) -> bool:
        """True for a number of one or two digits without a unit, meaningless out of context."""
        return self.text.isdigit() and len(self.text) <= _LITTLE_DIGITS

    @property
    def is_countable(self) -> bool:
        """False for what is no loss alone: a count in words, a vague word, a bare small number, a table's cell."""
        return self.kind not in _UNCOUNTED and not self.says_little and not self.is_cell

    @property
    def is_firm(self) -> bool:
        """True for rules, prohibitions and identifiers of weight, which take precedence over running text."""
        return self.weight >= _FIRM_WEIGHT


class HeldFacts:
    """Index of a text for looking up many facts; lines may be added."""

    def __init__(self, text: str = "") -> None:
        self._keys = ""
        self._lines: list[str] = []
        self._sentences: list[SummarySentence] = []
        for line in dict.fromkeys(text.split("\n")):
            self.add(line)

    def add(self, line: str) -> None:
        self._keys += f"{key_of(line)}\n"
        self._lines.append(line)

    def has(self, fact: Fact) -> bool:
        if not is_instruction(fact):
            return fact.key in self._keys
        while self._lines:
            self._sentences += summary_sentences(self._lines.pop())
        return holds_instruction(fact.key, self._sentences, is_negated=fact.kind == "negation")


class FactLine(NamedTuple):
    """A line of facts, "" if none fits, and the facts in it, in order."""

    text: str
    facts: tuple[Fact, ...]


@lru_cache(maxsize=_KNOWN_TEXTS)
def facts_in(text: str) -> tuple[Fact, ...]:
    """Returns the facts of a text in order, each once by key; time is linear in the text.

    No fact crosses the end of a line. Of pasted data with thousands of facts not all are returned; see `fact_spans`.
    """
    seen: dict[tuple[str, str], Fact] = {}
    for _, _, fact in fact_spans(text):
        seen.setdefault(fact.identity, fact)
    return tuple(seen.values())


def fact_spans(text: str) -> Iterator[tuple[int, int, Fact]]:
    """Yields start, end and fact for each fact of a text; a quoted term, rule or prohibition may overlap others.

    Beyond about 4,000 facts at the beginning and 1,000 at the end, only rules and prohibitions are searched, up to
    4,000.
    """
    lines = text.split("\n")
    facts_of_line = cache(_facts_of_line)  # pasted data may have a line many times
    found: dict[int, tuple[tuple[int, int, Fact], ...]] = {}
    for indexes, most in ((range(len(lines)), _MOST_FIRST), (reversed(range(len(lines))), _MOST_LAST)):
        left = most
        for index in indexes:
            if left <= 0 or index in found:
                break
            found[index] = facts_of_line(lines[index])
            left -= len(found[index])
    offset = instructions = 0
    for index, line in enumerate(lines):
        if index not in found and instructions < _MOST_FIRST:
            found[index] = facts_of_line(line, only_instructions=True)
        for start, end, fact in found.get(index, ()):
            instructions += is_instruction(fact)
            yield offset + start, offset + end, fact
        offset += len(line) + 1


def _facts_of_line(line: str, *, only_instructions: bool = False) -> tuple[tuple[int, int, Fact], ...]:
    left = {False: _MOST_FIRST, True: _MOST_FIRST}
    found: list[tuple[int, int, Fact]] = []
    for start, end, kind in sorted(
        _scan(narrow(line), only_instructions=only_instructions), key=lambda scanned: scanned[:2]
    ):
        written = line[start:end]
        if (
            left[kind in _INSTRUCTIONS]
            and (key := instruction_key(written) if kind in _INSTRUCTIONS else key_of(written)).strip()
        ):
            left[kind in _INSTRUCTIONS] -= 1
            found.append((start, end, Fact(kind, written, key, _WEIGHTS[kind])))
    return tuple(found)


def facts_of(messages: Sequence[AnyMessage]) -> tuple[Fact, ...]:
    """Returns the facts of messages, heaviest first and then in order; each once, by key.

    The user's facts weigh most, then answers, then tool results. Rules and prohibitions count only in the user's
    messages. Words too common to be compared and repetitions (`is_repetition`) are left out.
    """
    heaviest: dict[tuple[str, str], Fact] = {}
    for message in filterfalse(is_repetition, messages):
        is_users = isinstance(message, HumanMessage)
        share = 1.0 if is_users else _TOOL_WEIGHT if isinstance(message, ToolMessage) else _ANSWER_WEIGHT
        for fact in facts_in(text_of(message)):
            if fact.kind == "vague" or (fact.kind in _INSTRUCTIONS and not is_users):
                continue
            weight = fact.weight * share
            identity = fact.identity
            known = heaviest.get(identity)
            if known is None or known.weight < weight:
                heaviest[identity] = replace(fact, weight=weight, is_of_user=is_users)
    return _by_weight(heaviest.values())


def fact_as_written(text: str, known: Mapping[str, Fact]) -> Fact:
    """Returns the fact stored as this text; `known` has facts that only their context identifies, by key."""
    key = key_of(text)
    found = facts_in(text)
    whole = next((fact for fact in found if is_instruction(fact) or fact.key == key), known.get(key))
    if whole is None:
        return Fact("quoted", text, key, _WEIGHTS["quoted"])
    return replace(whole, text=text, key=instruction_key(text) if is_instruction(whole) else key)


def is_instruction(fact: Fact) -> bool:
    return fact.kind in _INSTRUCTIONS


def missing_from(facts: Iterable[Fact], text: str) -> tuple[Fact, ...]:
    return _divide(facts, text)[1]


def present_in(facts: Iterable[Fact], text: str) -> tuple[Fact, ...]:
    """Returns the facts that a text contains, in order.

    Spacing, case, separators and particles are ignored. A rule or prohibition matches a sentence with at least half of
    its words; for a prohibition the sentence must be negated as well.
    """
    return _divide(facts, text)[0]


def facts_line(missing: Iterable[Fact], language: Literal["ko", "en"], max_chars: int) -> FactLine:
    """Writes facts in one line, `사실: …` or `Facts: …`, in at most `max_chars` characters.

    Skipped are facts that don't fit or are in the line already, and numbers without a meaning of their own.
    """
    return line_within(missing, language, lambda line, _: len(line) <= max_chars)


def line_within(missing: Iterable[Fact], language: Literal["ko", "en"], fits: Callable[[str, Fact], bool]) -> FactLine:
    """Writes the same line while `fits` accepts it; `fits` gets the longer line and the fact added to it."""
    line = ""
    taken: list[Fact] = []
    last: Fact | None = None
    for fact in _by_weight(fact for fact in missing if not fact.says_little):
        if fact.text in line if is_instruction(fact) else line and present_in([fact], line):
            taken.append(fact)
            continue
        longer = LINE_LABELS[language] + fact.text if last is None else f"{line}{_between(last, fact)}{fact.text}"
        if fits(longer, fact):
            line, last = longer, fact
            taken.append(fact)
    return FactLine(line, tuple(taken))


def _between(last: Fact, fact: Fact) -> str:
    """Returns the separator of two facts: a space between identifiers, which takes the fewest tokens, else ", "."""
    is_list = last.kind == fact.kind == "identifier" and not any(char.isspace() for char in last.text + fact.text)
    return " " if is_list else ", "


def _by_weight(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(sorted(facts, key=lambda fact: -fact.weight))


def _divide(facts: Iterable[Fact], text: str) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    held = HeldFacts(text)
    present: list[Fact] = []
    missing: list[Fact] = []
    for fact in facts:
        (present if held.has(fact) else missing).append(fact)
    return tuple(present), tuple(missing)


def _scan(line: str, *, only_instructions: bool) -> Iterator[tuple[int, int, Kind]]:
    found = [
        (*_span(match), kind)
        for kind, patterns, needed in ([] if only_instructions else PATTERNS)
        if needed.search(line)
        for pattern in patterns
        for match in pattern.finditer(line)
    ]
    quoted = [_span(match) for pattern in ([] if only_instructions else QUOTED) for match in pattern.finditer(line)]
    instructions = list(instructions_in(line))
    if not (found or quoted or instructions):
        return
    inner = inner_offsets(line)
    taken = bytearray(len(line))
    for start, end, kind in found:
        # A fact that ends inside a number or a word would be a different fact.
        if not inner[start] and not inner[end] and taken.find(1, start, end) < 0:
            taken[start:end] = b"\x01" * (end - start)
            yield start, end, kind
    for start, last in quoted:
        end = start + len(line[start:last].rstrip(".,!?"))
        if not inner[start] and not inner[end]:
            yield start, end, "quoted"
    for start, end, instruction in instructions:
        # A stretch of a long sentence begins and ends between words.
        first = inner.find(0, start)
        last = inner.rfind(0, first, end + 1)
        if first < last:
            yield first, last, instruction


def _span(match: re.Match[str]) -> tuple[int, int]:
    start, end = match.span("fact" if "fact" in match.re.groupindex else 0)
    part = match.string[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())
