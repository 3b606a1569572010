"""What one part of the bench reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

RATES: Final = (0.1, 0.3, 0.5)


@dataclass(frozen=True)
class Section:
    """A part's figures as the page shows them.

    Attributes:
        title: The section's heading.
        method: What was measured on what, how, and on how many, in Markdown.
        table: Lines of a Markdown table.
        requirements: Each requirement's sentence and whether it is met.
        curves: What the plot shows: by contender the share kept (0 to 1) at each of `RATES`; none for no plot.
    """

    title: str
    method: str
    table: tuple[str, ...]
    requirements: tuple[tuple[bool, str], ...] = ()
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
