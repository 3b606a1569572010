"""An empty frame of a plan, by the number of days that a request names; knows nothing of what goes into it."""

from __future__ import annotations

import re
from typing import Final

from graph.core.phrase import Language

_PLAN: Final = re.compile(r"계획|일정|플랜|코스|\b(?:plan|schedule|itinerary)\b", re.IGNORECASE)
_TRAVEL: Final = re.compile(r"여행|휴가|관광|\b(?:trip|travel|vacation|holiday|itinerary)\b", re.IGNORECASE)
_DAYS: Final = re.compile(r"(\d+)\s?일(?!\s?[에까])|박\s?(\d+)\s?일|(\d+)[\s-]?days?\b", re.IGNORECASE)
_WEEK: Final = re.compile(r"(?:일|한)\s?주|\bweek", re.IGNORECASE)
_USUAL_DAYS: Final = 3
_MOST_DAYS: Final = 14
_HEADS: Final[dict[Language, tuple[str, str, str, str]]] = {
    "ko": ("일차", "오전", "오후", "저녁"),
    "en": ("Day", "Morning", "Afternoon", "Evening"),
}
_DAYS_OF: Final[dict[tuple[Language, bool], tuple[tuple[str, str, str], ...]]] = {
    ("ko", True): (
        ("이동, 도착", "숙소 확인, 가까운 곳 둘러보기", "저녁 식사, 다음 날 준비"),
        ("가장 가고 싶은 곳", "둘째로 가고 싶은 곳", "쉬는 시간"),
        ("기념품, 짐 정리", "이동", "귀가"),
    ),
    ("ko", False): (
        ("목표와 범위 정하기", "자료 모으기", "하루 정리"),
        ("가장 중요한 일", "이어서 하기", "막힌 점 적기"),
        ("빠진 것 채우기", "점검", "마무리와 다음 할 일"),
    ),
    ("en", True): (
        ("Travel, arrival", "Check in, look around nearby", "Dinner, prepare the next day"),
        ("The place you most want to see", "The second one", "Rest"),
        ("Souvenirs, packing", "Travel", "Home"),
    ),
    ("en", False): (
        ("Set goal and scope", "Collect material", "Review the day"),
        ("The most important task", "Carry on", "Write down what is stuck"),
        ("Fill the gaps", "Check", "Wrap up, next steps"),
    ),
}


def compose_frame(request: str, language: Language) -> str:
    """Returns a table with a row for each day, "" if the request is about no plan."""
    if not _PLAN.search(request):
        return ""
    first, middle, last = _DAYS_OF[language, bool(_TRAVEL.search(request))]
    count = _count_days(request)
    days = [first, *[middle] * (count - 2), last] if count > 1 else [first]
    label = "{}일차" if language == "ko" else "Day {}"
    rows = [" | ".join((label.format(number), *cells)) for number, cells in enumerate(days, start=1)]
    return "\n".join(f"| {row} |" for row in (" | ".join(_HEADS[language]), "--- | --- | --- | ---", *rows))


def _count_days(request: str) -> int:
    numbers = [int(number) for groups in _DAYS.findall(request) for number in groups if number]
    count = numbers[-1] if numbers else 7 if _WEEK.search(request) else _USUAL_DAYS
    return min(max(1, count), _MOST_DAYS)
