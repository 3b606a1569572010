"""Erases sessions with all that is stored of them: at once, or in the background a minute after they were deleted."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from graph.node.fold_worker import FoldWorker
from graph.service.access import AFTERMATH_SECONDS
from graph.store.stores import ChatStores
from graph.value.error import BusyError, NotFoundError, StoreError
from graph.worker.project_context import SessionContexts
from graph.worker.project_turns import ProjectTurns
from graph.worker.turn_runner import TurnRunner

_LOG = logging.getLogger(__name__)
# How long a session that was deleted can be brought back, and how long the page offers it.
RETENTION_SECONDS: Final = 60.0
OFFER_SECONDS: Final = 10.0


class SessionEraser:
    """Erases sessions of any owner; the caller has checked ownership.

    `leaving` are sessions marked as deleted, with the monotonic time from which they are erased.
    """

    def __init__(
        self,
        *,
        stores: ChatStores,
        runner: TurnRunner,
        fold_worker: FoldWorker,
        contexts: SessionContexts,
        project_turns: ProjectTurns | None,
        retention_seconds: float = RETENTION_SECONDS,
    ) -> None:
        self._stores = stores
        self._runner = runner
        self._fold_worker = fold_worker
        self._contexts = contexts
        self._project_turns = project_turns
        self._retention_seconds = retention_seconds
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._is_closed = False
        self.leaving: dict[str, float] = {}

    def close(self) -> None:
        """Ends the erasing in the background; the next server to start goes on with it."""
        with self._lock:
            self._is_closed = True
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            timer.join()

    def erase(self, session_id: str, owner: str) -> None:
        """Deletes everything stored of a session, once nothing of it runs.

        Raises:
            NotFoundError: The owner has no such session.
            BusyError: Its turn didn't end in time.
        """
        stores = self._stores
        lease = stores.leases.acquire(session_id, wait_seconds=AFTERMATH_SECONDS)
        try:
            with stores.checkpoints.saver() as saver:
                saver.delete_thread(session_id)
            stores.sessions.delete(session_id, owner)
            stores.search.forget_deleted()
            self._fold_worker.forget(session_id)
            stores.forget(session_id)
            self._runner.forget(session_id)
            self._contexts.forget(session_id)
            if self._project_turns is not None:
                self._project_turns.forget_problem(session_id)
        finally:
            stores.leases.release(lease)

    def erase_later(self, session_id: str) -> None:
        """Ends the folds of a session that was marked as deleted, and has it erased once that can't be undone."""
        self._fold_worker.forget(session_id)
        self.leaving[session_id] = time.monotonic() + self._retention_seconds
        self._look_later()

    def erase_expired(self, *, has_others: bool = False) -> None:
        """Erases sessions past their undo time; failures are tried again later.

        Without `has_others`, nothing is read from the database until a session marked by this server is due.
        """
        now = time.monotonic()
        due = [session_id for session_id, moment in list(self.leaving.items()) if moment <= now]
        if not due and not has_others:
            return
        expired = self._stores.sessions.expired(self._retention_seconds)
        for session_id in due:
            self.leaving.pop(session_id, None)
        for session_id, owner in expired:
            try:
                self.erase(session_id, owner)
            except NotFoundError:
                continue  # another server has just erased it
            except (BusyError, StoreError) as error:
                _LOG.warning("a deleted session was not erased: %s", error.code)
                self.leaving[session_id] = now + self._retention_seconds
        if has_others:  # a server that was closed meanwhile would have erased these
            for session_id, _ in self._stores.sessions.expired(0.0):
                self.leaving.setdefault(session_id, now + self._retention_seconds)
        if self.leaving:
            self._look_later()

    def _look_later(self) -> None:
        """Starts the one thread that waits to erase, unless there is one or the server ends."""
        with self._lock:
            if self._is_closed or self._timer is not None:
                return
            self._timer = threading.Timer(self._retention_seconds, self._look)
            self._timer.name, self._timer.daemon = "erase", True
            self._timer.start()

    def _look(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._timer = None
        try:
            self.erase_expired()
        except StoreError as error:
            _LOG.warning("deleted sessions were not looked up: %s", error.code)
        if self.leaving:
            self._look_later()
