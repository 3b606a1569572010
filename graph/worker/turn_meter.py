"""Measures one attempt of a turn by its events."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from graph.event import ActionRequired, Event, TokenDelta, TurnFailed, TurnFinished, TurnStopped
from graph.metrics import Metrics, TurnEnd

_ENDS: Final[Mapping[type[Event], TurnEnd]] = {
    TurnFinished: "finished",
    ActionRequired: "requires_action",
    TurnStopped: "stopped",
    TurnFailed: "failed",
}


class TurnMeter:
    """Counts how a turn ends, and how long it takes from now until its first word and until its end.

    Usage:
        >>> log.watch(TurnMeter(metrics).hear)
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._began = time.monotonic()
        self._is_silent = True

    def hear(self, event: Event) -> None:
        """Takes the next event of the turn."""
        if isinstance(event, TokenDelta):
            if self._is_silent:
                self._is_silent = False
                self._metrics.first_word(time.monotonic() - self._began)
        elif (end := _ENDS.get(type(event))) is not None:
            code = event.code if isinstance(event, TurnFailed) else ""
            self._metrics.turn_ended(end, seconds=time.monotonic() - self._began, error_code=code)
