from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from bench.attack.__main__ import ATTACKS

ROOT: Final = Path(__file__).parents[2]
GUIDES: Final = ("docs/security.md", "docs/security.ko.md")
ROW: Final = re.compile(r"^\|.*\|$", re.MULTILINE)
SHOWN_BY: Final = re.compile(r"`([^`]+)`")
FAMILY: Final = "text-"  # one text each


def shown_by(guide: str) -> list[list[str]]:
    """What the last column of each row of the tables names."""
    rows = [line.split("|")[1:-1] for line in ROW.findall((ROOT / guide).read_text())]
    return [SHOWN_BY.findall(cells[-1]) for cells in rows if len(cells) == 3]


def test_both_guides_say_the_same_is_shown_by_the_same() -> None:
    english, korean = map(shown_by, GUIDES)
    assert english == korean
    assert len(english) > 30


def test_each_attack_stands_in_the_guide_and_is_one() -> None:
    names = {name for row in shown_by(GUIDES[0]) for name in row if not name.startswith(("tests/", "make "))}
    attacks = {f"{FAMILY}…" if attack.name.startswith(FAMILY) else attack.name for attack in ATTACKS}
    assert names == attacks
