"""`make bench-quality`: measures what folds keep, on public data and small sets; writes page, plot and verdict."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

from bench.quality import fact, force, found, invented, kept, probe
from bench.quality.contender import RATES
from bench.quality.data import SOURCES
from bench.report import Section, verdict, write_page
from bench.server import ROOT

_INTRODUCTION = """\
# What folds keep

Written by `make bench-quality`; don't edit by hand. Public data and small sets written by hand, no model, no network;
each section says what was counted and on how many.

![share kept at each rate](bench-quality.png)
"""
_STYLES = (
    ("#0b6e4f", "-", 2.6),
    ("#7d8597", "-", 1.4),
    ("#edae49", "-", 1.4),
    ("#3066be", "--", 1.4),
    ("#8d5fd3", "--", 1.4),
)
PARTS: Mapping[str, Callable[[Path], Section]] = {
    "answers": kept.answers,
    "arguments": kept.arguments,
    "results": kept.results,
    "facts": kept.facts,
    "classes": probe.by_class,
    "updates": probe.updates,
    "entities": found.entities,
    "cases": fact.cases,
    "inventions": invented.inventions,
    "forces": force.forces,
    "turns": found.turns,
    "questions": probe.questions,
}


def main() -> int:
    """Returns 0 if every requirement is met, 1 if not, 2 if the data isn't there."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(), help="folder of the data sets")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="measure and print these sections; write no page")
    arguments = parser.parse_args()
    folder: Path = arguments.data
    try:
        sections = [PARTS[name](folder) for name in arguments.only or PARTS]
    except FileNotFoundError as error:
        print(f"There is no {error.filename}.\n{SOURCES}", file=sys.stderr)
        return 2
    requirements = [line for section in sections for line in section.requirements]
    if arguments.only:
        print("\n".join(line for section in sections for line in [section.title, "", *section.table, ""]))
        return verdict(requirements)
    lines = [_INTRODUCTION]
    for section in sections:
        lines += [f"## {section.title}", "", section.method, "", *section.table, ""]
    write_page(ROOT / "docs/bench-quality.md", lines, requirements)
    _draw(ROOT / "docs/bench-quality.png", [section for section in sections if section.curves])
    return verdict(requirements)


def _draw(path: Path, sections: Sequence[Section]) -> None:
    """Writes a PNG with the curves of the sections side by side."""
    mpl.use("agg")
    from matplotlib import pyplot as plt  # after the backend is chosen

    figure, all_axes = plt.subplots(1, len(sections), figsize=(6.5 * len(sections), 5), dpi=110, squeeze=False)
    for axes, section in zip(all_axes[0], sections, strict=True):
        for (name, shares), (colour, line, width) in zip(section.curves.items(), _STYLES, strict=False):
            percent = [100 * share for share in shares]
            axes.plot(RATES, percent, color=colour, linestyle=line, linewidth=width, marker="o", label=name)
        axes.set_title(section.title, fontsize=10)
        axes.set(xlabel="share of the characters", ylabel="kept, %", xticks=RATES, ylim=(0, 100))
        axes.grid(visible=True, alpha=0.25)
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
