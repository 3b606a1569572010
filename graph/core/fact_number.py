"""What dates, times, money and quantities look like in Korean and English text."""

from __future__ import annotations

from typing import Final

from graph.core.fact_key import CHAIN
from graph.core.particle import NOUN_END, one_of

START: Final = r"(?<![0-9A-Za-z_])(?<![0-9A-Za-z_][-./:~])"
"""Where a number may start: not inside a word, an identifier or another number."""
_END: Final = r"(?![0-9A-Za-z_])"


_MONTH: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
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
"""Dates and times in figures alone; they come before identifiers, which could be taken for them."""
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
NUMBERS: Final = (
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
"""How many, in a question or for "a few": never compared, and neither is the number word in 몇 천 원."""
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
