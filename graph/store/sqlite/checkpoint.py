"""LangGraph's checkpoints in SQLite, by its own saver; a file that is damaged is made anew."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from graph.store.sqlite.file import check_integrity, errors_as_ours, make_private_file, set_up_lock
from graph.value.error import DatabaseError, NotADatabaseError

_LOG = logging.getLogger(__name__)
_SIDE_FILES: Final = ("", "-wal", "-shm")
# In pages of 4 KiB. With SQLite's default of 1,000 the log would grow larger than the file itself.
_LOG_PAGES: Final = 64
_CHECK_SECONDS: Final = 5.0


class SqliteCheckpoints:
    """The checkpoints in the file at `path`, which several processes may use.

    Raises `DatabaseError` or a subclass if it can't be opened.
    """

    def __init__(self, path: Path, *, busy_timeout_seconds: float) -> None:
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        self._saver = self._open()

    @contextmanager
    def saver(self) -> Iterator[SqliteSaver]:
        """Yields the saver that all turns share; its driver's errors become ours.

        A file found to be damaged is made anew for the next turn.
        """
        saver = self._saver
        try:
            with errors_as_ours(self._path):
                yield saver
        except NotADatabaseError:
            if self._saver is saver:
                _LOG.warning("checkpoints are damaged; their file is made anew")
                with saver.lock:
                    saver.conn.close()
                self._saver = self._open()
            raise

    def connections(self) -> Mapping[str, Callable[[], float]]:
        return {}

    def close(self) -> None:
        with self._saver.lock:
            self._saver.conn.close()

    def _open(self) -> SqliteSaver:
        # The lock is for several processes that start at once.
        with set_up_lock(self._path, wait_seconds=self._busy_timeout_seconds):
            make_private_file(self._path)
            try:
                check_integrity(
                    self._path, busy_timeout_seconds=self._busy_timeout_seconds, limit_seconds=_CHECK_SECONDS
                )
            except NotADatabaseError:
                _delete(self._path)
                make_private_file(self._path)
            with errors_as_ours(self._path):
                return self._connect()

    def _connect(self) -> SqliteSaver:
        # One connection for all threads: the saver's lock lets one at a time use it.
        connection = sqlite3.connect(self._path, timeout=self._busy_timeout_seconds, check_same_thread=False)
        try:
            connection.execute("PRAGMA auto_vacuum=FULL")  # has no effect once there is a table
            # What a power failure takes is made from the tables again, so no turn waits for the disk.
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
            # None allows only types known to be harmless; the default calls whatever constructor a forged row names.
            saver = SqliteSaver(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
            saver.setup()
        except BaseException:
            connection.close()
            raise
        return saver


def _delete(path: Path) -> None:
    try:
        for side in _SIDE_FILES:
            path.with_name(path.name + side).unlink(missing_ok=True)
    except OSError as error:
        raise DatabaseError(str(error.strerror)) from error
