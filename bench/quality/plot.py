"""Draws what each contender keeps at each rate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl

from bench.quality.section import RATES, Section

_STYLES: Final = (
    ("#0b6e4f", "-", 2.6),
    ("#7d8597", "-", 1.4),
    ("#edae49", "-", 1.4),
    ("#3066be", "--", 1.4),
    ("#8d5fd3", "--", 1.4),
)


def draw(path: Path, sections: Sequence[Section]) -> None:
    """Writes a PNG with the curves of each section that has some, side by side."""
    mpl.use("agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  # imported after the backend is chosen

    shown = [section for section in sections if section.curves]
    figure, places = plt.subplots(1, len(shown), figsize=(6.5 * len(shown), 5), dpi=110, squeeze=False)
    for axes, section in zip(places[0], shown, strict=True):
        for (name, shares), (colour, line, width) in zip(section.curves.items(), _STYLES, strict=False):
            percent = [100 * share for share in shares]
            axes.plot(RATES, percent, color=colour, linestyle=line, linewidth=width, marker="o", label=name)
        axes.set_title(section.title, fontsize=10)
        axes.set_xlabel("share of the characters")
        axes.set_ylabel("kept, %")
        axes.set_xticks(RATES)
        axes.set_ylim(0, 100)
        axes.grid(visible=True, alpha=0.25)
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
