"""The patterns of facts, by kind: identifiers, amounts, dates, numbers, names, quoted terms."""

from __future__ import annotations

import re
from typing import Final, Literal

from graph.fold.fact_key import CHAIN, NOUN_END, RATIO, one_of

TITLE: Final = one_of("""
씨 과장 부장 차장 대리 팀장 사장 회장 대표 교수 박사 선생 의원 장관 총리 대통령 감독 기자 변호사 검사 판사 의사 간호사
앵커 아나운서 작가 선수 코치 위원장 후보 대변인 원장 실장 국장 본부장 상무 전무 매니저 주임 가수
수간호사 간호부장 사무장 원무과장 행정실장 부원장 센터장 지점장 점장 소장 반장 계장 이사 대표이사 부사장 수석 책임 선임
연구원 연구소장 조교 주무관 사무관 약사 영양사 물리치료사 치위생사 세무사 회계사 노무사 법무사 변리사 설계사 엔지니어
디자이너 개발자 기획자 인턴 사원 코디네이터 담당자
""")
# Words of other meanings, too: only behind a whole name.
RANK: Final = one_of("경위 경장 경사 순경 경감 경정 조사관 수사관 상담원 상담사 사정사 손해사정사 중개사 소방관 경찰관")
OFFICE: Final = one_of("""
손해사정사 사정사 조사관 심사역 감정인 경위 경사 경장 경감 순경 형사 집주인 임대인 임차인 세입자 중개사 공인중개사
건물주 기사 강사 교사 담임 주치의 전문의 설비사 정비사 소방관 사서 통역사 번역가 편집자 디렉터 책임자 총무 회계 감사
대행 비서 운영자 관리인 관리자 담당 상담사 상담원 심리사 트레이너 미용사 요리사 셰프 목수 인테리어 도배사 고객 거래처
발주처 피해자 가해자 증인 목격자 동승자 보호자 후견인 상속인 신랑 신부 사회자 동승 팀원 동료 매부 처남 사위 며느리 남편
아내 아들 딸 동생 형 누나 오빠 언니 엄마 아빠 어머니 아버지 할머니 할아버지 이모 삼촌 고모 조카 사촌 손자 손녀 막내 첫째
둘째 친구 룸메이트 선배 후배 사수 운전자 상대방 환자 계약자 피보험자 대리인 신청인 경찰관
""")
_SAID_NAME: Final = r"(?=\s?님|\s씨|이?에요|예요|입니다|이라고|라고|이고(?![가-힣])|[이가은는](?![가-힣])|\s?[(,.)]|$)"
_COMPANY: Final = one_of("""
법무법인 세무법인 회계법인 특허법인 노무법인 의료법인 재단법인 사단법인 유한회사 주식회사
""")
# A verb before a title: 하는데 후보.
NO_VERB: Final = r"(?<![는데를에며고면던럼게죠까요뿐된될됐했])(?<!한[테다])(?<!유능한)(?<!성실한)"
SURNAME: Final = (
    "[김이박최정강조윤장임한오서신권황안송류유홍전고문양손배백허남심노하곽성차주우구민진지엄채원천방공현함변염"
    "추도소석선설마길표명기반왕옥육인맹제모탁국]"
)
_COMMON_SURNAME: Final = "[김이박최정강조윤임오서권황송류홍]"
# Words before a title that begin like a surname.
NO_NAME: Final = one_of("""
주연 조연 신인 유명 인기 남자 여자 남성 전직 현직 양측 이번 전임 현역 주인공 고객 손님 부모 하나 선생 사장 부장 원장
의장 조교 명예 남녀 남주 신임 정식 전문 담당 인간 최고 한국 강력 서울 성우 주치 모든 기성 국회 변호 구단 반장 소속
원작 최종 전담 도지 장인 장모 이사 과장 차장 공주 진행 전체 현지 대학 국내 정부 지도 주장 외국 동료 해당 한편 민주
우리 이런 그런 방송 제작 연출 공동 마지막 천재 기존 정말 국가 국무 신체 국민 차기 이름 유가 체육 원내 반대 한시
""")
_NO_SIR: Final = "(?!날|글|말|솜|아저|아가|불|홀|마음|맵|눈)"
_PLACE: Final = one_of("""
대학교 대학원 고등학교 중학교 초등학교 경찰서 엔터테인먼트 게스트하우스 연구소 미술관 박물관 위원회 은행 그룹 전자
항공 호텔 공항 병원 료칸 신문 일보 협회 재단 법원 구청 시청 센터 공원 빌딩 극장 역
""")
# 지역, 구역, 무역 …: words that end in 역 but are no stations.
_NO_STATION: Final = "(?<![지무통방전영용해광현주단반번권수노병배]역)(?<![^입]구역)"
_LATIN_WORD: Final = r"[A-Z][A-Za-z0-9]{1,30}+(?:['’&][A-Za-z0-9]{1,30}+|-[A-Z0-9][A-Za-z0-9]{0,30}+)?(?<!['’]s)"
_LATIN_NAME: Final = rf"{_LATIN_WORD}(?: {_LATIN_WORD}){{0,4}}(?![A-Za-z0-9_])"
# Capitalised within a sentence, but no names.
_NO_LATIN_NAME: Final = (
    r"(?!(?:I'|Never|The|This|That|It|If|But|And|So|OK|Okay|Yes|No|Please|Also|Then|We|You|My|In|On|A)(?![A-Za-z]))"
)

_LATIN_TITLE: Final = one_of("""
Professor Doctor Councilmember Councillor Mayor Senator Judge Director Manager Officer Inspector Captain Sergeant Nurse
Engineer Architect Superintendent Principal Dean Chair Chairman Chairwoman
""")
NAMES: Final = (
    rf"(?<![가-힣])(?!{NO_NAME})(?P<fact>{SURNAME}[가-힣]{{1,2}}){NO_VERB}\s?{TITLE}님?{NOUN_END}",
    rf"(?<![가-힣])(?!{NO_NAME})(?P<fact>{SURNAME}[가-힣]{{2}})(?<![한된적의인른]){NO_VERB}\s?{RANK}님?{NOUN_END}",
    rf"(?<![가-힣])(?P<fact>{_COMMON_SURNAME}(?<!이)\s{RANK})님?{NOUN_END}",
    rf"(?<![가-힣])(?:{TITLE}|{OFFICE})\s(?![가-힣]{{0,2}}{TITLE}|[가-힣]?{RANK}|{NO_NAME})(?P<fact>{SURNAME}[가-힣]{{2}}){_SAID_NAME}",
    rf"(?<![가-힣])(?:{_COMPANY}|㈜|\(주\))\s?[가-힣A-Za-z]{{2,10}}?{NOUN_END}",
    rf"(?<![가-힣])(?!{NO_NAME})(?P<fact>{SURNAME}[가-힣]{{2}})(?:님|\s(?:군|양)){NOUN_END}",
    r"(?<![가-힣])(?P<fact>[가-힣]{2,5})(?=\s?\([0-9]{2}(?:세\)|[)·,]))",
    rf"(?<![가-힣]){_NO_SIR}(?P<fact>[가-힣]{{2,6}})\s씨{NOUN_END}",
    rf"(?<![가-힣])(?P<fact>{_COMMON_SURNAME}(?:모\s?|\s)?{TITLE})님?{NOUN_END}",
    r"(?:이름|성함|성명)[은이]\s(?P<fact>[가-힣]{2,5}?)(?=이?고|이?에요|예요|입니다|이?야|이?라)",
    r"(?<![가-힣])[저나]는\s(?P<fact>[가-힣]{2,5}?)(?=이?라고)",
    rf"(?<![0-9A-Za-z가-힣])[가-힣A-Za-z]{{2,10}}{_PLACE}{_NO_STATION}{NOUN_END}",
    r"(?<![A-Za-z0-9_.'’-])[A-Z][A-Za-z0-9]{1,30}\+{1,2}(?![A-Za-z0-9_+])",
    rf"(?<![A-Za-z0-9_.'’-])(?:Dr|Mr|Mrs|Ms|Prof|{_LATIN_TITLE})\.?\s(?P<fact>{_LATIN_NAME})",
    rf"(?<![A-Za-z0-9_.'’-])St\.\s{_LATIN_NAME}",
    rf"(?<![A-Za-z0-9_.'’-]){_LATIN_WORD}(?: {_LATIN_WORD}){{1,4}}(?![A-Za-z0-9_])",
    rf"(?<=[a-z0-9,;가-힣] ){_NO_LATIN_NAME}{_LATIN_NAME}",
    # Behind a colon an item or a sentence may begin.
    rf"(?<=[:)] ){_NO_LATIN_NAME}{_LATIN_NAME}(?![ -][a-z])",
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
    # April 20-May 8, April 6-24, 20 May-8 June
    rf"(?<![A-Za-z]){_MONTH}\s{_DAY}\s?[-–]\s?(?:{_MONTH}\s)?{_DAY}{_YEAR}(?![0-9A-Za-z:/])",
    rf"{START}{_DAY}(?:\s{_MONTH})?\s?[-–]\s?{_DAY}\s{_MONTH}{_YEAR}{_END}",
    rf"{START}[0-9]{{1,2}}:[0-9]{{2}}[-~∼–][0-9]{{1,2}}:[0-9]{{2}}(?![0-9A-Za-z:])",
    rf"{START}[0-9]{{4}}(?:[-./][0-9]{{1,2}}){{2}}(?![0-9])",
    rf"{START}[0-9]{{4}}\. [0-9]{{1,2}}\. [0-9]{{1,2}}(?![0-9])",
    rf"{START}[0-9]{{1,2}}:[0-9]{{2}}(?::[0-9]{{2}})?(?:\s?(?:[ap]m|[ap]\.m\.|[AP]M))?(?![0-9A-Za-z:])",
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
_KO_HOUR: Final = one_of("한 두 세 네 다섯 여섯 일곱 여덟 아홉 열 열한 열두")
DAYS: Final = (
    # 한시 is "for a time" as well.
    rf"(?<![가-힣])(?!한시(?!\s?[반0-9]|에|부터|까지|쯤|경|정각)){_PART_OF_DAY}{_KO_HOUR}\s?시(?![간즌])(?:\s?{CHAIN}\s?분|\s?반)?{NOUN_END}",
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
차례 가지 마리 그루 글자 단계 학년 학기 층 번째 번지 번
개국 개 명 인분 인승 인치 인(?![데가지것분승치]) 건 회말 회초 회차
회 위 점대 점 살 세트 세 배 호선 호기 호 권 장 편 화 탄 기 대 곳 병 잔 쪽 자리 자 줄 등급 등 급 강 연승 승 패 골 표
석(?!유) 채 척 통 판 팀 사람 박 종류 종 부 막 라운드 차전 차 과목 문항 쌍 켤레 벌 평 도 단 집 발 루 홀 사 선 심
""")
_SPACED_COUNTER: Final = one_of("""
명 개 건 회 번 위 점 살 배 층 곳 가지 마리 병 권 장 편 번째 차례 박 페이지 킬로 미터 퍼센트 포인트 사람 줄 잔 대 쪽
단계
""")
_UNIT: Final = (
    r"(?:(?:millisecond|second|sec|minute|min|hour|hr|day|night|week|month|year|person|time|line|row|character|token"
    r"|request|user|item|file|page|byte|mile|meter|metre|pound|degree|worker|retry|guest|ticket|room|record|server|laptop"
    r"|order|label|partition|message|replica|node|pod|seat|unit|email|customer|patient|employee|student|member|column|card"
    r"|attempt|table|chair|car|bag|bottle|piece|lesson|session|case|class|school|site|store|branch|dollar|connection|word"
    r"|slide|paragraph|sentence|chapter|commit|approval|dose|tablet)s?"
    r"|people|mg|ml|kWh|kW|dB|rpm|kcal|lbs?|oz|px|boxes|batches|copies|classes|branches|percent|feet|inches|retries|ms|km|kg|cm|mm|[KMGT]i?B|[kMG]bps|[kMG]?Hz|s|h|m|g|x)"
)
_LIST_MARK: Final = r"(?:(?<=^)|(?<=^[\s|*-])|(?<=^\s\s)|(?<=^\| ))[0-9]{1,2}[.)]\s"
# Whole, as its parts would be three facts: 0113 496 0144, (02) 123-4567, +82 10 1234 5678.
_PHONE: Final = (
    r"(?:\+[0-9]{1,3}[ .-](?:\(0\)[ .-]?)?[0-9]{1,4}|\([0-9]{2,5}\)|0[0-9]{1,4})"
    r"[ .-]?[0-9]{3,4}[ .-][0-9]{4}(?![0-9A-Za-z_])"
)
NUMBERS: Final = (
    rf"{START}{_PHONE}",
    RATIO,
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
# An option, a choice, how often: no fact outside its sentence.
OPTIONS: Final = (
    rf"{START}[0-9]{{1,2}}번(?!째|\s?(?:출구|게이트|승강장|버스|홈|방|국도|척추)){NOUN_END}",
    rf"(?<![가-힣]){_KO_NUMBER}\s?(?:번째|번|가지|곳|차례|종류){NOUN_END}",
    rf"{START}[0-9]{{1,2}}(?:번째|차(?!전)){NOUN_END}",
)
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
    "rule", "negation", "preference", "choice", "identifier", "code", "link", "email", "path",
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
# A full stop behind a path isn't its own.
_SEGMENT: Final = r"\.?[A-Za-z0-9_@+-]{1,80}+(?:\.[A-Za-z0-9_@+-]{1,80}+){0,8}+"
_BRANCHES: Final = (
    (
        r"(?<![A-Za-z0-9_./-])(?:feature|feat|hotfix|bugfix|fix|release|chore|refactor|spike|origin|upstream|renovate)"
        r"/[A-Za-z0-9][A-Za-z0-9._/-]{0,80}(?<![./-])"
    ),
)
_PATHS: Final = (
    r"(?<![A-Za-z0-9_])(?:[A-Za-z]:|\\\\[A-Za-z0-9_.-]{1,60})\\(?:[A-Za-z0-9_.$\\-]|[가-힣]{1,20}+(?=[A-Za-z0-9_\\-])){1,200}(?<![.])",
    rf"(?<![A-Za-z0-9_./~<가-힣-])(?:~|\.{{1,2}})?(?:/{_SEGMENT}){{2,20}}",
    r"(?<![A-Za-z0-9_./~<가-힣-])(?:~|\.{1,2})?/[A-Za-z][A-Za-z0-9_.-]{1,80}(?<![.])",
    r"(?<![A-Za-z0-9_./-])(?:[A-Za-z0-9_.-]{1,60}+/){1,20}[A-Za-z0-9_-]{1,60}+\.[A-Za-z][A-Za-z0-9]{0,9}",
    rf"(?<![A-Za-z0-9_./-])[A-Za-z0-9_-]{{1,60}}+(?:\.[a-z]{{1,10}})?\.{_FILE_TYPE}(?![A-Za-z0-9_])",
)
_LETTER_AND_DIGIT: Final = r"(?=[A-Za-z0-9_./-]{0,40}[0-9])(?=[A-Za-z0-9_./-]{0,40}[A-Za-z])"
# mid-50s, 14GB, 2nd, 3.5x, 48-hour
_NO_QUANTITY: Final = (
    r"(?!(?:to|mid|early|late|pre|post)-[0-9])(?![0-9][0-9.,]{0,20}+(?:[A-Za-z]{1,4}(?![A-Za-z0-9_-])|-[a-z]{2}))"
)
# Offsets within a program: 0x19
_NO_OFFSET: Final = r"(?!0x[0-9A-Fa-f]{1,4}(?![0-9A-Za-z]))"
# Sizes of paper
_NO_PAPER: Final = r"(?![AB][3-6](?![A-Za-z0-9_-]))"
_IDENTIFIERS: Final = (
    (
        rf"(?<![A-Za-z0-9_]){_NO_PAPER}{_NO_QUANTITY}{_NO_OFFSET}{_LETTER_AND_DIGIT}"
        r"[A-Za-z0-9_]{1,60}+(?:[-.][A-Za-z0-9_]{1,60}+){0,6}(?:\+{1,2}(?![A-Za-z0-9+]))?"
    ),
)
_PLATE_LETTER: Final = "[가나다라마거너더러머버서어저고노도로모보소오조구누두루무부수우주바사아자배하허호]"
_TOWN: Final = "[가-힣]{1,4}[시군구읍면]"
_ROAD: Final = r"[가-힣]{2,8}[로길]\s?[0-9]{1,4}(?:-[0-9]{1,4})?(?:번길\s?[0-9]{1,4}(?:-[0-9]{1,4})?)?"
_NUMBERED: Final = (
    # Cars and documents: 83다 4127, 제2026-03318호
    rf"(?<![0-9A-Za-z.,-])[0-9]{{2,3}}{_PLATE_LETTER}\s?[0-9]{{4}}(?![0-9A-Za-z.,:%-]|\s?[년월일시분원명개건장만억점쪽호동층회대])",
    rf"(?<![가-힣])제\s?(?:[0-9]{{1,6}}(?:-[0-9]{{1,8}}){{1,3}}|[0-9]{{4,8}})호{NOUN_END}",
    # Houses: 만정로 58, 204동 1103호
    rf"(?<![0-9가-힣])(?:{_TOWN}\s)?{_ROAD},?\s(?:[0-9]{{1,4}}동\s?)?[0-9]{{1,5}}[호층]{NOUN_END}",
    rf"(?<![0-9가-힣]){_TOWN}\s{_ROAD}(?![0-9A-Za-z:%]|\s?[명개원])",
    rf"(?<![0-9A-Za-z.,-])[0-9]{{1,4}}동\s[0-9]{{1,5}}호{NOUN_END}",
)
_DEVICES: Final = (r"(?<![A-Za-z0-9_-])[A-Z][A-Z0-9]{1,20}+(?:-[A-Z0-9]{2,20}+){1,4}(?![A-Za-z0-9_-])",)
_SERVICE: Final = one_of("""
svc service api db worker writer reader server proxy gateway cache queue client cli job cron agent bot ui web go js
py rs sdk lib core broker consumer producer controller operator scheduler exporter loader store router prod staging
""")
# self-service, on-the-go: words, no names of services
_NO_SERVICE: Final = (
    r"(?!(?:self|non|re|pre|post|multi|cross|full|single|in|on|off|to|the|of|by|co|well|open|hard|all|per|third|customer"
    r"|room|fast|slow|whole|part|low|high|hit|touch|thin|thick|fat|no|ready|night|day|long|short|good)-)"
)
_SERVICES: Final = (
    rf"(?<![A-Za-z0-9_./-]){_NO_SERVICE}[a-z][a-z0-9]{{1,30}}+(?:-[a-z0-9]{{1,30}}){{0,4}}-{_SERVICE}(?![A-Za-z0-9_-])",
    (
        r"(?<![A-Za-z0-9_./@-])[a-z0-9][a-z0-9-]{0,40}+(?:\.[a-z0-9-]{1,40}+){0,5}"
        r"\.(?:internal|local|lan|corp|com|net|org|io|kr|dev|cloud)(?::[0-9]{2,5})?(?![A-Za-z0-9_-])"
    ),
)
_SETTING_NAME: Final = (
    r"(?<![A-Za-z0-9_./@-])[A-Za-z][A-Za-z0-9]{0,40}+(?:_[A-Za-z0-9]{1,40}+|\.(?!py|js|md|txt|ya?ml|toml|json)[a-z][a-z0-9]"
    r"{1,40}+){1,8}"
)
_SETTING_VALUE: Final = rf"(?:true|false|True|False|on|off|null|None|{CHAIN}(?:ms|s|m|h|%|[KMG]i?B?)?)"
SETTING: Final = re.compile(
    rf"(?P<name>{_SETTING_NAME})(?:\s?=\s?|:\s|\s(?:at|to|is|stays|was)\s|[을를은는이가]\s)(?P<value>{_SETTING_VALUE})(?![A-Za-z0-9_])"
)
"""A setting with its value, matched independently of its name."""
_CODE_WORDS: Final = (
    r"(?<![A-Za-z0-9_.])[a-z_][a-z0-9_]{1,39}+(?:\.[a-z_][a-z0-9_]{1,39}+){1,5}(?:\.[A-Z][A-Za-z0-9]{1,39}+)?(?!\()",
    r"(?<![A-Za-z0-9_.])[a-z_][a-z0-9_]{1,39}+\.[A-Z][A-Za-z0-9]{1,39}+(?!\()",
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
    ("code", _BRANCHES, "/"),
    ("path", _PATHS, r"[/.\\]"),
    ("date", DATES_BY_SIGN, "[0-9]"),
    ("code", _SERVICES, "[-.]"),
    ("code", _CODE_WORDS, "[._A-Z]"),
    ("identifier", _NUMBERED, "[0-9]"),
    ("identifier", _IDENTIFIERS, "[0-9]"),
    ("identifier", _DEVICES, "[A-Z]-[A-Z0-9]"),
    ("money", MONEY, _BESIDE_NUMBER),
    ("date", DATES, _BESIDE_NUMBER),
    ("date", DAYS, "요일|day|시"),
    ("vague", OPTIONS, "번|가지|곳|차"),
    ("number", NUMBERS, "[0-9]"),
    ("name", NAMES, "[A-Z가-힣]"),
    ("vague", INDEFINITE, "몇"),
    ("count", COUNTS, "[A-Za-z가-힣]"),
    ("vague", VAGUE, "[A-Za-z가-힣]"),
)


PATTERNS: Final = tuple(
    (kind, tuple(map(re.compile, patterns)), re.compile(needed)) for kind, patterns, needed in _TABLE
)
"""Kinds with their patterns, of which each matches only text that no earlier one matched; a group named `fact` is the
fact, else the whole match. A line must match the last before they are tried."""
QUOTED: Final = tuple(re.compile(pattern) for pattern in _QUOTED)
"""Matched independently, as a quoted term may contain other facts."""
