"""Sets up logging for one server: levels, format, and the ids of session and turn in each line."""

from __future__ import annotations

import logging
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Final, TextIO

OURS: Final = ("api", "component", "graph")
_FORMAT: Final = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s [%(where)s] %(message)s"
_TIME_FORMAT: Final = "%Y-%m-%dT%H:%M:%S"
_NOWHERE: Final = "-"
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
    """Logs our lines from this level on, and those of other libraries from WARNING on, to one stream.

    A second call replaces the first one's set-up.

    Args:
        level: DEBUG, INFO, WARNING or ERROR.
        stream: Standard error if None.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_QuietFormatter(_FORMAT, _TIME_FORMAT))
    handler.addFilter(_add_ids)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # A library's warning may quote a message, and an operator can do nothing about it.
    logging.captureWarnings(capture=True)
    logging.getLogger("py.warnings").setLevel(logging.ERROR)
    for name in OURS:
        logging.getLogger(name).setLevel(level)


def _add_ids(record: logging.LogRecord) -> bool:
    record.where = _where.get()
    return True


class _QuietFormatter(logging.Formatter):
    """Formats times in UTC, and exceptions by type and place only, because their text may quote a message."""

    converter = staticmethod(time.gmtime)

    def formatException(self, ei: _ErrorInfo) -> str:  # noqa: N802  # the base class's name
        """Formats the trace and the type of an exception, without its text."""
        kind, _, trace = ei
        frames = [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(trace)]
        return "\n".join([*frames, kind.__qualname__ if kind else "no exception"])
