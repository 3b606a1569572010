"""Limits concurrent turns and turns per minute, for this server and each owner."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from graph.server.metrics import Metrics
from graph.value.error import BusyError, ServerBusyError, TurnRateError, UserBusyError

_MINUTE_SECONDS: Final = 60.0


class TurnLimiter:
    """Counts the turns of this server, over all sessions and by owner, and refuses those over a limit.

    Args:
        turns_per_minute: Maximum of turns started within any sixty seconds.
        admit: Counts an owner's turn, or refuses it at the owner's limit.
    """

    def __init__(
        self,
        *,
        concurrent_turns: int,
        owner_turns: int,
        turns_per_minute: int,
        admit: Callable[[str], None],
        metrics: Metrics,
        now_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admit = admit
        self._metrics = metrics
        self._concurrent_turns = concurrent_turns
        self._owner_turns = owner_turns
        self._turns_per_minute = turns_per_minute
        self._now_seconds = now_seconds
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._started: deque[float] = deque()

    @property
    def running_count(self) -> int:
        with self._lock:
            return self._running.total()

    def begin(self, owner: str) -> None:
        """Reserves a slot for a turn of this owner; `end` releases it.

        Raises:
            ServerBusyError: The maximum of running turns, of this owner (`UserBusyError`) or of all, is reached;
                `detail` is that number.
            TurnRateError: Too many turns started within the last minute; `detail` is the time to wait. Or the owner has
                started too many turns (`UserRateError`) or used too many tokens (`UserTokensError`).
            StoreError: The owner's use can't be read or counted.
        """
        try:
            with self._lock:
                self._check_room(owner)  # first: a turn refused for lack of room must not count for its owner
            self._admit(owner)  # before taking a slot: an owner at the limit must not take shared slots
            with self._lock:
                self._check_room(owner)
                self._started.append(self._now_seconds())
                self._running[owner] += 1
        except BusyError as error:
            self._metrics.failed("limit", error.code)
            raise

    def _check_room(self, owner: str) -> None:
        now = self._now_seconds()
        while self._started and now - self._started[0] >= _MINUTE_SECONDS:
            self._started.popleft()
        if self._running[owner] >= self._owner_turns < self._concurrent_turns:
            share = f"{self._owner_turns}/{self._concurrent_turns}"
            raise UserBusyError(share)
        if self._running.total() >= self._concurrent_turns:
            most = f"≤ {self._concurrent_turns}"
            raise ServerBusyError(most)
        if len(self._started) >= self._turns_per_minute:
            raise TurnRateError(math.ceil(_MINUTE_SECONDS - (now - self._started[0])))

    def end(self, owner: str) -> None:
        with self._lock:
            self._running[owner] -= 1
            if not self._running[owner]:
                del self._running[owner]
