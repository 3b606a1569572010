"""What one part of the bench reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.report import Requirement

RATES = (0.1, 0.3, 0.5)


@dataclass(frozen=True)
class Section:
    """A part's figures as the page shows them.

    Attributes:
        method: What was measured on what, how, and on how many, in Markdown.
        curves: What the plot shows: by contender the share kept (0 to 1) at each of `RATES`; none for no plot.
    """

    title: str
    method: str
    table: Sequence[str]
    requirements: Sequence[Requirement]
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
