"""What an attack came to, and whether that is within its bounds; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

HEALTH_SECONDS: Final = 2.0
MEGABYTE: Final = 2**20
_COLUMNS: Final = ("attack", "sent", "before", "peak", "held", "/health", "other's turns", "verdict")
_WIDTHS: Final = (20, 82, 6, 6, 6, 7, 13, 0)


@dataclass(frozen=True)
class Bounds:
    """What an attack may cost at most.

    Attributes:
        held: MiB over the start while the attack keeps all that it has: the budget of unfinished bytes (256), and 64
            that allocator and threads don't give back at once.
        peak: MiB over the start at any moment: the budget, and as much again for what is parsed.
        may_fail: Turns of others may fail, as the database is away; their words may not be lost.
        health: The route that has to answer within two seconds.
    """

    held: float = 320
    peak: float = 640
    may_fail: bool = False
    health: str = "/health"


# All visitors together whom nobody let in have a sixteenth of the budget.
STRANGER: Final = Bounds(held=80, peak=160)
# The database stands still, so `/health` has to say that, but the page's own answers.
OUTAGE: Final = Bounds(may_fail=True, health="/_stcore/health")


@dataclass
class Row:
    """One attack on one server.

    Attributes:
        sent: What was sent, and what became of it.
        before: MiB of the server as it began.
        peak: MiB over that at most.
        held: MiB over that while the attack kept all that it had.
        health: Seconds of the slowest health answer.
        health_errors: Health answers that were errors, or broke off.
        turns: Turns of another user that went on to their end meanwhile.
        failed: What became of those that didn't, in a word each.
        lost: Turns of that user that aren't stored as he read them.
        ended: Why the server had to be ended: it hangs, or holds too much; "" if it was not.
        wrong: What only this attack can tell.
    """

    attack: str
    bounds: Bounds
    sent: str = ""
    before: float = 0.0
    peak: float = 0.0
    held: float = 0.0
    health: float = 0.0
    health_errors: int = 0
    turns: int = 0
    failed: list[str] = field(default_factory=list)
    lost: int = 0
    ended: str = ""
    wrong: list[str] = field(default_factory=list)
    left_out: str = ""

    @property
    def problems(self) -> list[str]:
        """What isn't within the bounds; nothing for an attack that couldn't be tried."""
        if self.left_out:
            return []
        bounds = self.bounds
        found = [self.ended] if self.ended else []
        if self.peak > bounds.peak:
            found.append(f"peak over {bounds.peak:.0f} MB")
        if self.held > bounds.held:
            found.append(f"holds over {bounds.held:.0f} MB")
        if self.health > HEALTH_SECONDS:
            found.append(f"{bounds.health} over {HEALTH_SECONDS:g} s")
        if self.health_errors and not self.ended:
            found.append(f"{bounds.health} failed {self.health_errors} times")
        if self.failed and not bounds.may_fail:
            found.append(f"others' turns failed: {', '.join(dict.fromkeys(self.failed))}")
        if not self.turns and not self.failed:
            found.append("no turn of another user was seen")
        if self.lost:
            found.append(f"{self.lost} turns lost")
        return found + self.wrong

    @property
    def verdict(self) -> str:
        """Returns "holds", or what doesn't."""
        return f"not tried: {self.left_out}" if self.left_out else "; ".join(self.problems) or "holds"

    def figures(self) -> dict[str, Any]:
        """Returns all of it as JSON has it."""
        return {**asdict(self), "verdict": self.verdict, "is_met": not self.problems}


def head() -> str:
    """Returns the first line of the table."""
    return _line(_COLUMNS)


def line(row: Row) -> str:
    """Returns a row of the table; memory in MB of 2^20 bytes."""
    if row.left_out:
        return _line((row.attack, "–", "–", "–", "–", "–", "–", row.verdict))
    told = f"{row.turns}, {len(row.failed)} failed" if row.failed else str(row.turns)
    memory = (f"{row.before:.0f}", f"{max(row.peak, 0):+.0f}", f"{row.held:+.0f}")
    return _line((row.attack, row.sent, *memory, f"{row.health:.2f} s", told, row.verdict))


def _line(cells: Sequence[str]) -> str:
    return "  ".join(f"{cell:{width or 1}}" for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()
