"""Draws the figures as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

from bench.context.run import Run

SHOWN_CHARS: Final = 1_200
_ROOM_FOR_LEGEND: Final = 6_000_000
_STYLES: Final = {
    "interval": ("#0b6e4f", "-", 2.4),
    "rolling": ("#d1495b", "-", 1.4),
    "compaction": ("#edae49", "-", 1.4),
    "window": ("#7d8597", "-", 1.4),
    "full history": ("#30343f", ":", 1.6),
    "SummarizationMiddleware 8k": ("#3066be", "--", 1.2),
    "langmem 8k": ("#8d5fd3", "--", 1.2),
    "trim_messages 8k": ("#4a9ca8", "--", 1.2),
}


def draw(path: Path, runs: Sequence[Run]) -> None:
    """Writes a PNG with tokens of each turn's input, and with cost against planted facts kept after 1,000 turns."""
    mpl.use("agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  # imported after the backend is chosen

    shown = [run for run in runs if run.answer_chars == SHOWN_CHARS and run.name in _STYLES]
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), dpi=110)
    for run in shown:
        colour, line, width = _STYLES[run.name]
        tokens = run.meter.sent_by_turn
        left.plot(range(1, len(tokens) + 1), tokens, color=colour, linestyle=line, linewidth=width, label=run.name)
    _name(left, "Largest input of each turn (answers of 1,200 characters)", "turn", "tokens (o200k)")
    left.set_yscale("log")
    left.set_ylim(top=_ROOM_FOR_LEGEND)
    left.legend(fontsize=8, ncol=3, loc="upper center")
    for run in shown:
        last = run.at[max(run.at)]
        right.scatter(last.costs[0], 100 * last.kept, color=_STYLES[run.name][0], s=60)
        right.annotate(run.name, (last.costs[0], 100 * last.kept), (6, 4), textcoords="offset points", fontsize=8)
    _name(
        right,
        "Cost and memory after 1,000 turns (cache, one model)",
        "cost, in input tokens at full price",
        "planted facts still in the input, %",
    )
    right.set_xscale("log")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _name(axes: Any, title: str, x: str, y: str) -> None:  # noqa: ANN401  # matplotlib's axes
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(visible=True, alpha=0.25)
