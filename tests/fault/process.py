"""Starts processes for a scenario and reads what they say; the starter has no threads, as it forks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence

from tests.fake.crowd import work_and_exit
from tests.fault.mark import Marker


def fork(work: Callable[[Marker], None]) -> tuple[int, int]:
    """Starts a process that does the work and exits; returns its id and the pipe by which it talks."""
    reading, writing = os.pipe()
    process_id = os.fork()
    if process_id == 0:
        os.close(reading)
        work_and_exit(lambda _: work(Marker(writing)), 0)
    os.close(writing)
    return process_id, reading


def run_all(works: Sequence[Callable[[Marker], None]]) -> list[list[str]]:
    """Runs each work in a process of its own, all at once; returns the lines that each has said.

    A process that ends by an error of its own adds the line `ended <code>`.
    """
    started = [fork(work) for work in works]
    said: list[list[str]] = []
    for process_id, pipe in started:
        with os.fdopen(pipe, encoding="utf-8") as lines:
            heard = lines.read().splitlines()
        code = os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1])
        said.append(heard + ([f"ended {code}"] if code else []))
    return said


def kill(process_id: int) -> int:
    """Kills a process and returns how it ended: minus the signal's number, if the kill came before its end."""
    os.kill(process_id, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1])


def side_by_side(works: Sequence[Callable[[], Sequence[str]]]) -> list[str]:
    """Does each work in a process of its own, all at once; returns the lines that they return."""

    def telling(work: Callable[[], Sequence[str]]) -> Callable[[Marker], None]:
        def tell(marker: Marker) -> None:
            for line in work():
                marker.say(line)

        return tell

    return [line for lines in run_all([telling(work) for work in works]) for line in lines]


def in_own_process(work: Callable[[], Sequence[str]]) -> list[str]:
    """Does the work in a process of its own, so that this one stays without threads; returns the lines it returns."""
    return side_by_side([work])
