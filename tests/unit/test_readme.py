from __future__ import annotations

from pathlib import Path

import pytest

from graph.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
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


def test_both_readmes_list_the_same_settings_in_the_same_order() -> None:
    names = [
        [line.split("`")[1] for line in (ROOT / name).read_text().splitlines() if line.startswith("| `")]
        for name in ("README.md", "README.ko.md")
    ]
    assert names[0] == names[1]
