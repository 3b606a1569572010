"""Limits how many turns run at once and begin within a minute, on this server and for each owner."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from graph.error import BusyError, ServerBusyError, TurnRateError
from graph.metrics import Metrics

_MINUTE_SECONDS: Final = 60.0


class TurnLimiter:
    """Counts the turns of this server and refuses those over a limit, instead of queueing them.

    Args:
        concurrent_turns: How many may run at once, in all sessions together.
        turns_per_minute: How many may begin within any sixty seconds.
        admit: Counts a turn of an owner, and refuses it if the owner has had enough.
        metrics: Counts what is refused.
        now_seconds: A monotonic clock.
    """

    def __init__(
        self,
        *,
        concurrent_turns: int,
        turns_per_minute: int,
        admit: Callable[[str], None],
        metrics: Metrics,
        now_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admit = admit
        self._metrics = metrics
        self._concurrent_turns = concurrent_turns
        self._turns_per_minute = turns_per_minute
        self._now_seconds = now_seconds
        self._lock = threading.Lock()
        self._running_count = 0
        self._begun: deque[float] = deque()

    @property
    def running_count(self) -> int:
        """How many turns run."""
        return self._running_count

    def begin(self, owner: str) -> None:
        """Reserves a slot for a turn of this owner; `end` releases it.

        Raises:
            ServerBusyError: The maximum number of turns is running; `detail` is that number.
            TurnRateError: Too many turns began within the last minute; `detail` is how long to wait. Or this owner has
                begun too many (`UserRateError`), or spent too many tokens (`UserTokensError`).
            StoreError: What the owner has used can't be read or counted.
        """
        try:
            with self._lock:
                self._check_room()  # first: what isn't begun for want of room doesn't count against its owner
            self._admit(owner)  # before a slot is taken: whoever has had enough takes nothing of what the others share
            with self._lock:
                self._check_room()
                self._begun.append(self._now_seconds())
                self._running_count += 1
        except BusyError as error:
            self._metrics.failed("limit", error.code)
            raise

    def _check_room(self) -> None:
        now = self._now_seconds()
        while self._begun and now - self._begun[0] >= _MINUTE_SECONDS:
            self._begun.popleft()
        if self._running_count >= self._concurrent_turns:
            most = f"≤ {self._concurrent_turns}"
            raise ServerBusyError(most)
        if len(self._begun) >= self._turns_per_minute:
            raise TurnRateError(math.ceil(_MINUTE_SECONDS - (now - self._begun[0])))

    def end(self) -> None:
        """Releases the slot of a turn, however it ended."""
        with self._lock:
            self._running_count -= 1
