"""Reserves what a turn needs before it is committed: a slot of the server and the session's lease."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from graph.core.text import title_of
from graph.error import BusyError
from graph.service.access import AFTERMATH_SECONDS, SessionAccess
from graph.store.database import Lease


@contextmanager
def reserved(
    access: SessionAccess, session_id: str, wait_seconds: float = 0.0, *, opening: str | None = None
) -> Iterator[Lease]:
    """Reserves a slot of the server and acquires the lease. On error both are released; else the worker does it.

    Args:
        access: The service's own.
        session_id: The session.
        wait_seconds: How long to wait for a turn in progress; 5 s for the clean-up after one are always allowed.
        opening: A message that may be the session's first: the session is created if need be, titled after it,
            and deleted on error if it is still empty.

    Raises:
        BusyError: A turn is in progress, or (`ServerBusyError`, `TurnRateError`) a limit of the server is reached.
    """
    if wait_seconds == 0 and access.is_busy(session_id):
        raise BusyError
    with ExitStack() as undo:
        access.runner.limiter.begin()
        undo.callback(access.runner.limiter.end)
        if opening is not None:
            rate = access.settings.compression_rate
            title = title_of(opening)
            access.stores.sessions.create(session_id, access.owner, title=title, compression_rate=rate, strategy="")
        lease = access.stores.leases.acquire(session_id, wait_seconds=max(wait_seconds, AFTERMATH_SECONDS))
        undo.callback(access.stores.leases.release, lease)
        if opening is not None:
            undo.callback(access.stores.sessions.discard_empty, lease)
        yield lease
        undo.pop_all()
