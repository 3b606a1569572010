"""Runs the faults, short or long, and prints the figures; the last line is a summary, the exit code says the same.

python -m tests.fault [--short] [--seed N] [--folder DIR]
    [--parts kill,postgres,single,write,crowd,load,project,outage,stall,size]
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import graph.store.upgrade  # noqa: F401  # slow to import: once here, not in every process
from tests.fake.folder import fast_folder
from tests.fake.postgres import PostgresServer, serve_postgres
from tests.fault import gathering, outage, scenario, size
from tests.fault.chatter import Figures
from tests.fault.kill import Killer
from tests.fault.location import put_elsewhere
from tests.fault.mark import PHASES
from tests.fault.process import in_own_process, side_by_side
from tests.fault.project import kill_while_writing
from tests.fault.stall import HEAD, Stall, stand_still

_LANES: Final = (("kill", "postgres"), ("single", "write", "crowd", "load", "project", "outage", "stall"), ("size",))
_CLOCK_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Scale:
    """How much of everything is done."""

    kills_in_phase: int
    kills: int
    write_step: int
    lock_seconds: tuple[float, ...]
    busy_timeout_seconds: float
    crowd_turns: int
    sessions: int
    session_turns: int
    long_turns: int
    project_kills: int
    outages: int
    clock_turns: int
    stalls: tuple[Stall, ...]


SHORT: Final = Scale(1, 0, 80, (0.5, 2.5), 1.2, 16, 4, 20, 60, 20, 4, 10, (Stall(5, 12, 3, 2),))
_STALLS: Final = (*(Stall(seconds, 12, 12, 20) for seconds in (5, 20, 60)), Stall(20, 12, 12, 20, ends=True))
LONG: Final = Scale(100, 1_000, 1, (8, 60), 30, 128, 100, 5_000, 1_000, 200, 40, 50, _STALLS)


class Run:
    """One run; every part prints its line and keeps what was wrong."""

    def __init__(self, root: Path, scale: Scale, seed: int) -> None:
        self._root = root
        self._scale = scale
        self._seed = seed
        self.wrong: list[str] = []

    def lane(self, parts: Sequence[str]) -> list[str]:
        """Runs parts one after another, prints each one's line, and returns what was wrong."""
        for part in parts:
            began = time.monotonic()
            said = getattr(self, part)()
            sys.stdout.write(f"{part}: {said} [{time.monotonic() - began:.0f} s]\n")
            sys.stdout.flush()
        return self.wrong

    def kill(self) -> str:
        """(a) kill -9 in every phase."""
        return self._kill(self._root / "kill", self._scale.kills)

    def _kill(self, root: Path, at_least: int, prepare: Callable[[Path], Path] = lambda folder: folder) -> str:
        killer = Killer(root, per_phase=self._scale.kills_in_phase, seed=self._seed, at_least=at_least, prepare=prepare)
        found = killer.run()
        self.wrong += found.wrong
        phases = ", ".join(f"{phase} {found.hits[phase]}" for phase in PHASES)
        return f"{found.kills} kills (inside {phases}); {_told(found)}"

    def write(self) -> str:
        """(b) the n-th write fails."""
        (count,) = in_own_process(lambda: [str(scenario.count_writes(self._root / "writes"))])
        failing = range(1, int(count) + 1, self._scale.write_step)
        halves = [partial(self._fail_writes, failing[half::2]) for half in range(2)]
        self.wrong += side_by_side(halves)
        return f"{len(failing)} of {count} writes of a {scenario.TURNS}-turn chat failed, one a chat"

    def _fail_writes(self, failing: Sequence[int]) -> list[str]:
        return [line for n in failing for line in scenario.nth_write_fails(self._root / f"write-{n}", n)]

    def single(self) -> str:
        """(d) locks, (e) a full disk, (f) the clock, (h) forged checkpoints; side by side, as they mostly wait."""
        scale, root = self._scale, self._root
        works: list[Callable[[], list[str]]] = [
            *(
                partial(
                    scenario.locked, root / f"lock-{s}", lock_seconds=s, busy_timeout_seconds=scale.busy_timeout_seconds
                )
                for s in scale.lock_seconds
            ),
            partial(scenario.disk_full, root / "disk"),
            *(partial(scenario.clock_moves, root / f"clock{hours}", hours=hours) for hours in (1, -1)),
            partial(scenario.forged_checkpoint, root / "forged"),
        ]
        self.wrong += side_by_side(works)
        locks = " and ".join(f"{seconds:g} s" for seconds in scale.lock_seconds)
        return f"database locked for {locks}, disk full, clock set by ±1 h, checkpoints forged in four ways"

    def crowd(self) -> str:
        """(c) one id eight times, (g) a fresh file, and many senders in one session."""
        self.wrong += gathering.same_id_at_once(self._root / "same")
        self.wrong += gathering.eight_on_a_fresh_file(self._root / "fresh")
        self.wrong += gathering.crowd_in_one_session(self._root / "crowd", turns=self._scale.crowd_turns)
        turns = self._scale.crowd_turns
        return f"one id from 8 processes, 8 processes on a fresh file, {turns} turns by 2 × 8 senders in one session"

    def load(self) -> str:
        """Many turns in many sessions."""
        scale = self._scale
        self.wrong += gathering.many_sessions(self._root / "many", sessions=scale.sessions, turns=scale.session_turns)
        return f"{scale.session_turns} turns in {scale.sessions} sessions"

    def project(self) -> str:
        """kill -9 while a project's memory is written: on the disk, as one in memory is hardly ever caught writing."""
        with tempfile.TemporaryDirectory(prefix="turnfold-fault-") as folder:
            found = kill_while_writing(Path(folder), kills=self._scale.project_kills, seed=self._seed)
        self.wrong += found.wrong
        return (
            f"{found.kills} kills ({found.halves} with a file half written, {found.between} between two files); "
            f"{found.acknowledged} acknowledged writes of a project: {len(found.wrong)} lost, doubled or torn"
        )

    def postgres(self) -> str:
        """The same on Postgres: kills of servers, crowds, and servers whose clocks are apart."""
        return self._on_postgres(self._postgres)

    def _postgres(self, server: PostgresServer) -> str:
        def prepare(folder: Path) -> Path:
            return put_elsewhere(folder, server.make_database())

        root, scale = self._root / "postgres", self._scale
        kills = self._kill(root / "kill", 0, prepare)
        works = [
            partial(gathering.same_id_at_once, prepare(root / "same")),
            partial(gathering.eight_on_a_fresh_file, prepare(root / "fresh")),
            partial(gathering.crowd_in_one_session, prepare(root / "crowd"), turns=scale.crowd_turns),
            partial(gathering.clocks_apart, prepare(root / "clock"), turns=scale.clock_turns, seconds=_CLOCK_SECONDS),
            partial(outage.pool_exhausted, prepare(root / "pool")),
        ]
        for work in works:
            self.wrong += in_own_process(work)
        clocks = f"{scale.clock_turns} turns with clocks ±{_CLOCK_SECONDS:g} s"
        return f"{kills}; crowds as on files; {clocks}; no connection left"

    def outage(self) -> str:
        """Postgres itself crashes, cuts its connections, lets nobody in, or has none left."""
        return self._on_postgres(self._outage)

    def _outage(self, server: PostgresServer) -> str:
        found = outage.Outages(self._root / "outage", server, seed=self._seed).run(self._scale.outages)
        self.wrong += found.wrong
        return f"{self._scale.outages} outages under two servers ({', '.join(outage.KINDS)}); {_told(found)}"

    def stall(self) -> str:
        """Postgres stands still for longer than leases last, and the models speak on."""
        return self._on_postgres(self._stall)

    def _stall(self, server: PostgresServer) -> str:
        rows = [HEAD]
        for number, stall in enumerate(self._scale.stalls):
            found = stand_still(self._root / f"stall-{number}", server, stall)
            self.wrong += found.wrong
            rows.append(found.row)
        return "\n".join(["two servers stream, and", *rows])

    def _on_postgres(self, work: Callable[[PostgresServer], str]) -> str:
        with ExitStack() as stack:
            try:
                server = stack.enter_context(serve_postgres())
            except LookupError as error:
                if os.environ.get("REQUIRE_POSTGRES"):
                    raise
                return f"left out: {error}"
            return work(server)

    def size(self) -> str:
        """How large the archive of a long session is, and how long it takes to open it."""
        turns, folder = self._scale.long_turns, self._root / "size"
        (opening,) = in_own_process(lambda: [str(size.opening_share(folder, turns=turns))])
        share, message_bytes = size.archive_share(folder / "turnfold.db")
        if message_bytes < size.MESSAGE_BYTES:
            self.wrong.append(f"messages of {message_bytes:.0f} bytes say nothing of the size")
        if share > size.LARGEST_SHARE:
            self.wrong.append(f"the archive is {share:.2f} × its text")
        if (whole := size.file_share(folder / "turnfold.db")) > size.LARGEST_FILE_SHARE:
            self.wrong.append(f"the whole database is {whole:.2f} × its text")
        if float(opening) > size.SLOWEST_SHARE:
            self.wrong.append(f"opening {turns} turns takes {float(opening):.2f} × 30 turns")
        return (
            f"archive and indexes {share:.2f} × the text at {message_bytes:.0f} bytes a message; "
            f"the whole database {whole:.2f} × the text; "
            f"opening {turns} turns {float(opening):.2f} × 30 turns"
        )


def _told(found: Figures) -> str:
    refused = f"; {dict(found.failed)}" if found.failed else ""
    return (
        f"{found.acknowledged} acknowledged and {found.shown} shown turns: "
        f"{len(found.wrong)} lost, doubled, hidden, orphaned or corrupt{refused}"
    )


def main() -> int:
    """Runs the parts that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.fault")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--parts", default=",".join(part for lane in _LANES for part in lane))
    parser.add_argument("--folder", type=Path, default=None)
    wanted = parser.parse_args()
    seed = secrets.randbelow(2**31) if wanted.seed is None else wanted.seed
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="turnfold-fault-", dir=wanted.folder or fast_folder()) as folder:
        run = Run(Path(folder), SHORT if wanted.short else LONG, seed)
        parts = wanted.parts.split(",")
        # What mostly waits goes beside what mostly works; what is measured goes last, alone.
        lanes = [[part for part in parts if part in lane] for lane in _LANES]
        wrong = side_by_side([partial(run.lane, lane) for lane in lanes[:2]]) + in_own_process(
            partial(run.lane, lanes[2])
        )
    for fault in wrong[:50]:
        sys.stdout.write(f"WRONG {fault}\n")
    review = "OK" if not wrong else f"FAILED: {len(wrong)} faults"
    sys.stdout.write(f"{review} (seed {seed}, {time.monotonic() - began:.0f} s)\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
