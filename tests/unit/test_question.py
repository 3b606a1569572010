from __future__ import annotations

import pytest

from component.chat.transcript import Part, cut_parts, split_code


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
