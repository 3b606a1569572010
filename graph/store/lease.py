"""The lease table: the worker that may change a session, with a fencing token, and the liveness of its process."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Update, and_, bindparam, select, tuple_, update

from graph.store.column import database_time
from graph.store.database import Database, Lease
from graph.store.schema import lease_table
from graph.value.error import BusyError, DatabaseError, NotFoundError

_PROC = Path("/proc")
_STATE_FIELD = 0
_START_FIELD = 19
_DEAD_STATES = ("Z", "X", "x")


@dataclass(frozen=True)
class Process:
    """A process; the start distinguishes it from a later process with the same id.

    `host` is the scope of the id: host name, boot id and pid namespace. `started` counts kernel ticks since boot, ""
    without /proc; a time of day such as psutil's `create_time` changes when the clock is set.
    """

    host: str
    process_id: int
    started: str


def process_name(process: Process) -> str:
    return f"{process.process_id} {process.started} {process.host}"


def named_process(name: str) -> Process | None:
    """Parses the text of `process_name`; None for other text."""
    process_id, *rest = name.split(" ", 2)
    if not process_id.isdecimal() or len(rest) != 2:  # noqa: PLR2004  # its start and its host
        return None
    return Process(rest[1], int(process_id), rest[0])


def this_process() -> Process:
    """Returns the calling process; not cached, because of forks."""
    process_id = os.getpid()
    stat = _read_stat(process_id)
    return Process(_host(), process_id, stat[_START_FIELD] if stat else "")


def is_gone(process: Process) -> bool:
    """True if the process has certainly ended; False if unknown, as for other hosts."""
    if process.host != _host():
        return False
    if process.started:
        stat = _read_stat(process.process_id)
        return stat is None or stat[_STATE_FIELD] in _DEAD_STATES or stat[_START_FIELD] != process.started
    try:
        os.kill(process.process_id, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it runs, as another user
    return False


@cache
def _host() -> str:
    """Names host and pid namespace; several containers may share a host name."""
    return f"{socket.gethostname()}/{_boot_id()}/{_pid_namespace()}"


def _boot_id() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _read_stat(process_id: int) -> list[str] | None:
    """Returns the fields after the command name, which is in brackets and may contain spaces and brackets."""
    try:
        text = (_PROC / str(process_id) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


_POLL_SECONDS = 0.05
_LONGEST_POLL_SECONDS = 0.25
_LONGEST_RETRY_SECONDS = 1.0
_FREE = ""

_lease = lease_table.c
_ROWS = select(lease_table, (_lease.expires_at > database_time()).label("is_on_time"))
_ROW = _ROWS.where(_lease.session_id == bindparam("session_id"))
_OF_SESSIONS = _ROWS.where(_lease.session_id.in_(bindparam("session_ids", expanding=True)))

_IS_RELEASED = _lease.owner == _FREE
_KEY = (_lease.session_id, _lease.fence)
_unlocked = lease_table.alias("unlocked").c

_LOG = logging.getLogger(__name__)


class LeaseStore:
    """Leases each session to one worker at a time, across threads, processes and hosts; a thread renews held leases.

    Leases expire by the database's clock. `heartbeat_seconds` must be well under `lease_seconds`.
    """

    def __init__(self, database: Database, *, lease_seconds: float, heartbeat_seconds: float) -> None:
        self._database = database
        self._lease_seconds = lease_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._retry_seconds = min(heartbeat_seconds, _LONGEST_RETRY_SECONDS)
        self._holder = uuid.uuid4().hex
        self._process = this_process()
        # True once the row is committed: before, no other transaction sees it, and it can't have been lost.
        self._leases: dict[Lease, bool] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._heartbeat: threading.Thread | None = None

    def acquire(
        self, session_id: str, *, wait_seconds: float = 0.0, is_in_vain: Callable[[], bool] | None = None
    ) -> Lease:
        """Acquires the session's lease, waiting at most `wait_seconds`, and no longer once it `is_in_vain`.

        Raises:
            BusyError: Another worker still holds the lease.
            NotFoundError: There is no such session.
        """
        deadline, pause = time.monotonic() + wait_seconds, _POLL_SECONDS
        lease = self._try(session_id)
        while lease is None:
            left_seconds = deadline - time.monotonic()
            if left_seconds <= 0 or (is_in_vain is not None and is_in_vain()):
                raise BusyError
            time.sleep(min(pause, left_seconds))
            pause = min(2 * pause, _LONGEST_POLL_SECONDS)
            # Checked without the write lock first, so that waiting workers don't slow down the holder.
            lease = None if self.holder_is_alive(session_id) else self._try(session_id)
        with self._lock:
            self._leases[lease] = True
            if self._heartbeat is None:
                self._heartbeat = threading.Thread(target=self._beat, name="lease-heartbeat", daemon=True)
                self._heartbeat.start()
        return lease

    def release(self, lease: Lease) -> None:
        """Releases the lease unless it was lost; the row stays, because it stores the fence."""
        self._forget(lease)
        with self._database.write() as connection:
            connection.execute(_of(lease).values(owner=_FREE, expires_at=None))

    def holder_is_alive(self, session_id: str) -> bool:
        with self._database.read() as connection:
            row = _read(connection, session_id)
        return row is not None and not self._is_free(row)

    def alive(self, session_ids: Collection[str]) -> frozenset[str]:
        with self._database.read() as connection:
            rows = connection.execute(_OF_SESSIONS, {"session_ids": list(session_ids)}).all()
        return frozenset(row.session_id for row in rows if not self._is_free(row))

    def close(self) -> None:
        self._closed.set()
        if self._heartbeat is not None:
            self._heartbeat.join()
        for lease in self._held():
            try:
                self.release(lease)
            except DatabaseError as error:
                _LOG.warning("a lease wasn't released and will run out: %s", error.code)

    def _try(self, session_id: str) -> Lease | None:
        lease = None
        try:
            with self._database.write() as connection:
                lease = self._take(connection, session_id, _IS_RELEASED)
            if lease is None:
                with self._database.write(session_id=session_id, is_context=False) as connection:
                    row = _require(connection, session_id)
                    if self._is_free(row):
                        lease = self._take(connection, session_id, _lease.fence == row.fence)
        except BaseException:
            if lease is not None:
                self._forget(lease)
            raise
        return lease

    def _take(self, connection: Connection, session_id: str, condition: ColumnElement[bool]) -> Lease | None:
        values = {
            "owner": self._holder,
            "fence": _lease.fence + 1,
            "expires_at": database_time(self._lease_seconds),
            "host": self._process.host,
            "process_id": self._process.process_id,
            "process_started": self._process.started,
        }
        taken = update(lease_table).where(_lease.session_id == session_id, condition).values(**values)
        row = connection.execute(taken.returning(_lease.fence)).one_or_none()
        if row is None:
            return None
        lease = Lease(session_id, self._holder, row.fence)
        # Before the commit, so that no other thread mistakes the row for an unwritten release (see `_is_free`).
        with self._lock:
            self._leases[lease] = False
        return lease

    def _is_free(self, row: Row[*tuple[Any, ...]]) -> bool:
        if not row.is_on_time or is_gone(Process(row.host, row.process_id, row.process_started)):
            return True
        # Our row, but no thread holds it: its release could not be written.
        return row.owner == self._holder and Lease(row.session_id, row.owner, row.fence) not in self._held()

    def _held(self) -> list[Lease]:
        with self._lock:
            return list(self._leases)

    def _forget(self, *leases: Lease) -> None:
        with self._lock:
            for lease in leases:
                self._leases.pop(lease, None)

    def _beat(self) -> None:
        are_renewed = True
        while not self._closed.wait(self._heartbeat_seconds if are_renewed else self._retry_seconds):
            try:
                are_renewed = self._renew_all()
            except DatabaseError as error:
                # Retried soon, so that after an outage expired leases are renewed before others acquire them.
                are_renewed = False
                _LOG.warning("leases not renewed: %s", error.code)

    def _renew_all(self) -> bool:
        with self._lock:
            committed = [lease for lease, is_committed in self._leases.items() if is_committed]
        return self._renew(committed) if committed else True

    def _renew(self, held: list[Lease]) -> bool:
        """Renews leases, expired ones too: an unchanged fence means that no other worker has held the session.

        Returns False if it skipped one locked by a write of its holder: waiting would delay all others.
        """
        keys = [(lease.session_id, lease.fence) for lease in held]
        is_ours = and_(_lease.owner == self._holder, tuple_(*_KEY).in_(keys))
        unlocked = select(_unlocked.session_id).where(_unlocked.session_id.in_([lease.session_id for lease in held]))
        is_unlocked = _lease.session_id.in_(unlocked.with_for_update(key_share=True, skip_locked=True))
        renewal = update(lease_table).where(is_ours, is_unlocked).returning(*_KEY)
        with self._database.write() as connection:
            renewed = connection.execute(renewal.values(expires_at=database_time(self._lease_seconds)))
            ours = now = {tuple(row) for row in renewed}
            if len(now) < len(held):
                ours = now | {tuple(row) for row in connection.execute(select(*_KEY).where(is_ours))}
        self._forget(*(lease for lease in held if (lease.session_id, lease.fence) not in ours))
        return now == ours


def _of(lease: Lease) -> Update:
    return update(lease_table).where(
        _lease.session_id == lease.session_id, _lease.owner == lease.holder, _lease.fence == lease.fence
    )


def _require(connection: Connection, session_id: str) -> Row[*tuple[Any, ...]]:
    row = _read(connection, session_id)
    if row is None:
        raise NotFoundError
    return row


def _read(connection: Connection, session_id: str) -> Row[*tuple[Any, ...]] | None:
    return connection.execute(_ROW, {"session_id": session_id}).one_or_none()
