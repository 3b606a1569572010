"""Tables of Markdown and verdicts, as every bench prints or writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Requirement = tuple[bool, str]
"""Whether it is met, and its sentence."""


@dataclass(frozen=True)
class Section:
    """A part of a page: what was measured, how and on how many, and the figures; of those curves may be drawn."""

    title: str
    method: str
    table: Sequence[str]
    requirements: Sequence[Requirement] = ()
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """Yields the lines of a table; all columns but the first few are aligned to the right."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * left}{'---:|' * (len(head) - left)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def percent(share: float) -> str:
    return f"{share:.0%}"


def verdict(requirements: Iterable[Requirement]) -> int:
    """Prints each requirement as it comes, and whether all are met; returns 0 if they are."""
    count = failed = 0
    for is_met, words in requirements:
        print("ok  " if is_met else "FAIL", words, flush=True)
        count += 1
        failed += not is_met
    print(f"verdict: {failed} of {count} requirements NOT met" if failed else f"verdict: all {count} met")
    return 1 if failed else 0


def write_page(path: Path, lines: Iterable[str], requirements: Iterable[Requirement]) -> None:
    """Writes a page with the requirements at its end."""
    verdicts = (f"- {'met' if is_met else '**not met**'}: {words}" for is_met, words in requirements)
    path.write_text("\n".join([*lines, "## Verdict", "", *verdicts]) + "\n", encoding="utf-8")
    print(f"wrote {path}")
