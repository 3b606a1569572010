"""Holds the pages for contributors to the code: files and functions that they name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATH = re.compile(r"`((?:api|component|docs|graph|prompt|tests)/[\w./]*\w)`")


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/map.md", "docs/architecture.md"])
def test_every_path_is_there(name: str) -> None:
    text = (ROOT / name).read_text()
    links = [link for link in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text) if "://" not in link]
    targets = [*(ROOT / path for path in PATH.findall(text)), *((ROOT / name).parent / link for link in links)]
    assert targets
    assert [str(target) for target in targets if not target.exists()] == []


def test_each_step_of_the_map_names_functions_of_its_file() -> None:
    steps = [line for line in (ROOT / "docs/map.md").read_text().splitlines() if re.match(r"\| \d+ \|", line)]
    assert len(steps) > 20
    for step in steps:
        for part in step.rsplit("|", 2)[1].split(";"):
            path, *names = re.findall(r"`([^`]+)`", part)
            assert names, part
            source = (ROOT / path).read_text()
            for name in ".".join(names).split("."):
                assert re.search(rf"\b(?:def|class|function) {name}\b", source), f"{name} isn't in {path}"
