"""One attack on one server, watched from outside while another user goes on to work there, and what it came to."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import httpx2

from bench.attack.bystander import Bystander, program
from bench.attack.server import Target
from bench.attack.watch import MOST_MEMORY, Gauge
from tests.fake.upload import opened_tab

Kind = Literal["open", "sign-in", "postgres", "tools"]
HEALTH_SECONDS = 2.0
_WIDTHS = (20, 82, 6, 6, 6, 7, 13, 0)
_numbers = itertools.count(1)


class LeftOutError(Exception):
    """What an attack needs isn't installed; the message says what."""


@dataclass(frozen=True)
class Bounds:
    """What an attack may cost at most, in MiB over the start; `health` has to answer within two seconds."""

    held: float = 320  # the budget of unfinished bytes (256), and 64 that allocator and threads don't give back at once
    peak: float = 640  # the budget, and as much again for what is parsed
    may_fail: bool = False  # turns of others, as the database is away; their words may not be lost
    health: str = "/health"


# All visitors together whom nobody let in have a sixteenth of the budget.
STRANGER = Bounds(held=80, peak=160)
# What one server of tools sends.
SENT_BY_TOOLS = Bounds(held=250, peak=250)
# The database stands still, so `/health` has to say that, but the page's own answers.
OUTAGE = Bounds(may_fail=True, health="/_stcore/health")


@dataclass
class Row:
    """What an attack on a server came to."""

    attack: str
    bounds: Bounds
    sent: str = ""  # and what became of it
    before: float = 0.0  # MiB of the server as it began
    peak: float = 0.0  # MiB over that
    held: float = 0.0  # MiB over that while the attack kept all that it had
    health: float = 0.0  # seconds of the slowest answer
    health_errors: int = 0
    turns: int = 0  # of another user that went on to their end meanwhile
    failed: list[str] = field(default_factory=list)  # what became of those that didn't, in a word each
    lost: int = 0  # of that user's turns, those that aren't stored as he read them
    ended: str = ""  # why the server had to be ended: it hangs, or holds too much
    wrong: list[str] = field(default_factory=list)  # what only this attack can tell
    left_out: str = ""  # what it needs and isn't installed

    @property
    def problems(self) -> list[str]:
        """What isn't within the bounds; nothing for an attack that couldn't be tried."""
        bounds = self.bounds
        found = {
            self.ended: self.ended,
            f"peak over {bounds.peak:.0f} MB": self.peak > bounds.peak,
            f"holds over {bounds.held:.0f} MB": self.held > bounds.held,
            f"{bounds.health} over {HEALTH_SECONDS:g} s": self.health > HEALTH_SECONDS,
            f"{bounds.health} failed {self.health_errors} times": self.health_errors and not self.ended,
            f"others' turns failed: {', '.join(dict.fromkeys(self.failed))}": self.failed and not bounds.may_fail,
            "no turn of another user was seen": not self.turns and not self.failed,
            f"{self.lost} turns lost": self.lost,
        }
        return [] if self.left_out else [*(words for words, is_so in found.items() if is_so), *self.wrong]

    def line(self) -> str:
        """Returns a row of the table; memory in MB of 2^20 bytes."""
        if self.left_out:
            return line(self.attack, *"–" * 6, f"not tried: {self.left_out}")
        turns = f"{self.turns}, {len(self.failed)} failed" if self.failed else str(self.turns)
        memory = (f"{self.before:.0f}", f"{max(self.peak, 0):+.0f}", f"{self.held:+.0f}")
        verdict = "; ".join(self.problems) or "holds"
        return line(self.attack, self.sent, *memory, f"{self.health:.2f} s", turns, verdict)


def line(*cells: str) -> str:
    return "  ".join(f"{cell:{width or 1}}" for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()


HEAD = line("attack", "sent", "before", "peak", "held", "/health", "other's turns", "verdict")


@dataclass
class Attempt:
    """What an attack has to work with; `wrong` is what only the attack can tell."""

    target: Target
    gauge: Gauge
    is_short: bool
    wrong: list[str] = field(default_factory=list)

    def hold(self) -> None:
        """Keeps all as it is for a while, and takes the server's memory at the end of it."""
        self.gauge.hold(self.many(1.5, 10.0))

    def many(self, short: float, full: float) -> float:
        """Returns the number for this run."""
        return short if self.is_short else full

    def program(self, token: str) -> httpx2.Client:
        return program(self.target.address, token)


@dataclass(frozen=True)
class Attack:
    """An attack; `run` does it, and returns what was sent and what became of it."""

    name: str
    run: Callable[[Attempt], str]
    kind: Kind = "open"
    bounds: Bounds = field(default_factory=Bounds)
    forms: Sequence[bool] = (True, False)  # of the run: the short one (True), the full one (False)
    seconds: float = 0.0  # it has at most; 0 for what all have
    sent: str = ""  # for when it doesn't come to an end


def attacked(attack: Attack, target: Target, *, is_short: bool) -> Row:
    """Does an attack on a server that answers; one that hangs, or holds too much, is ended by that."""
    row = Row(attack.name, attack.bounds, attack.sent)
    if not target.is_warm:
        _warm_up(target)
    gauge = Gauge(target, attack.bounds.health)
    with gauge.watching(), Bystander(target.address, f"{attack.name}{next(_numbers)}") as other:
        attempt = Attempt(target, gauge, is_short)
        _run(attack, attempt, row)
        patience = attempt.many(10.0, 20.0)
        if target.is_alive and not gauge.is_well(patience) and target.is_alive:
            row.ended = f"hangs: no /health {patience:g} s after it"
        if target.is_alive and not row.ended and not other.end(2 * patience) and target.is_alive:
            row.ended = "hangs: the other's answer doesn't come"
        row.before, row.peak, row.held, row.health = gauge.before, gauge.peak, gauge.held, gauge.slowest
        if row.ended and target.is_alive:
            target.kill()
        other.end(patience)
        row.turns, row.failed = other.finished, other.failed
        if target.is_alive:
            try:
                row.lost = other.count_lost()
            except httpx2.HTTPError as error:
                row.wrong.append(f"the other's chat can't be read back: {type(error).__name__}")
        elif not row.ended:
            row.ended = f"ended at +{MOST_MEMORY} MB" if gauge.is_over else "the server died"
        row.health_errors = gauge.health_errors
        row.wrong += attempt.wrong
    return row


def _warm_up(target: Target) -> None:
    """Has the server do once what it does, so that modules and pools it needs anyway don't count as the attack's."""
    with Bystander(target.address, f"warm{next(_numbers)}"):
        httpx2.get(target.address, trust_env=False)
        with opened_tab(target.address, {}):
            pass
    target.is_warm = True


def _run(attack: Attack, attempt: Attempt, row: Row) -> None:
    def run() -> None:
        try:
            row.sent = attack.run(attempt)
        except LeftOutError as error:
            row.left_out = str(error)
        except Exception as error:  # whatever ends an attack is told in its row
            if not row.ended:  # else this is what became of it
                row.wrong.append(f"broke off: {type(error).__name__}: {error}"[:200])

    seconds = attack.seconds or attempt.many(30.0, 60.0)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        row.ended = f"hangs: not over after {seconds:g} s"
        attempt.target.kill()
        thread.join(10)
