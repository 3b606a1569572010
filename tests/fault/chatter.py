"""Processes that chat until they are killed, and what their users were told."""

from __future__ import annotations

import os
import random
import select
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.fault.check import Ledger
from tests.fault.child import Pending, chat
from tests.fault.mark import PHASES
from tests.fault.process import fork, kill

_FIRST_GUESS_SECONDS: Final = 0.004
_LONGEST_SECONDS: Final = 0.03
_LINE_BYTES: Final = 65_536


@dataclass
class Child:
    """One process that chats, and what it said so far.

    Attributes:
        open_phases: How many threads are in each phase.
        entered_at: When it last came to a phase, in nanoseconds.
        taken: How many of its messages were acknowledged.
    """

    name: str
    process_id: int
    pipe: int
    pending: Pending | None = None
    open_phases: Counter[str] = field(default_factory=Counter)
    entered_at: dict[str, int] = field(default_factory=dict)
    rest: bytes = b""
    taken: int = 0


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


class Chatters:
    """Starts and ends processes that chat, and keeps what they say; its user decides when.

    Attributes:
        ledger: What users of the folder in use were told.
        figures: What is told of the whole run.
        seconds: How long each phase has lasted lately, about.

    Args:
        draw: The dice.
    """

    def __init__(self, draw: random.Random) -> None:
        self.ledger = Ledger()
        self.figures = Figures()
        self.seconds = dict.fromkeys(PHASES, _FIRST_GUESS_SECONDS)
        self._draw = draw
        self._names = 0

    def start(self, folder: Path, sessions: Sequence[str], pending: Pending | None) -> Child:
        self._names += 1
        name, seed = f"p{self._names}", self._draw.randrange(2**32)
        return Child(name, *fork(lambda marker: chat(folder, name, sessions, pending, marker, seed=seed)), pending)

    def listen(self, children: Sequence[Child], seconds: float) -> dict[str, set[str]]:
        """Reads what comes first within this time: which processes entered which phases, by their names."""
        ready, _, _ = select.select([child.pipe for child in children], [], [], seconds)
        return {child.name: self._read(child) for child in children if child.pipe in ready}

    def end(self, child: Child) -> None:
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
                self.seconds[phase] = 0.9 * self.seconds[phase] + 0.1 * lasted_seconds
            case ["try", session_id, message_id]:
                child.pending = Pending(session_id, message_id)
            case ["ack", session_id, message_id, number]:
                child.taken += 1
                self.figures.acknowledged += 1
                self.ledger.acknowledge(session_id, message_id, int(number))
            case ["shown", session_id, number, message_id]:
                self.figures.shown += 1
                self.ledger.show(session_id, int(number), message_id)
            case ["failed" | "refused" as how, *_, code]:
                self.figures.failed[f"{how} {code}"] += 1
            case _:
                self.figures.wrong.append(f"{child.name} said {words}")
        return ""
