"""Splits Markdown into prose, code, formulas and addresses, so that prose alone can be changed."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE: Final = re.compile(
    r"[ \t]*(?:>[ \t]?|(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?P<mark>`{3,}(?=[^`]*$)|~{3,}|\${2,}(?=[^$]*$))", re.MULTILINE
)
_QUOTE: Final = re.compile(r"[ \t>]*")
_LIST_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_BLOCK: Final = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6})[ \t]|[>|])")
_INDENTED: Final = re.compile(r" {4}| {0,3}\t")
_RUN: Final = re.compile(r"`+|\$+")
_CODE: Final = re.compile(r"\\|`+")
_CODE_FORMULA_ADDRESS: Final = re.compile(r"\\|`+|\$+|(?:https?://|www\.)[^\s<>]*[^\s<>~]", re.IGNORECASE)


class _Piece(NamedTuple):
    text: str
    is_prose: bool


def change_prose(text: str, change: Callable[[str], str], *, spares_formulas: bool = False) -> str:
    """Returns the Markdown with its prose changed and its code unchanged.

    Args:
        text: The Markdown; it may still be streaming: an open fence makes everything after it code.
        change: Applied to each piece of prose.
        spares_formulas: Leaves formulas and bare addresses unchanged too.
    """
    marks = _CODE_FORMULA_ADDRESS if spares_formulas else _CODE
    changed = []
    for block in _blocks(text, "`~$" if spares_formulas else "`~"):
        pieces = _spans(block.text, marks) if block.is_prose else (block,)
        changed += [change(piece.text) if piece.is_prose else piece.text for piece in pieces]
    return "".join(changed)


def _blocks(text: str, fence_marks: str) -> Iterator[_Piece]:
    """Splits into code and into blocks that no code span crosses: paragraphs, list items, table rows."""
    paragraph: list[str] = []
    fence, is_in_list, is_behind_gap = "", False, True
    for line in _LINE.findall(text):
        if fence:
            yield _Piece(line, is_prose=False)
            fence = "" if _closes(line, fence) else fence
            continue
        is_blank = not line.strip()
        is_indented = _INDENTED.match(line) is not None and not is_blank
        is_code = is_indented and is_behind_gap and not is_in_list
        opening = None if is_code else _FENCE.match(line)
        if opening is not None and opening["mark"][0] in fence_marks:
            fence, is_code = opening["mark"], True
        if _LIST_ITEM.match(line):
            is_in_list = True
        elif is_behind_gap and not line[:1].isspace():
            is_in_list = False
        if is_blank or is_code or _BLOCK.match(line):
            yield _Piece("".join(paragraph), is_prose=True)
            paragraph = []
        if is_code:
            yield _Piece(line, is_prose=False)
        else:
            paragraph.append(line)
        is_behind_gap = is_blank or (is_code and not fence)
    yield _Piece("".join(paragraph), is_prose=True)


def _closes(line: str, fence: str) -> bool:
    rest = line[_QUOTE.match(line).end() :].rstrip()  # type: ignore[union-attr]  # it matches the empty text too
    return len(rest) >= len(fence) and rest == fence[0] * len(rest)


def _spans(text: str, marks: re.Pattern[str]) -> Iterator[_Piece]:
    """Splits a block into prose, spans between two equal runs of a mark, and addresses."""
    ends = defaultdict[str, deque[int]](deque)
    for run in _RUN.finditer(text):
        ends[run[0]].append(run.end())
    begin = at = 0
    while (found := marks.search(text, at)) is not None:
        mark, at = found[0], found.end()
        if mark == "\\":
            at += 1  # the escaped character is no mark
            continue
        if mark[0] in "`$":
            while ends[mark] and ends[mark][0] <= at:
                ends[mark].popleft()
            if not ends[mark]:
                continue
            at = ends[mark].popleft()
        yield _Piece(text[begin : found.start()], is_prose=True)
        yield _Piece(text[found.start() : at], is_prose=False)
        begin = at
    yield _Piece(text[begin:], is_prose=True)
