"""How large the archive gets and how long a long session takes to open; the figures that must hold."""

from __future__ import annotations

import sqlite3
import statistics
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from graph.service import ChatService
from tests.fake.chat import text_in
from tests.fault.check import Ledger
from tests.fault.scenario import say_all, serve

LARGEST_SHARE: Final = 2.5
LARGEST_FILE_SHARE: Final = 3.5
SLOWEST_SHARE: Final = 1.5
MESSAGE_BYTES: Final = 300
_SHORT_TURNS: Final = 30
_OPENINGS: Final = 15
_SIZE: Final = """
    SELECT sum(pgsize) FROM dbstat WHERE name = 'message'
    OR name IN (SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'message')
"""


def archive_share(file: Path) -> tuple[float, float]:
    """Returns the bytes of the archive with its indexes by those of the text in it, and that text's bytes a message."""
    with closing(sqlite3.connect(file)) as connection:
        (size_bytes,) = connection.execute(_SIZE).fetchone()
        contents = [text_in(row[0]) for row in connection.execute("SELECT content FROM message")]
    text_bytes = sum(len(text.encode()) for text in contents)
    return size_bytes / text_bytes, text_bytes / len(contents)


def file_share(file: Path) -> float:
    """Returns the bytes of the whole database by those of the text that was said in it.

    `bench/store.py` has the bound by characters, of which one in Korean takes three bytes.
    """
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        contents = [text_in(row[0]) for row in connection.execute("SELECT content FROM message")]
    return file.stat().st_size / sum(len(text.encode()) for text in contents)


def opening_share(folder: Path, *, turns: int) -> float:
    """Returns how much longer it takes to open a session of that many turns than one of 30, as the page opens it."""
    seconds: dict[int, list[float]] = {}
    with serve(folder) as service:
        names = {count: f"turns-{count}" for count in (_SHORT_TURNS, turns)}
        for count, session_id in names.items():
            say_all(service, Ledger(), range(2, 2 * count + 1, 2), session_id)  # without tools: messages of full length
        for _ in range(_OPENINGS):
            for count, session_id in names.items():
                began = time.perf_counter()
                _open(service, session_id)
                seconds.setdefault(count, []).append(time.perf_counter() - began)
    return statistics.median(seconds[turns]) / statistics.median(seconds[_SHORT_TURNS])


def _open(service: ChatService, session_id: str) -> None:
    """Reads what the page reads of a session before it shows it."""
    service.sessions.get(session_id)
    service.turns.live(session_id)
    service.turns.transcript(session_id)
    service.folds.records(session_id, last=20)
    service.folds.statistics(session_id)
    service.folds.gauge(session_id)
