"""The database, independent of the engine: transactions, write permission, driver errors, retries in an outage."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import BigInteger, Connection, Engine, Integer, bindparam, literal, select, text, update
from sqlalchemy.dialects.postgresql import insert

from graph.store.schema import lease_table, session_table
from graph.value.error import DatabaseBusyError, DatabaseUnreachableError, LeaseLostError

Clock = Callable[[], datetime]

_Result = TypeVar("_Result")

VERSION_TABLE: Final = "alembic_version"
_MIGRATIONS: Final = Path(__file__).parent / "migration" / "versions"
_lease = lease_table.c
# Revisions begin anywhere: an id that is used again must not come to the revision of the session that had it before.
_MOST_FIRST_REVISIONS: Final = 2**40
_RAISED: Final = {
    "revision": _lease.revision + 1,
    "context_revision": _lease.context_revision + bindparam("raised", type_=Integer),
}
# Both lock the row until the transaction's end, so that a session has one writer at a time.
_TOUCH_HELD: Final = (
    update(lease_table)
    .where(
        _lease.session_id == bindparam("of_session"),
        _lease.owner == bindparam("holder"),
        _lease.fence == bindparam("held_fence"),
    )
    .values(_RAISED)
    .returning(_lease.context_revision)
)
_first = select(
    session_table.c.session_id,
    literal(""),
    literal(0),
    literal(""),
    literal(0),
    literal(""),
    *[bindparam("first", type_=BigInteger)] * 2,
).where(session_table.c.session_id == bindparam("of_session"))
_insert = insert(lease_table).from_select(
    ["session_id", "owner", "fence", "host", "process_id", "process_started", "revision", "context_revision"], _first
)
_TOUCH: Final = _insert.on_conflict_do_update(index_elements=[_lease.session_id], set_=_RAISED)


def utc_now() -> datetime:
    return datetime.now(UTC)


def head_revision() -> str:
    """Returns the newest revision by the names of the migration files: Alembic is slow to import."""
    return max(file.name.partition("_")[0] for file in _MIGRATIONS.glob("*.py"))


def read_revision(connection: Connection) -> str | None:
    """Returns the revision of the tables, None without one; plain SQL, because Alembic is slow to import."""
    found: str | None = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608  # a name of our own
    return found


@dataclass(frozen=True)
class Lease:
    """Fencing token of a session's lease, checked with every write; later leases have a higher `fence`."""

    session_id: str
    holder: str
    fence: int


class Database(ABC):
    """Reads and writes in transactions, from any thread.

        with database.read() as connection:
            rows = connection.execute(query).all()
        with database.write(lease) as connection:
            connection.execute(insert(table).values(row))

    Writes to one session, by lease or by id, are serialised, and each raises its revision. Driver errors are raised as
    `DatabaseError` or a subclass.
    """

    def __init__(self, reader: Engine, writer: Engine) -> None:
        self._reader = reader
        self._writer = writer
        self._shared = threading.local()
        self._tell: Callable[[Sequence[str]], None] = lambda _: None

    def on_change(self, tell: Callable[[Sequence[str]], None]) -> None:
        """Has `tell` called behind each commit of this process, with the ids of the sessions that it changed."""
        self._tell = tell

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yields a connection with one snapshot until the end of the block, or of an outer `reading` block."""
        shared: Connection | None = getattr(self._shared, "connection", None)
        with self.errors_as_ours():
            if shared is not None:
                yield shared
                return
            with self._reader.begin() as connection:
                yield connection

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Makes all reads of this thread share one snapshot, which doesn't show writes within the block."""
        if getattr(self._shared, "connection", None) is not None:
            yield
            return
        with self.read() as connection:
            self._shared.connection = connection
            try:
                yield
            finally:
                self._shared.connection = None

    @contextmanager
    def sharing(self, known: dict[Hashable, Any]) -> Iterator[None]:
        """Has what this thread reads by `once` kept in `known`, and taken from there."""
        before, self._shared.known = getattr(self._shared, "known", None), known
        try:
            yield
        finally:
            self._shared.known = before

    def once(self, name: Hashable, read: Callable[[], _Result]) -> _Result:
        """Returns what `read` returns; within `sharing` it is called once for a name."""
        known: dict[Hashable, _Result] | None = getattr(self._shared, "known", None)
        if known is None or self.is_writing:
            return read()
        if name not in known:
            known[name] = read()
        return known[name]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Makes all writes of this thread within the block one transaction, rolled back on an exception.

        Reads within the block see its writes. Raises `DatabaseBusyError` after the busy timeout.
        """
        before = getattr(self._shared, "connection", None), getattr(self._shared, "writer", None)
        with self.write() as connection:
            self._shared.connection = self._shared.writer = connection
            try:
                yield
            finally:
                self._shared.connection, self._shared.writer = before

    @contextmanager
    def write(
        self, lease: Lease | None = None, *, session_id: str = "", is_context: bool = True
    ) -> Iterator[Connection]:
        """Yields a connection that may write; commits at the end of the block, rolls back on any exception.

        Within a `writing` block, both happen at the end of that. The lease is checked in the same transaction; an
        expired one stays valid until another worker acquires it: the database may have been down. Without a lease,
        `session_id` names the session that is written. Either locks it and raises its revision; that of its context
        only if it `is_context`: if `ChatStores.state` is another one then, apart from the session's and the last
        turn's row.

        Raises:
            LeaseLostError: The lease was released, or another worker has acquired it.
            DatabaseBusyError: The write lock wasn't available within the busy timeout.
        """
        shared: Connection | None = getattr(self._shared, "writer", None)
        changed = [lease.session_id if lease else session_id] if lease or session_id else []
        if shared is not None:
            with self.errors_as_ours():
                self._enter(shared, lease, session_id, is_context=is_context)
                self._shared.changed += changed
                yield shared
            return
        self._shared.changed = changed
        with self._turn_to_write(), self.errors_as_ours(), self._writer.begin() as connection:
            self._enter(connection, lease, session_id, is_context=is_context)
            yield connection
        self._tell(changed)

    @property
    def is_sharing(self) -> bool:
        """Whether this thread is within a `sharing` block."""
        return getattr(self._shared, "known", None) is not None

    @property
    def is_writing(self) -> bool:
        """Whether this thread is within a `writing` block, whose changes may still be rolled back."""
        return getattr(self._shared, "writer", None) is not None

    @property
    def context_revision(self) -> int | None:
        """The revision of the context after this thread's last write under a lease; None within a `writing` block."""
        return None if self.is_writing else getattr(self._shared, "revision", None)

    @property
    def engine(self) -> Engine:
        return self._reader

    def check(self) -> None:
        with self.read() as connection:
            connection.execute(select(session_table.c.session_id).limit(1)).first()

    def close(self) -> None:
        self._reader.dispose()

    @abstractmethod
    def errors_as_ours(self) -> AbstractContextManager[None]:
        """Maps the driver's errors within the block to `DatabaseError` and subclasses."""

    @abstractmethod
    def _turn_to_write(self) -> AbstractContextManager[None]:
        """Held around a write transaction: serialises writers where the engine's own waiting is poor."""

    def _enter(self, connection: Connection, lease: Lease | None, session_id: str, *, is_context: bool) -> None:
        if lease is not None:
            proof = {"of_session": lease.session_id, "holder": lease.holder, "held_fence": lease.fence}
            revision = connection.execute(_TOUCH_HELD, {**proof, "raised": int(is_context)}).scalar()
            if revision is None:
                raise LeaseLostError
            self._shared.revision = revision
        elif session_id:
            first = secrets.randbelow(_MOST_FIRST_REVISIONS)
            connection.execute(_TOUCH, {"of_session": session_id, "first": first, "raised": int(is_context)})


OUTAGE_SECONDS: Final = 90.0
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 1.0

_LOG = logging.getLogger(__name__)


def outlast(action: Callable[[], _Result], give_up: threading.Event, *, seconds: float = OUTAGE_SECONDS) -> _Result:
    """Retries an action while the database is unreachable or busy, at most `seconds` or until `give_up` is set.

    The action must be idempotent: it may have been committed although it failed. Raises the last error then,
    `DatabaseUnreachableError` or `DatabaseBusyError`.
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
