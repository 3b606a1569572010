from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from component.question import CLOSED_CHARS, Part, cut_parts, split_code
from tests.page.reading import say


def test_what_the_user_typed_is_shown_letter_by_letter(page: AppTest) -> None:
    say(page.run(), "**굵게** $5 :red[빨강] <b>b</b>")
    assert "**굵게** $5 :red[빨강] <b>b</b>" in [text.value for text in page.text]


def test_very_long_message_is_shown_in_part(page: AppTest) -> None:
    say(page.run(), "가" * 50_000)
    assert max(len(str(text.value)) for text in page.text) == CLOSED_CHARS
    page.button(key="more_question_session-1_1").click().run()
    assert max(len(str(text.value)) for text in page.text) == 50_000
    page.button(key="more_question_session-1_1").click().run()
    assert max(len(str(text.value)) for text in page.text) == CLOSED_CHARS


def test_fenced_code_of_a_message_is_drawn_as_code(page: AppTest) -> None:
    say(page.run(), "**보세요**\n```python\nx = 1\n\ny = 2\n```\n끝")
    assert [text.value for text in page.text] == ["**보세요**", "끝"]
    assert [(code.value, code.language) for code in page.code] == [("x = 1\n\ny = 2", "python")]


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("a ``` b", [("a ``` b", None)]),
        ("\n a\n\n", [("\n a\n\n", None)]),
        ("a\n```\nb", [("a\n```\nb", None)]),
        ("~~~\n하하", [("~~~\n하하", None)]),
        ("~~~\na\n```\n~~~", [("a\n```", "")]),
        ("````c++\n```\n````\n\n끝\n", [("```", "c++"), ("끝", None)]),
        ("```js {1,2}\na\n```", [("a", "js")]),
        ("```\n```\n```\nb\n```", [("", ""), ("b", "")]),
    ],
)
def test_fences_part_a_message(message: str, parts: list[tuple[str, str | None]]) -> None:
    assert [tuple(part) for part in split_code(message)] == parts


def test_a_closed_message_of_code_is_cut_too() -> None:
    parts = [Part("a" * 30, None), Part("b" * 30, "sh"), Part("c", None)]
    assert cut_parts(parts, 40) == [Part("a" * 30, None), Part("b" * 10, "sh")]
    assert cut_parts(parts, 100) == parts
