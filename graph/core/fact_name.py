"""What names look like: Korean ones by the title or the kind of place behind them, Latin ones by their capitals."""

from __future__ import annotations

from typing import Final

from graph.core.particle import NOUN_END, one_of

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
# 지역, 구역, 무역 …: words that end like a station.
_NO_STATION: Final = "(?<![지무통방전영용해광현주단반번권수노병배]역)(?<![^입]구역)"
_LATIN_WORD: Final = r"[A-Z][A-Za-z0-9]{1,30}+(?:['’&-][A-Za-z0-9]{1,30}+)?(?<!['’]s)"
_LATIN_NAME: Final = rf"{_LATIN_WORD}(?: {_LATIN_WORD}){{0,4}}(?![A-Za-z0-9_])"
# Capitalised in the middle of a sentence, though no name.
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
