"""Kills processes that chat, again and again, each time inside a phase chosen before; keeps what users were told."""

from __future__ import annotations

import os
import random
import select
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.fault.check import Ledger, check_folder
from tests.fault.child import Pending, chat
from tests.fault.mark import PHASES
from tests.fault.process import fork, in_own_process, kill

_KILLS_PER_FOLDER: Final = 40
_PATIENCE_SECONDS: Final = 30.0
_FIRST_GUESS_SECONDS: Final = 0.004
_LONGEST_SECONDS: Final = 0.03
_LINE_BYTES: Final = 65_536


@dataclass
class Child:
    """One process that chats, and what it said so far.

    Attributes:
        open_phases: How many threads are in each phase.
        entered_at: When it last came to a phase, in nanoseconds.
    """

    name: str
    process_id: int
    pipe: int
    pending: Pending | None = None
    open_phases: Counter[str] = field(default_factory=Counter)
    entered_at: dict[str, int] = field(default_factory=dict)
    rest: bytes = b""


@dataclass
class Figures:
    """The result.

    Attributes:
        hits: Kills inside each phase.
    """

    kills: int = 0
    hits: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    shown: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Killer:
    """Two processes and three sessions, one of them shared; one of the two is killed at a time and comes back.

    Args:
        per_phase: How many kills inside each phase.
        at_least: How many kills in all.
        seed: Of all that is drawn.
    """

    def __init__(self, root: Path, *, per_phase: int, seed: int, at_least: int = 0) -> None:
        self._root = root
        self._per_phase = per_phase
        self._at_least = at_least
        self._draw = random.Random(seed)  # noqa: S311  # a test's dice
        self._seconds = dict.fromkeys(PHASES, _FIRST_GUESS_SECONDS)
        self._names = 0
        self._ledger = Ledger()
        self.figures = Figures()

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
        self._ledger = Ledger()
        sessions = [("first", "shared"), ("second", "shared")]
        children = [self._start(folder, own, None) for own in sessions]
        for _ in range(_KILLS_PER_FOLDER):
            missing = self._missing()
            if not missing:
                break
            victim = self._draw.randrange(2)
            if self._kill_inside(children, children[victim], self._draw.choice(missing)):
                children[victim] = self._start(folder, sessions[victim], children[victim].pending)
        for child in children:
            self._end(child)
        found = in_own_process(lambda: check_folder(folder, self._ledger))
        self.figures.wrong += [f"{folder.name}: {fault}" for fault in found]

    def _start(self, folder: Path, sessions: Sequence[str], pending: Pending | None) -> Child:
        self._names += 1
        name, seed = f"p{self._names}", self._draw.randrange(2**32)
        return Child(name, *fork(lambda marker: chat(folder, name, sessions, pending, marker, seed=seed)), pending)

    def _kill_inside(self, children: Sequence[Child], victim: Child, phase: str) -> bool:
        """Waits until the victim enters the phase, and kills it somewhere inside; False if it never came there."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until:
            ready, _, _ = select.select([child.pipe for child in children], [], [], 1.0)
            for child in children:
                if child.pipe not in ready:
                    continue
                entered = self._read(child)
                if child is victim and phase in entered and victim.open_phases[phase]:
                    time.sleep(self._draw.uniform(0, self._seconds[phase]))
                    self._end(victim)
                    self.figures.hits[phase] += victim.open_phases[phase] > 0
                    return True
        self.figures.wrong.append(f"{victim.name} did not come to {phase} in {_PATIENCE_SECONDS} s")
        return False

    def _end(self, child: Child) -> None:
        """Kills the process and reads what it had still said."""
        if kill(child.process_id) != -signal.SIGKILL:
            self.figures.wrong.append(f"{child.name} ended by itself")
        self.figures.kills += 1
        while self._read(child, to_end=True):
            pass
        os.close(child.pipe)

    def _read(self, child: Child, *, to_end: bool = False) -> set[str]:
        """Reads the child's lines; returns the phases it entered, or with `to_end` whether there are more."""
        data = os.read(child.pipe, _LINE_BYTES)
        *lines, child.rest = (child.rest + data).split(b"\n")
        entered = {phase for line in lines if (phase := self._take(child, line.decode().split(" ")))}
        return {"more"} if to_end and data else set() if to_end else entered

    def _take(self, child: Child, words: Sequence[str]) -> str:
        match words:
            case ["+", phase, moment]:
                child.open_phases[phase] += 1
                child.entered_at[phase] = int(moment)
                return phase
            case ["-", phase, moment]:
                child.open_phases[phase] -= 1
                lasted_seconds = min((int(moment) - child.entered_at[phase]) / 1e9, _LONGEST_SECONDS)
                self._seconds[phase] = 0.9 * self._seconds[phase] + 0.1 * lasted_seconds
            case ["try", session_id, message_id]:
                child.pending = Pending(session_id, message_id)
            case ["ack", session_id, message_id, number]:
                self.figures.acknowledged += 1
                self._ledger.acknowledge(session_id, message_id, int(number))
            case ["shown", session_id, number, message_id]:
                self.figures.shown += 1
                self._ledger.show(session_id, int(number), message_id)
            case ["failed" | "refused" as how, *_, code]:
                self.figures.failed[f"{how} {code}"] += 1
            case _:
                self.figures.wrong.append(f"{child.name} said {words}")
        return ""
