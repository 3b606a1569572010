"""Limits how many turns run at once and begin within a minute, on this server and for each owner."""

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
    """Counts the turns of this server and refuses those over a limit, instead of queueing them.

    Args:
        concurrent_turns: How many may run at once, in all sessions together.
        owner_turns: How many of one owner's may, in all of his sessions together.
        turns_per_minute: How many may begin within any sixty seconds.
        admit: Counts a turn of an owner, and refuses it if the owner has had enough.
        metrics: Counts what is refused.
        now_seconds: A monotonic clock.
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
        self._begun: deque[float] = deque()

    @property
    def running_count(self) -> int:
        """How many turns run."""
        with self._lock:
            return self._running.total()

    def begin(self, owner: str) -> None:
        """Reserves a slot for a turn of this owner; `end` releases it.

        Raises:
            ServerBusyError: The maximum number of turns is running, of this owner (`UserBusyError`) or of all; `detail`
                is that number.
            TurnRateError: Too many turns began within the last minute; `detail` is how long to wait. Or this owner has
                begun too many (`UserRateError`), or spent too many tokens (`UserTokensError`).
            StoreError: What the owner has used can't be read or counted.
        """
        try:
            with self._lock:
                self._check_room(owner)  # first: what isn't begun for want of room doesn't count against its owner
            self._admit(owner)  # before a slot is taken: whoever has had enough takes nothing of what the others share
            with self._lock:
                self._check_room(owner)
                self._begun.append(self._now_seconds())
                self._running[owner] += 1
        except BusyError as error:
            self._metrics.failed("limit", error.code)
            raise

    def _check_room(self, owner: str) -> None:
        now = self._now_seconds()
        while self._begun and now - self._begun[0] >= _MINUTE_SECONDS:
            self._begun.popleft()
        if self._running[owner] >= self._owner_turns < self._concurrent_turns:
            share = f"{self._owner_turns}/{self._concurrent_turns}"
            raise UserBusyError(share)
        if self._running.total() >= self._concurrent_turns:
            most = f"≤ {self._concurrent_turns}"
            raise ServerBusyError(most)
        if len(self._begun) >= self._turns_per_minute:
            raise TurnRateError(math.ceil(_MINUTE_SECONDS - (now - self._begun[0])))

    def end(self, owner: str) -> None:
        """Releases the slot of a turn of this owner, however it ended."""
        with self._lock:
            self._running[owner] -= 1
            if not self._running[owner]:
                del self._running[owner]
