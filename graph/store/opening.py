"""Opens all stores of one server together and closes them in order; knows nothing of what they're used for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime

from graph.settings import Settings
from graph.store.archive import Archive
from graph.store.call import CallStore
from graph.store.checkpoint import Checkpointer, open_checkpointer
from graph.store.database import Database, open_database
from graph.store.lease import LeaseStore
from graph.store.record import RecordStore
from graph.store.session import SessionStore
from graph.store.sqlite import in_use
from graph.store.turn import TurnStore


@dataclass(frozen=True)
class Stores:
    """The stores of one server: the archive and the record table are the only truth, checkpoints follow from them."""

    database: Database
    leases: LeaseStore
    sessions: SessionStore
    turns: TurnStore
    archive: Archive
    records: RecordStore
    calls: CallStore
    checkpointer: Checkpointer


@contextmanager
def open_stores(settings: Settings, clock: Callable[[], datetime]) -> Iterator[Stores]:
    """Opens (and if need be makes or migrates) the database and the checkpoints.

    Raises:
        DatabaseError: The file can't be used; the subclass says why.
    """
    timeout = settings.busy_timeout_seconds
    with ExitStack() as stack:
        stack.enter_context(in_use(settings.database_path))
        database = open_database(settings.database_path, busy_timeout_seconds=timeout, clock=clock)
        stack.callback(database.close)
        checkpointer = open_checkpointer(settings.checkpoint_path, busy_timeout_seconds=timeout)
        stack.callback(checkpointer.close)
        leases = LeaseStore(
            database, clock=clock, lease_seconds=settings.lease_seconds, heartbeat_seconds=settings.heartbeat_seconds
        )
        stack.callback(leases.close)
        yield Stores(
            database,
            leases,
            SessionStore(database, clock=clock),
            TurnStore(database, clock=clock),
            Archive(database, clock=clock),
            RecordStore(database, clock=clock),
            CallStore(database),
            checkpointer,
        )
