"""Splits a growing answer where its parts can be drawn one by one, pure: a part that is whole is never sent again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from markdown_it import MarkdownIt

PART_CHARS: Final = 300

_PARSER: Final = MarkdownIt("commonmark", {"maxNesting": 20}).enable("table").disable(["inline", "text_join"])
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
# Definitions of links and footnotes count everywhere in a text.
_DEFINITION: Final = re.compile(r"^[ >]*\[[^\]\n]+\]:", re.MULTILINE)


def split_paragraphs(markdown: str, known: Sequence[str] = (), *, part_chars: int = PART_CHARS) -> list[str]:
    """Returns parts of whole blocks; joined they are the text, and drawn one below the other they look like it.

    Args:
        markdown: The text as Streamlit gets it, perhaps not yet whole.
        known: The parts of what the text was before it grew: all but the last stay, if the text still begins with them.
        part_chars: No part but the last is shorter.
    """
    if _DEFINITION.search(markdown):
        return [markdown]
    whole = [*known[:-1]]
    begin = sum(map(len, whole))
    if not markdown.startswith("".join(whole)):
        whole, begin = [], 0
    parts = [*whole, ""]
    for block in _blocks(markdown[begin:]):
        # A displayed formula may hold what looks like blocks.
        if len(parts[-1]) >= part_chars and parts[-1].count("$$") % 2 == 0:
            parts.append("")
        parts[-1] += block
    return parts


def _blocks(markdown: str) -> list[str]:
    lines = _LINE.findall(markdown)
    begins = [token.map[0] for token in _PARSER.parse(markdown) if token.level == 0 and token.map]
    return ["".join(lines[begin:end]) for begin, end in pairwise([0, *begins[1:], len(lines)])]
