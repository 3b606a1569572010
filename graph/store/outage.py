"""Waits for a database that is away for a while, so that nothing that a turn has said is lost."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from graph.value.error import DatabaseBusyError, DatabaseUnreachableError

OUTAGE_SECONDS: Final = 90.0
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 1.0

_LOG = logging.getLogger(__name__)
_Result = TypeVar("_Result")


def outlast(action: Callable[[], _Result], give_up: threading.Event, *, seconds: float = OUTAGE_SECONDS) -> _Result:
    """Does something in the database, again and again while that can't be reached or all of it is in use.

    Args:
        action: What is done. It may have been committed although it failed, so doing it twice must be as good as once.
        give_up: No more tries once this is set.
        seconds: For how long it is tried.

    Returns:
        What `action` returns.

    Raises:
        DatabaseUnreachableError: The database was away until the last try.
        DatabaseBusyError: The database was busy until the last try.
    """
    until, pause = time.monotonic() + seconds, _FIRST_PAUSE_SECONDS
    while True:
        try:
            return action()
        except (DatabaseUnreachableError, DatabaseBusyError) as error:
            if give_up.is_set() or time.monotonic() >= until:
                raise
            if pause == _FIRST_PAUSE_SECONDS:
                _LOG.warning("a write waits for the database: %s", error.code)
        give_up.wait(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
