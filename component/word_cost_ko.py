"""The page's texts on what model calls cost in Korean."""

from __future__ import annotations

from typing import Final

from component.word_cost import CostWords

KOREAN_COST: Final = CostWords(
    title="💰 비용",
    of_session="이 대화: {amount}",
    of_summaries="그중 요약: {amount}",
    of_all="모든 대화: {amount}",
    unpriced="+ 가격이 없는 호출 {count}번",
    estimate="≈는 추정치입니다. 제공자가 보고하지 않은 토큰은 직접 세고, 요약은 캐시 없이 읽은 것으로 칩니다.",
    saved_note="제공자가 캐시를 쓰면 보내지 않은 토큰은 캐시 가격으로 칩니다. 보냈어도 거의 캐시에서 읽었을 것입니다.",
)
