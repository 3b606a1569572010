from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from graph.server.settings import Settings

ROOT = Path(__file__).parents[2]
READMES: Final = ("README.md", "README.ko.md")
PICTURE: Final = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
MOST_BYTES: Final = 1_500_000


@pytest.mark.parametrize("name", READMES)
def test_every_setting_stands_in_the_readme_with_its_default(name: str) -> None:
    rows = {
        cells[1].strip(" `"): cells[2].strip(" `")
        for line in (ROOT / name).read_text().splitlines()
        if line.startswith("| `") and len(cells := line.split("|")) == 5
    }
    for field, info in Settings.model_fields.items():
        default = "–" if info.default in (None, ()) else str(info.default)
        shown = rows.get(field.upper())
        assert shown is not None, f"{field.upper()} is not in {name}"
        assert shown == (default.lower() if isinstance(info.default, bool) else default.removesuffix(".0"))


@pytest.mark.parametrize("name", READMES)
def test_each_picture_of_a_readme_is_there_and_one_of_them_moves(name: str) -> None:
    pictures = [ROOT / path for path in PICTURE.findall((ROOT / name).read_text())]
    assert [picture.name for picture in pictures if not picture.is_file()] == []
    assert [picture.suffix for picture in pictures].count(".gif") == 1
    sizes = {picture.name: picture.stat().st_size for picture in pictures}
    assert {picture: size for picture, size in sizes.items() if not 0 < size < MOST_BYTES} == {}
