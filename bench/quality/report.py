"""Writes the figures as a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.quality.section import Section

_INTRODUCTION: Final = """\
# What folds keep

Written by `make bench-quality`; don't edit by hand. Public data, no model, no network; each section says what was
counted and on how many.

![share kept at each rate](bench-quality.png)
"""


def write_report(path: Path, sections: Sequence[Section]) -> None:
    """Writes the page."""
    parts = [_INTRODUCTION]
    for section in sections:
        parts += [f"## {section.title}", "", section.method, "", *section.table, ""]
    parts += ["## Verdict", ""]
    for is_met, words in (line for section in sections for line in section.requirements):
        parts.append(f"- {'met' if is_met else '**not met**'}: {words}")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
