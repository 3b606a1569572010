from __future__ import annotations

import pytest

from graph.core.text import check_text, has_visible, title_of
from graph.error import InputError

UNSEEN = [
    "",
    " \n\t",
    "\u200b",
    "\u200b\u200b \ufeff",
    "\u2060\u200d",
    "\u3164",
    "\u115f\u1160",
    "\u2800",
    "\ufe0f",
    "\x00",
]
SEEN = ["a", "가", "\u200b.\u200b", "😀", "❤\ufe0f", "ㅋ", "\u0301", "١", "$"]


@pytest.mark.parametrize("text", UNSEEN)
def test_text_of_which_nothing_is_seen_is_refused_as_empty(text: str) -> None:
    assert not has_visible(text)
    with pytest.raises(InputError) as caught:
        check_text(text, max_chars=100)
    assert caught.value.reason == "empty"


@pytest.mark.parametrize("text", SEEN)
def test_anything_that_is_seen_is_a_message(text: str) -> None:
    check_text(text, max_chars=100)


def test_title_is_the_first_line_that_shows_anything() -> None:
    assert title_of("\u200b\n\u3164\n# 서버 이전 계획\n둘째 줄") == "서버 이전 계획"
