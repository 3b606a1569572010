"""Kills processes that chat, again and again, each time inside a phase chosen before; keeps what users were told."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.fault.chatter import Chatters, Child, Figures
from tests.fault.check import Ledger, check_folder
from tests.fault.mark import PHASES
from tests.fault.process import in_own_process

_KILLS_PER_FOLDER: Final = 40
_PATIENCE_SECONDS: Final = 60.0


class Killer:
    """Two processes and three sessions, one of them shared; one of the two is killed at a time and comes back.

    Args:
        per_phase: How many kills inside each phase.
        at_least: How many kills in all.
        seed: Of all that is drawn.
        prepare: Makes a new folder ready for its data.
    """

    def __init__(
        self,
        root: Path,
        *,
        per_phase: int,
        seed: int,
        at_least: int = 0,
        prepare: Callable[[Path], Path] = lambda folder: folder,
    ) -> None:
        self._root = root
        self._prepare = prepare
        self._per_phase = per_phase
        self._at_least = at_least
        self._draw = random.Random(seed)  # noqa: S311  # a test's dice
        self._chatters = Chatters(self._draw)
        self.figures = self._chatters.figures

    def run(self) -> Figures:
        """Kills until every phase has its share, in one folder after another; checks each folder at its end."""
        for number in range(1_000_000):
            if not self._missing():
                return self.figures
            self._run_folder(self._root / f"folder-{number}")
        return self.figures

    def _missing(self) -> list[str]:
        missing = [phase for phase in PHASES if self.figures.hits[phase] < self._per_phase]
        return missing or list(PHASES if self.figures.kills < self._at_least else ())

    def _run_folder(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._prepare(folder)
        self._chatters.ledger = Ledger()
        sessions = [("first", "shared"), ("second", "shared")]
        children = [self._chatters.start(folder, own, None) for own in sessions]
        for _ in range(_KILLS_PER_FOLDER):
            missing = self._missing()
            if not missing:
                break
            victim = self._draw.randrange(2)
            if self._kill_inside(children, children[victim], self._draw.choice(missing)):
                children[victim] = self._chatters.start(folder, sessions[victim], children[victim].pending)
        for child in children:
            self._chatters.end(child)
        found = in_own_process(lambda: check_folder(folder, self._chatters.ledger))
        self.figures.wrong += [f"{folder.name}: {fault}" for fault in found]

    def _kill_inside(self, children: Sequence[Child], victim: Child, phase: str) -> bool:
        """Waits until the victim enters the phase, and kills it somewhere inside; False if it never came there."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until:
            entered = self._chatters.listen(children, 1.0)
            if phase in entered.get(victim.name, ()) and victim.open_phases[phase]:
                time.sleep(self._draw.uniform(0, self._chatters.seconds[phase]))
                self._chatters.end(victim)
                self.figures.hits[phase] += victim.open_phases[phase] > 0
                return True
        self.figures.wrong.append(f"{victim.name} did not come to {phase} in {_PATIENCE_SECONDS} s")
        return False
