"""Runs background work in threads, so that the folds of one session never delay those of another."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from graph.value.error import TurnfoldError

_LOG = logging.getLogger(__name__)
_MAX_THREADS: Final = 16
_MOST_STOPS: Final = 2
_SHORT_SHARE: Final = 0.1

# A session has three lanes, so that none delays the others: folds that a turn may wait for (True), merges (False), and
# the search for folds that are due (None).
Lane = tuple[str, bool | None]
Work = Callable[[threading.Event], bool]


@dataclass(eq=False)
class _Job:
    """Work of a lane.

    Attributes:
        stop: Set to end the work early.
        is_urgent: A turn waits for it: it begins even while its session is held.
        is_begun: It has a thread, or is about to.
        is_working: Its work has begun.
        stops: How often a turn has stopped its work.
        gives_way_to: The session whose turn stops it now; it begins anew after that turn. "" for none.
    """

    key: str
    work: Work
    stop: threading.Event = field(default_factory=threading.Event)
    is_urgent: bool = False
    is_begun: bool = False
    is_working: bool = False
    stops: int = 0
    gives_way_to: str = ""

    @property
    def is_firm(self) -> bool:
        """Whether it runs and no turn stops it any more."""
        return self.is_working and not self.stop.is_set() and (self.is_urgent or self.stops >= _MOST_STOPS)


class JobQueue:
    """A queue of jobs for each lane; a lane runs one job at a time, and all lanes share a thread pool.

    Where jobs and turns share a server that answers one request at a time, the jobs give way: see `hold`.

    Args:
        what: What is made, for the names of the threads and the log.
        max_threads: How many jobs run at once.
        quiet_seconds: Returns how long to wait after a turn before a job begins that no turn stops, or while another
            turn is expected; else jobs wait for a tenth of it, so that a message that follows at once finds the server
            free.
    """

    def __init__(
        self, what: str, *, max_threads: int = _MAX_THREADS, quiet_seconds: Callable[[], float] = lambda: 0.0
    ) -> None:
        self._what = what
        self._quiet_seconds = quiet_seconds
        self._lock = threading.RLock()  # put_all calls put
        self._lanes: dict[Lane, deque[_Job]] = {}  # only the first job of a lane is begun
        self._held: Counter[str] = Counter()
        self._expected: set[str] = set()
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
            jobs = self._lanes.setdefault(lane, deque())
            job = self._find(lane, key)
            if job is None:
                job = _Job(key, work)
                jobs.append(job)
            if is_urgent:
                job.is_urgent = True
                if job is not jobs[0]:
                    jobs.remove(job)
                    jobs.insert(int(jobs[0].is_begun), job)
            self._begin(lane)

    def put_all(self, items: Iterable[tuple[Lane, str, Work]]) -> None:
        """Queues jobs in order under one lock, so that even one that fails at once drops those behind it."""
        with self._lock:
            for lane, key, work in items:
                self.put(lane, key, work)

    def hold(self, session_id: str) -> None:
        """A turn of this session begins: stops what runs, and begins no folds and merges of the session until it ends.

        Those of other sessions are stopped, too, as they would keep this turn waiting. What was stopped begins anew
        after the turn. Nothing is stopped more than twice: the third time it begins only when its session has been
        quiet for a while, and goes on to its end. Searches for due folds and what a turn waits for aren't stopped.
        """
        with self._lock:
            self._expected.discard(session_id)
            self._held[session_id] += 1
            for (_, kind), jobs in self._lanes.items():
                job = jobs[0]
                if kind is None or not job.is_begun or job.is_urgent or job.is_firm or job.stop.is_set():
                    continue
                job.stops += job.is_working
                job.gives_way_to = session_id
                job.stop.set()

    def release(self, session_id: str) -> None:
        """A turn of this session has ended: what it has stopped or held begins, unless another one runs."""
        with self._lock:
            self._held[session_id] -= 1
            if self._held[session_id] <= 0:
                del self._held[session_id]
            for lane in list(self._lanes):
                self._begin(lane)

    def expect(self, session_id: str) -> None:
        """Another turn of this session will follow the one that runs: until it does, jobs wait the whole quiet time."""
        with self._lock:
            self._expected.add(session_id)

    def is_held(self, session_id: str) -> bool:
        """Whether a turn of this session, or one that is expected, keeps its folds and merges from being made."""
        with self._lock:
            first = {lane: self._lanes[lane][0] for lane in _lanes_of(session_id)[:2] if lane in self._lanes}
            if any(job.is_working and not job.stop.is_set() for job in first.values()):
                return False
            return any(session_id in self._expected or self._is_held(lane, job) for lane, job in first.items())

    def has(self, lane: Lane, key: str) -> bool:
        """Whether this work is queued or running."""
        with self._lock:
            return self._find(lane, key) is not None

    def is_firm(self, lane: Lane, key: str) -> bool:
        """Whether this work is running, and no turn stops it."""
        with self._lock:
            job = self._find(lane, key)
            return job is not None and job.is_firm

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
                job.gives_way_to = ""
            if not job.is_begun:
                self._remove(lane, job)

    def forget(self, session_id: str) -> None:
        """Drops the queued work of a session and stops the running work."""
        with self._lock:
            self._expected.discard(session_id)
            self._end(_lanes_of(session_id))

    def close(self) -> None:
        """Drops the queued work, stops the running work, and waits for the threads."""
        with self._lock:
            self._is_closing = True
            self._end(list(self._lanes))
        self._pool.shutdown(wait=True)

    def _find(self, lane: Lane, key: str) -> _Job | None:
        return next((job for job in self._lanes.get(lane, ()) if job.key == key), None)

    def _remove(self, lane: Lane, job: _Job) -> None:
        self._lanes[lane].remove(job)
        if not self._lanes[lane]:
            del self._lanes[lane]

    def _begin(self, lane: Lane) -> None:
        """Gives the first job of a lane a thread, unless it has one or a turn holds it."""
        job = self._lanes[lane][0]
        if not (job.is_begun or self._is_closing or self._is_held(lane, job)):
            job.is_begun, job.gives_way_to = True, ""
            self._pool.submit(self._run, lane, job)

    def _is_held(self, lane: Lane, job: _Job) -> bool:
        session_id, kind = lane
        is_waiting = kind is not None and not job.is_urgent
        return is_waiting and (session_id in self._held or job.gives_way_to in self._held)

    def _end(self, lanes: Iterable[Lane]) -> None:
        for lane in lanes:
            jobs = self._lanes.get(lane)
            if jobs:
                jobs[0].stop.set()
                jobs[0].gives_way_to = ""
                _drop_behind_first(jobs)
                if not jobs[0].is_begun:
                    del self._lanes[lane]

    def _run(self, lane: Lane, job: _Job) -> None:
        if lane[1] is not None and not job.is_urgent:
            is_long = job.stops >= _MOST_STOPS or lane[0] in self._expected
            if not job.stop.wait(self._quiet_seconds() * (1 if is_long else _SHORT_SHARE)):
                self._expected.discard(lane[0])  # it hasn't come
        job.is_working = not job.stop.is_set()  # without the lock: put_all holds it until the last job is queued
        goes_on = not job.is_working
        try:
            goes_on = goes_on or job.work(job.stop)
        except TurnfoldError as error:  # an outage: what is due is found again with the next turn
            _LOG.warning("%s of session=%s ended: %s", self._what, lane[0], error.code)
        except Exception:  # noqa: BLE001 - the edge of a worker: the lane must go on
            _LOG.exception("%s of session=%s ended by a defect", self._what, lane[0])
        with self._lock:
            if job.gives_way_to and not self._is_closing:
                job.stop, job.is_begun, job.is_working = threading.Event(), False, False
            else:
                if not goes_on:
                    _drop_behind_first(self._lanes[lane])
                self._remove(lane, job)
            if lane in self._lanes and not self._is_closing:
                self._begin(lane)


def _lanes_of(session_id: str) -> tuple[Lane, ...]:
    return (session_id, True), (session_id, False), (session_id, None)


def _drop_behind_first(jobs: deque[_Job]) -> None:
    while len(jobs) > 1:
        jobs.pop()
