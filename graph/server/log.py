"""Logging of one server: levels, format, ids of session and turn, and limits for lines of libraries."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import PurePath
from types import TracebackType
from typing import Final, TextIO

OURS: Final = ("api", "component", "graph")
_FORMAT: Final = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s [%(where)s] %(message)s"
_TIME_FORMAT: Final = "%Y-%m-%dT%H:%M:%S"
_NOWHERE: Final = "-"
# Limits for lines of libraries, which any client can cause: length of the message, frames of a trace, length of a
# frame, and lines of each logger per minute.
_SHOWN_CHARS: Final = 300
_SHOWN_FRAMES: Final = 6
_SHOWN_FRAME_CHARS: Final = 80
_SHOWN_LINES: Final = 20
_MINUTE_SECONDS: Final = 60.0
_ErrorInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

_where: ContextVar[str] = ContextVar("where", default=_NOWHERE)


@contextmanager
def in_turn(session_id: str, turn: int) -> Iterator[None]:
    """Adds the ids of the turn to every line logged inside the block, by any library."""
    token = _where.set(f"session={session_id} turn={turn}")
    try:
        yield
    finally:
        _where.reset(token)


def set_up_logging(level: str, stream: TextIO | None = None) -> None:
    """Logs our lines from this level on, and lines of libraries from WARNING on, to one stream, by default stderr.

    Lines of libraries are cut and limited per minute, even if the library has set up logging itself, as servers do. A
    second call replaces the first configuration.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_QuietFormatter(_FORMAT, _TIME_FORMAT))
    handler.addFilter(_add_ids)
    handler.addFilter(_FewOfOthers().lets_through)
    for other in logging.root.manager.loggerDict.values():
        if isinstance(other, logging.Logger):
            other.handlers.clear()
            other.propagate = True
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # A library's warning may quote a message, and isn't actionable for an operator.
    logging.captureWarnings(capture=True)
    logging.getLogger("py.warnings").setLevel(logging.ERROR)
    for name in OURS:
        logging.getLogger(name).setLevel(level)


def _add_ids(record: logging.LogRecord) -> bool:
    record.where = _where.get()
    return True


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in OURS


class _FewOfOthers:
    """Limits the lines of each library's logger; a record's `left_out` is the number of lines dropped before it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._minutes: dict[str, tuple[float, int]] = {}

    def lets_through(self, record: logging.LogRecord) -> bool:
        """True for our records, and for warnings within the logger's limit for this minute."""
        record.left_out = 0
        if _is_ours(record):
            return True
        if record.levelno < logging.WARNING:  # a library may have set its own level
            return False
        with self._lock:
            started, count = self._minutes.get(record.name, (record.created, 0))
            if not started <= record.created < started + _MINUTE_SECONDS:
                record.left_out = max(count - _SHOWN_LINES, 0)
                started, count = record.created, 0
            self._minutes[record.name] = (started, count + 1)
        return count < _SHOWN_LINES


class _QuietFormatter(logging.Formatter):
    """Formats times in UTC, and exceptions by type and position only, because their text may quote a message."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        if _is_ours(record):
            return super().format(record)
        record.message = _one_line(record.getMessage().strip())
        record.asctime = self.formatTime(record, self.datefmt)
        line = self.formatMessage(record)
        if record.exc_info:
            line += f" {_one_line_of(record.exc_info)}"
        left_out: int = getattr(record, "left_out", 0)
        return f"{line} ({left_out} lines of this logger were left out before)" if left_out else line

    def formatException(self, ei: _ErrorInfo) -> str:  # noqa: N802  # the base class's name
        kind, _, trace = ei
        frames = [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(trace)]
        return "\n".join([*frames, kind.__qualname__ if kind else "no exception"])


def _one_line(text: str) -> str:
    shown = "".join(char if char.isprintable() else " " for char in text[:_SHOWN_CHARS])
    return shown if len(text) <= _SHOWN_CHARS else f"{shown}… ({len(text)} characters)"


def _one_line_of(error: _ErrorInfo) -> str:
    """Returns the type of an exception, and its frames, innermost first."""
    kind, _, trace = error
    frames = [
        f"{'/'.join(PurePath(frame.filename).parts[-2:])}:{frame.lineno} in {frame.name}"[:_SHOWN_FRAME_CHARS]
        for frame in reversed(traceback.extract_tb(trace, limit=-_SHOWN_FRAMES))
    ]
    return " < ".join([kind.__qualname__ if kind else "no exception", *frames])
