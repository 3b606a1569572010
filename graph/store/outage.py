"""Retries during an outage of the database, so that no message of a turn is lost."""

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
    """Retries an action while the database is unreachable or busy.

    Args:
        action: Must be idempotent: it may have been committed although it failed.
        give_up: Ends the retries once set.
        seconds: Time limit of the retries.

    Raises:
        DatabaseUnreachableError: The last try couldn't reach the database.
        DatabaseBusyError: The database was busy at the last try.
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
