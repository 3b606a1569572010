"""One attack on one server, watched from outside while another user goes on to work there."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

import httpx2

from bench.attack.bystander import Bystander
from bench.attack.row import Bounds, Row
from bench.attack.target import Target, bearer
from bench.attack.watch import MOST_MEMORY, Gauge
from tests.fake.upload import opened_tab

Kind = Literal["open", "sign-in", "postgres"]
_HOLD_SECONDS: Final = {True: 1.5, False: 10.0}
_DEADLINE_SECONDS: Final = {True: 30.0, False: 60.0}
_WELL_SECONDS: Final = {True: 10.0, False: 20.0}
_numbers = itertools.count(1)


class LeftOutError(Exception):
    """What an attack needs isn't installed; the message says what."""


@dataclass
class Attempt:
    """What an attack has to work with, and what it says itself.

    Attributes:
        other: The other user.
        is_short: Small numbers will do.
        wrong: What only the attack can tell.
    """

    target: Target
    gauge: Gauge
    other: Bystander
    is_short: bool
    wrong: list[str] = field(default_factory=list)

    def hold(self) -> None:
        """Keeps all as it is for a while, and takes the server's memory at the end of it."""
        self.gauge.hold(_HOLD_SECONDS[self.is_short])

    def many(self, short: int, full: int) -> int:
        """Returns the number for this run."""
        return short if self.is_short else full

    def program(self, token: str) -> httpx2.Client:
        """Returns a client of the routes for programs."""
        return httpx2.Client(base_url=self.target.address, headers=bearer(token), timeout=120, trust_env=False)


@dataclass(frozen=True)
class Attack:
    """An attack.

    Attributes:
        name: As `--only` takes it.
        run: Does it, and returns what was sent and what became of it.
        kind: Of the server.
        forms: In which forms of the run it is done.
        seconds: It has at most; 0 for what all have.
        told: What is sent, for when the attack doesn't come to an end.
    """

    name: str
    run: Callable[[Attempt], str]
    kind: Kind = "open"
    bounds: Bounds = field(default_factory=Bounds)
    forms: tuple[bool, ...] = (True, False)
    seconds: float = 0.0
    told: str = ""


def attacked(attack: Attack, target: Target, *, is_short: bool) -> Row:
    """Does an attack; a server that hangs, or holds too much, is ended by that.

    Args:
        attack: What is done.
        target: A server that answers.
        is_short: Whether small numbers will do.
    """
    row = Row(attack.name, attack.bounds)
    if not target.is_warm:
        warm_up(target)
    gauge = Gauge(target, attack.bounds.health)
    with gauge.watching(), Bystander(target.address, f"{attack.name}{next(_numbers)}") as other:
        attempt = Attempt(target, gauge, other, is_short)
        _run(attack, attempt, row)
        patience = _WELL_SECONDS[is_short]
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
            _read_back(other, row)
        elif not row.ended:
            row.ended = f"ended at +{MOST_MEMORY} MB" if gauge.is_over else "the server died"
        row.health_errors = gauge.health_errors
        row.wrong += attempt.wrong
    return row


def _read_back(other: Bystander, row: Row) -> None:
    try:
        row.lost = other.count_lost()
    except httpx2.HTTPError as error:
        row.wrong.append(f"the other's chat can't be read back: {type(error).__name__}")


def warm_up(target: Target) -> None:
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
        except Exception as error:  # noqa: BLE001  # the row says what it was
            if not row.ended:  # else this is what became of it
                row.wrong.append(f"broke off: {type(error).__name__}: {error}"[:200])

    row.sent = attack.told
    seconds = attack.seconds or _DEADLINE_SECONDS[attempt.is_short]
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        row.ended = f"hangs: not over after {seconds:g} s"
        attempt.target.kill()
        thread.join(10)
