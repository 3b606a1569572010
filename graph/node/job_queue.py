"""Runs what is made beside turns in threads, so that the folds of one session never delay those of another."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

_LOG = logging.getLogger(__name__)
_MAX_THREADS: Final = 16

# A session has three lanes, so that none delays the others: folds that a turn may wait for (True), merges (False), and
# the search for folds that are due (None).
Lane = tuple[str, bool | None]
Work = Callable[[threading.Event], bool]


@dataclass(eq=False)
class _Job:
    key: str
    work: Work
    stop: threading.Event = field(default_factory=threading.Event)


class JobQueue:
    """A queue of jobs for each lane; a lane runs one job at a time, and all lanes share a thread pool.

    Args:
        what: What is made, for the names of the threads and the log.
        max_threads: How many jobs run at once.
    """

    def __init__(self, what: str, *, max_threads: int = _MAX_THREADS) -> None:
        self._what = what
        self._lock = threading.RLock()  # put_all calls put
        self._lanes: dict[Lane, deque[_Job]] = {}  # the first job of a lane is running or about to
        self._is_closing = False
        self._pool = ThreadPoolExecutor(max_workers=max_threads, thread_name_prefix=what)

    def put(self, lane: Lane, key: str, work: Work, *, is_urgent: bool = False) -> None:
        """Queues work, unless the lane has work with this key already.

        The work gets an event that is set when it should end early, and returns False to drop the jobs queued behind
        it. Urgent work goes before all work that hasn't begun.
        """
        with self._lock:
            if self._is_closing:
                return
            jobs = self._lanes.get(lane)
            if jobs is None:
                self._lanes[lane] = deque([_Job(key, work)])
                self._pool.submit(self._run, lane)
                return
            job = self._find(lane, key)
            if job is None:
                job = _Job(key, work)
                jobs.append(job)
            if is_urgent and job is not jobs[0]:
                jobs.remove(job)
                jobs.insert(1, job)

    def put_all(self, items: Iterable[tuple[Lane, str, Work]]) -> None:
        """Queues jobs in order under one lock, so that even one that fails at once drops those behind it."""
        with self._lock:
            for lane, key, work in items:
                self.put(lane, key, work)

    def has(self, lane: Lane, key: str) -> bool:
        """Whether this work is queued or running."""
        with self._lock:
            return self._find(lane, key) is not None

    def count(self) -> int:
        """Returns how many jobs are queued or running."""
        with self._lock:
            return sum(map(len, self._lanes.values()))

    def is_idle(self, session_id: str) -> bool:
        """Whether nothing of this session is queued or running."""
        with self._lock:
            return not any(lane in self._lanes for lane in _lanes_of(session_id))

    def withdraw(self, lane: Lane, key: str, *, stops_running: bool = False) -> None:
        """Drops this work if it hasn't begun; work that is running goes on unless `stops_running`."""
        with self._lock:
            job = self._find(lane, key)
            if job is None:
                return
            if stops_running:
                job.stop.set()
            if job is not self._lanes[lane][0]:
                self._lanes[lane].remove(job)

    def forget(self, session_id: str) -> None:
        """Drops the queued work of a session and stops the running work."""
        with self._lock:
            self._end(_lanes_of(session_id))

    def close(self) -> None:
        """Drops the queued work, stops the running work, and waits for the threads."""
        with self._lock:
            self._is_closing = True
            self._end(list(self._lanes))
        self._pool.shutdown(wait=True)

    def _find(self, lane: Lane, key: str) -> _Job | None:
        return next((job for job in self._lanes.get(lane, ()) if job.key == key), None)

    def _end(self, lanes: Iterable[Lane]) -> None:
        for lane in lanes:
            jobs = self._lanes.get(lane)
            if jobs:
                jobs[0].stop.set()
                _drop_behind_first(jobs)

    def _run(self, lane: Lane) -> None:
        job = self._lanes[lane][0]
        goes_on = False
        try:
            goes_on = job.stop.is_set() or job.work(job.stop)
        except Exception:  # noqa: BLE001 - the edge of a worker: the lane must go on
            _LOG.exception("%s of session=%s ended by a defect", self._what, lane[0])
        with self._lock:
            jobs = self._lanes[lane]
            if not goes_on:
                _drop_behind_first(jobs)
            jobs.popleft()
            if jobs and not self._is_closing:
                self._pool.submit(self._run, lane)
            else:
                del self._lanes[lane]


def _lanes_of(session_id: str) -> tuple[Lane, ...]:
    return (session_id, True), (session_id, False), (session_id, None)


def _drop_behind_first(jobs: deque[_Job]) -> None:
    while len(jobs) > 1:
        jobs.pop()
