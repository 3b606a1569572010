from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from component.chat.live import split_paragraphs

PIECES = (
    "회의는 3~4일 뒤입니다.",
    "A paragraph\nof two lines.",
    "- one\n- two",
    "- one\n\n  still one\n\n- two",
    "1. 하나\n\n   이어짐\n\n2. 둘",
    "3) three",
    "```python\nx = 1\n\n\ny = 2\n```",
    "```\nnever closed\n\nsaid in code",
    "~~~\n\n```\n\n~~~",
    "- item\n\n  ```\n  in\n\nside\n  ```",
    "> quoted\n\n> again",
    "> ```\n> code\n\nbehind it",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "# Heading",
    "Heading\n===",
    "    indented\n\n    code",
    "\tcode",
    "---",
    "*",
    "1.",
    "[link][1]",
    "[1]: http://127.0.0.1/",
    "  [a]: /b",
    "a  \nb",
    "<div>\n\ntext\n\n</div>",
)
RENDERER = MarkdownIt("commonmark").enable("table")
TEXTS = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(("\n", "\n\n", "\n \n", "\n\n\n"))), max_size=8)


@given(TEXTS, st.integers(0, 400))
def test_parts_are_the_text_and_look_like_it(pieces: list[tuple[str, str]], cut: int) -> None:
    whole = "".join(piece + gap for piece, gap in pieces)[: cut or None]
    parts = split_paragraphs(whole, part_chars=1)
    assert "".join(parts) == whole
    assert "".join(RENDERER.render(part) for part in parts) == RENDERER.render(whole)


@given(TEXTS, st.integers(0, 400), st.integers(1, 60))
def test_a_text_that_grows_is_split_as_if_it_had_come_at_once(
    pieces: list[tuple[str, str]], cut: int, part_chars: int
) -> None:
    whole = "".join(piece + gap for piece, gap in pieces)
    known = split_paragraphs(whole[:cut], part_chars=part_chars)
    grown = split_paragraphs(whole, known, part_chars=part_chars)
    assert "".join(grown) == whole
    assert "".join(RENDERER.render(part) for part in grown) == RENDERER.render(whole)
    assert all(len(part) >= part_chars for part in grown[:-1])


def test_only_the_last_part_grows() -> None:
    text = "첫 문단입니다.\n\n둘째 문단입니다.\n\n- 목록\n\n셋째 문단"
    started = split_paragraphs(text, part_chars=1)
    grown = split_paragraphs(text + "이 자랍니다.\n\n넷째", started, part_chars=1)
    assert len(started) == 4
    assert grown[:3] == started[:3]
    assert len(grown) == 5


def test_a_displayed_formula_stays_whole() -> None:
    text = "앞\n\n$$\na\n\nb\n$$\n\n뒤"
    assert split_paragraphs(text, part_chars=1) == ["앞\n\n", "$$\na\n\nb\n$$\n\n", "뒤"]


def test_small_blocks_are_drawn_together() -> None:
    parts = split_paragraphs("짧은 문단입니다.\n\n" * 1_000)
    assert len(parts) == 36
    assert all(300 <= len(part) < 320 for part in parts[:-1])
