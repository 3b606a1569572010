"""Deletes sessions: at once with all that is stored of them, or at first so that they can be brought back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from graph.service.access import AFTERMATH_SECONDS, SessionAccess
from graph.value.error import BusyError, NotFoundError, StoreError

_LOG = logging.getLogger(__name__)
# How long a session that was deleted can be brought back. The page offers it for ten seconds.
KEPT_SECONDS: Final = 60.0


def erase(access: SessionAccess, session_id: str) -> None:
    """Deletes everything that is stored of one of the owner's sessions, once nothing of it runs.

    Raises:
        NotFoundError: The owner has no such session.
        BusyError: Its turn didn't end in time.
    """
    stores = access.stores
    lease = stores.leases.acquire(session_id, wait_seconds=AFTERMATH_SECONDS)
    try:
        stores.checkpointer.delete_thread(session_id)
        stores.sessions.delete(session_id, access.owner)
        stores.search.forget_deleted()
        access.fold_worker.forget(session_id)
        access.runner.forget(session_id)
        access.contexts.forget(session_id)
        if access.project_turns is not None:
            access.project_turns.forget_problem(session_id)
    finally:
        stores.leases.release(lease)


def delete_for_now(access: SessionAccess, stop: Callable[[str], None], session_ids: Iterable[str]) -> tuple[str, ...]:
    """Stops and hides those of the sessions that the owner has, and returns their ids.

    Args:
        access: The owner's service.
        stop: Stops a session's turn.
        session_ids: The sessions.
    """
    deleted: list[str] = []
    for session_id in dict.fromkeys(session_ids):
        try:
            stop(session_id)
            access.stores.sessions.mark_deleted(session_id, access.owner)
        except NotFoundError:
            continue
        access.fold_worker.forget(session_id)
        access.leaving[session_id] = time.monotonic() + KEPT_SECONDS
        deleted.append(session_id)
    return tuple(deleted)


def bring_back(access: SessionAccess, session_ids: Iterable[str]) -> tuple[str, ...]:
    """Brings back those of the owner's sessions that were deleted within `KEPT_SECONDS`, and returns their ids.

    Raises:
        SignInError: The owner isn't let in any more.
    """
    access.check_admitted()
    stored = access.stores.sessions
    return tuple(
        session_id
        for session_id in dict.fromkeys(session_ids)
        if stored.bring_back(session_id, access.owner, within_seconds=KEPT_SECONDS)
    )


def erase_expired(access: SessionAccess, *, has_others: bool = False) -> None:
    """Erases the sessions of all owners that can no longer be brought back. What can't be erased is tried again later.

    Args:
        access: The service of any owner.
        has_others: Whether other servers may have left some behind; otherwise nothing is looked up until one that this
            server hid is due.
    """
    now = time.monotonic()
    due = [session_id for session_id, moment in list(access.leaving.items()) if moment <= now]
    if not due and not has_others:
        return
    for session_id in due:
        access.leaving.pop(session_id, None)
    for session_id, owner in access.stores.sessions.expired(KEPT_SECONDS):
        try:
            erase(replace(access, owner=owner), session_id)
        except NotFoundError:
            continue  # another server has just erased it
        except (BusyError, StoreError) as error:
            _LOG.warning("a deleted session was not erased: %s", error.code)
            access.leaving[session_id] = now + KEPT_SECONDS
    if has_others:  # a server that was closed meanwhile would have erased these
        for session_id, _ in access.stores.sessions.expired(0.0):
            access.leaving.setdefault(session_id, now + KEPT_SECONDS)
