"""The tools' descriptions for the model; part of the prefix that a provider caches."""

from __future__ import annotations

from typing import Final

CLOCK: Final = "Tells the current date, time and weekday in a time zone. 현재 날짜, 시각, 요일을 알려 줍니다."
CLOCK_ZONES: Final = "Asia/Seoul, Asia/Tokyo, Europe/London, America/New_York, UTC"
CLOCK_ZONE: Final = f"IANA time zone, e.g. {CLOCK_ZONES}. Empty for the user's own zone."
SEARCH: Final = "Searches the web and returns titles, addresses and excerpts. 웹을 검색합니다."
SEARCH_QUERY: Final = "What to search for, as in a search box."
SEARCH_COUNT: Final = "How many results, 1 to {most}."
REASONING: Final = "Analyses given material to answer a question about it. 주어진 자료를 분석해 질문에 답합니다."
REASONING_MATERIAL: Final = "The text to think about, e.g. search results, whole."
REASONING_QUESTION: Final = "What to work out from it."
RECALL: Final = (
    "Looks up earlier turns of this conversation word for word. Use it for a detail that you don't see, before you guess. "
    "이 대화의 앞선 턴을 원문 그대로 찾아봅니다."
)
RECALL_QUERY: Final = "A few words as they may have been said, e.g. 숙소 예산. Empty to read turns by number."
RECALL_TURNS: Final = "Numbers of turns, e.g. 3 or 2-4. Empty to search all."
