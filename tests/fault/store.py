"""Real stores that mark their phases, or whose n-th write fails."""

from __future__ import annotations

import copy
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import event

from graph.server.settings import Settings
from graph.store.archive import Archive
from graph.store.database import Database, Lease
from graph.store.sqlite.checkpoint import SqliteCheckpoints
from graph.store.stores import Stores, open_stores
from graph.value.record import ArchivedMessage
from tests.fault.mark import Marker

if TYPE_CHECKING:
    from graph.store.postgres.checkpoint import PostgresCheckpoints

OpenStores = Callable[[Settings, Callable[[], datetime]], AbstractContextManager[Stores]]
_WRITES: Final = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class MarkedArchive(Archive):
    def __init__(self, database: Database, clock: Callable[[], datetime], marker: Marker) -> None:
        super().__init__(database, clock=clock)
        self._marker = marker

    def append(self, lease: Lease, **rest: Any) -> list[ArchivedMessage]:  # noqa: ANN401  # handed on as they came
        with self._marker.phase("archive"):
            return super().append(lease, **rest)


class MarkedCheckpoints:
    """The checkpoints of either engine, with their phase marked."""

    def __init__(self, real: SqliteCheckpoints | PostgresCheckpoints, marker: Marker) -> None:
        self._real = real
        self._marker = marker

    @contextmanager
    def saver(self) -> Iterator[Any]:
        with self._real.saver() as saver:
            marked = copy.copy(saver)
            marked.put = self._marked(saver.put)  # type: ignore[method-assign]  # of one turn
            yield marked

    def connections(self) -> Mapping[str, Callable[[], float]]:
        return self._real.connections()

    def _marked(self, put: Callable[..., Any]) -> Any:  # noqa: ANN401  # the saver's own
        def marked_put(*words: Any) -> Any:  # noqa: ANN401  # handed on as they came
            with self._marker.phase("checkpoint"):
                return put(*words)

        return marked_put


def marked_stores(marker: Marker) -> OpenStores:
    """Returns what `open_service` takes as `stores`."""

    @contextmanager
    def opened(settings: Settings, clock: Callable[[], datetime]) -> Iterator[Stores]:
        with open_stores(settings, clock) as stores:
            chat = replace(
                stores.chat,
                archive=MarkedArchive(stores.chat.database, clock, marker),
                checkpoints=cast("Any", MarkedCheckpoints(stores.chat.checkpoints, marker)),
            )
            yield replace(stores, chat=chat)

    return opened


class Nth:
    """Counts the writes of all connections; the one that is named fails, as a worn disk would make it.

    Attributes:
        count: How many there were so far.
    """

    def __init__(self, failing: int | None = None) -> None:
        self.count = 0
        self._failing = failing
        self._lock = threading.Lock()

    def fail_at(self, nth: int) -> None:
        """Has the n-th write from now on fail."""
        with self._lock:
            self._failing = self.count + nth

    def check(self) -> None:
        with self._lock:
            self.count += 1
            if self.count == self._failing:
                raise _refusal(sqlite3.SQLITE_IOERR, "SQLITE_IOERR")


class Full:
    """Refuses every write while it's on, as a full disk does."""

    def __init__(self) -> None:
        self.is_on = False

    def check(self) -> None:
        if self.is_on:
            raise _refusal(sqlite3.SQLITE_FULL, "SQLITE_FULL")


def _refusal(code: int, name: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(name)
    error.sqlite_errorcode = code
    error.sqlite_errorname = name
    return error


def failing_stores(fault: Nth | Full) -> OpenStores:
    """Returns what `open_service` takes as `stores`: set up as usual, then each write passes this object first."""

    class FailingCursor(sqlite3.Cursor):
        def execute(self, statement: str, parameters: Any = (), /) -> FailingCursor:  # noqa: ANN401  # the driver's signature
            if statement.lstrip().upper().startswith(_WRITES):
                connection: FailingConnection = self.connection  # type: ignore[assignment]  # made by its cursor() below
                connection.has_written = True
                fault.check()
            return super().execute(statement, parameters)

    class FailingConnection(sqlite3.Connection):
        has_written = False

        def cursor(self, factory: Any = FailingCursor) -> Any:  # noqa: ANN401  # the driver's signature
            return super().cursor(factory)

        def commit(self) -> None:
            if self.in_transaction and self.has_written:
                fault.check()
            self.has_written = False
            super().commit()

    def use_ours(_dialect: object, _record: object, _words: object, names: dict[str, Any]) -> None:
        names["factory"] = FailingConnection

    @contextmanager
    def opened(settings: Settings, clock: Callable[[], datetime]) -> Iterator[Stores]:
        with open_stores(settings, clock) as stores:
            event.listen(stores.chat.database._reader, "do_connect", use_ours)  # noqa: SLF001  # the driver is the seam, not our code
            stores.chat.database.close()
            with stores.chat.checkpoints.saver() as saver:
                retained = saver.conn
                saver.conn = sqlite3.connect(
                    settings.checkpoint_path, check_same_thread=False, factory=FailingConnection
                )
                saver.conn.execute("PRAGMA synchronous=NORMAL")
            yield stores
            retained.close()

    return opened
