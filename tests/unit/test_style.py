from __future__ import annotations

import re

import pytest

from component import widget

SHEETS = sorted(widget.ASSETS.glob("*.css"))
PRINTED = re.compile(r"@media print \{.*?\n\}", re.DOTALL)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
ASKED = re.compile(r":has\(((?:[^()]|\([^()]*\))*)\)")
CHILDREN = re.compile(r"> [^\s>]+( > [^\s>]+)*")


def asked_of(style: str) -> list[str]:
    return ASKED.findall(PRINTED.sub("", COMMENT.sub("", style)))


# Each word of an answer would have the browser look through the whole page again: tens of milliseconds in a long chat.
@pytest.mark.parametrize("name", [sheet.name for sheet in SHEETS])
def test_a_style_asks_for_children_alone_and_never_for_what_is_further_down(name: str) -> None:
    style = widget.read_assets(name)
    assert len(asked_of(style)) == PRINTED.sub("", COMMENT.sub("", style)).count(":has(")
    assert [asked for asked in asked_of(style) if not CHILDREN.fullmatch(asked)] == []


@pytest.mark.parametrize("asked", [".a", "> .a .b", "~ * .a", "+ .a", "> .a ~ .b"])
def test_what_is_further_down_is_recognised(asked: str) -> None:
    (found,) = asked_of(f".c:has({asked}) {{}}")
    assert not CHILDREN.fullmatch(found)
