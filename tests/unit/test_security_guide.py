from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
GUIDES: Final = ("docs/security.md", "docs/security.ko.md")
ROW: Final = re.compile(r"^\|.*\|$", re.MULTILINE)
SHOWN_BY: Final = re.compile(r"`([^`]+)`")


def shown_by(guide: str) -> list[list[str]]:
    """What the last column of each row of the tables names."""
    rows = [line.split("|")[1:-1] for line in ROW.findall((ROOT / guide).read_text())]
    return [SHOWN_BY.findall(cells[-1]) for cells in rows if len(cells) == 3]


def test_both_guides_say_the_same_is_shown_by_the_same() -> None:
    english, korean = map(shown_by, GUIDES)
    assert english == korean
    assert len(english) > 30
