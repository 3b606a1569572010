"""LangGraph's checkpoints in SQLite: a cache, rebuilt from the tables if it can't be read."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, get_checkpoint_id
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from graph.store.sqlite.file import errors_as_ours, make_private_file, set_up_lock
from graph.value.error import DatabaseError, NotADatabaseError

_LOG = logging.getLogger(__name__)
_SIDE_FILES = ("", "-wal", "-shm")
# In pages of 4 KiB. With SQLite's default of 1,000 the log would grow larger than the file itself.
_LOG_PAGES = 64

_NEWEST = """
    SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY rowid DESC LIMIT 1
"""
_PRUNE_CHECKPOINTS = """
    DELETE FROM checkpoints WHERE thread_id = :thread_id AND rowid NOT IN (
        SELECT rowid FROM (
            SELECT rowid, row_number() OVER (PARTITION BY checkpoint_ns ORDER BY rowid DESC) AS age
            FROM checkpoints WHERE thread_id = :thread_id
        ) WHERE age <= :keep
    )
"""
_PRUNE_WRITES = """
    DELETE FROM writes WHERE thread_id = :thread_id AND NOT EXISTS (
        SELECT 1 FROM checkpoints AS kept
        WHERE kept.thread_id = writes.thread_id
        AND kept.checkpoint_ns = writes.checkpoint_ns AND kept.checkpoint_id = writes.checkpoint_id
    )
"""


class Checkpointer(SqliteSaver):
    """LangGraph's SQLite saver with rollback on errors and pruning; never runs code named by a forged row.

    "Newest" means written last: checkpoint ids contain the time, and a clock may be set back.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, *, busy_timeout_seconds: float = 30) -> None:
        # None allows only types known to be harmless; the default calls whatever constructor a forged row names.
        super().__init__(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:  # noqa: FBT001, FBT002  # LangGraph's signature
        """Yields a cursor; commits at the end of the block, rolls back on any exception (LangGraph would commit)."""
        with self.lock, errors_as_ours(self._path), closing(self.conn.cursor()) as cursor:
            try:
                yield cursor
            except BaseException:
                self.conn.rollback()
                raise
            if transaction:
                self.conn.commit()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint named by `config`, or the newest; raises `NotADatabaseError` if undecodable."""
        wanted = config if get_checkpoint_id(config) else self._newest(config)
        if wanted is None:
            return None
        try:
            return super().get_tuple(wanted)
        except (ValueError, TypeError, NotImplementedError) as error:
            raise NotADatabaseError(str(self._path)) from error

    def prune_thread(self, thread_id: str, keep: int = 2) -> None:
        """Deletes all but the newest `keep` checkpoints of a session, with their writes, in one transaction."""
        names = {"thread_id": thread_id, "keep": keep}
        with self.cursor() as cursor:
            cursor.execute(_PRUNE_CHECKPOINTS, names)
            cursor.execute(_PRUNE_WRITES, names)

    def delete_thread(self, thread_id: str) -> None:
        """Deletes all checkpoints of a session; a damaged file is replaced by a new one.

        Other processes may keep using the replaced file: checkpoints are compared with the tables when loaded.
        """
        try:
            super().delete_thread(thread_id)
        except NotADatabaseError:
            _LOG.warning("checkpoints are damaged; their file is rebuilt")
            self._renew()

    def connections(self) -> Mapping[str, Callable[[], float]]:
        return {}

    def close(self) -> None:
        with self.lock:
            self.conn.close()

    def _renew(self) -> None:
        with self.lock, set_up_lock(self._path, wait_seconds=self._busy_timeout_seconds):
            self.conn.close()
            _delete(self._path)
            self.conn = _open(self._path, self._busy_timeout_seconds).conn

    def _newest(self, config: RunnableConfig) -> RunnableConfig | None:
        configurable = config["configurable"]
        thread_id, namespace = str(configurable["thread_id"]), configurable.get("checkpoint_ns", "")
        with self.cursor(transaction=False) as cursor:
            row = cursor.execute(_NEWEST, (thread_id, namespace)).fetchone()
        if row is None:
            return None
        return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": row[0]}}


def open_checkpointer(path: Path, *, busy_timeout_seconds: float) -> Checkpointer:
    """Opens the checkpoints at `path`; a file that is damaged or no database is replaced by a new one.

    Safe when several processes start at once. Raises `DatabaseError` or a subclass.
    """
    with set_up_lock(path, wait_seconds=busy_timeout_seconds):
        try:
            return _open(path, busy_timeout_seconds)
        except NotADatabaseError:
            _delete(path)
            return _open(path, busy_timeout_seconds)


def _open(path: Path, busy_timeout_seconds: float) -> Checkpointer:
    make_private_file(path)
    with errors_as_ours(path):
        # One connection for all threads: the saver's lock lets one at a time use it.
        connection = sqlite3.connect(path, timeout=busy_timeout_seconds, check_same_thread=False)
        try:
            if connection.execute("PRAGMA page_count").fetchone() == (0,):
                connection.execute("PRAGMA auto_vacuum=FULL")  # has no effect once there is a table
            # A cache: after a power failure it is rebuilt from the tables, so no turn waits for the disk.
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
            _check(connection, path)
            checkpointer = Checkpointer(connection, path, busy_timeout_seconds=busy_timeout_seconds)
            checkpointer.setup()
        except BaseException:
            connection.close()
            raise
    return checkpointer


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise NotADatabaseError(str(path))


def _delete(path: Path) -> None:
    try:
        for side in _SIDE_FILES:
            path.with_name(path.name + side).unlink(missing_ok=True)
    except OSError as error:
        raise DatabaseError(str(error.strerror)) from error
