"""Feedback on a first draft, for the second request to the summary model."""

from __future__ import annotations

from typing import Final

EMPTY: Final = "The last answer was empty. 직전 답은 비어 있었습니다."
OTHER_LANGUAGE: Final = "The last answer was not in the language of the user's own words. 직전 답은 다른 언어였습니다."
BROKEN_OFF: Final = "The last answer broke off at its length limit. 직전 답은 길이 한도에서 끊겼습니다."


def wrong_length(percent: int, chars: int, *, is_long: bool) -> str:
    """Says how long a draft was and by how many per cent too long or too short."""
    english, korean = ("too long", "길었습니다") if is_long else ("too short", "짧았습니다")
    return f"The last answer was {percent} % {english} ({chars} characters). 직전 답은 {percent} % {korean}."
