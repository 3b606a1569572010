"""Sets up logging for one server: which lines, in which form, with which ids."""

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

OURS: Final = ("graph", "component")
_FORMAT: Final = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s [%(where)s] %(message)s"
_TIME_FORMAT: Final = "%Y-%m-%dT%H:%M:%S"
_NOWHERE: Final = "-"
_ErrorInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

_where: ContextVar[str] = ContextVar("where", default=_NOWHERE)


@contextmanager
def in_turn(session_id: str, turn: int) -> Iterator[None]:
    """Gives every line logged inside the block, by whatever library, the ids of the turn."""
    token = _where.set(f"session={session_id} turn={turn}")
    try:
        yield
    finally:
        _where.reset(token)


def set_up_logging(level: str, stream: TextIO | None = None) -> None:
    """Sends our own lines of this level and above, and those of other libraries from WARNING on, to one stream.

    Doing so again replaces what was set up before.

    Args:
        level: DEBUG, INFO, WARNING or ERROR.
        stream: Where to; standard error if None.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_QuietFormatter(_FORMAT, _TIME_FORMAT))
    handler.addFilter(_add_ids)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # A library's warning may quote what somebody said, and there's nothing that whoever runs the server could do.
    logging.captureWarnings(capture=True)
    logging.getLogger("py.warnings").setLevel(logging.ERROR)
    for name in OURS:
        logging.getLogger(name).setLevel(level)


def _add_ids(record: logging.LogRecord) -> bool:
    record.where = _where.get()
    return True


class _QuietFormatter(logging.Formatter):
    """Times in UTC; of an exception its type and its place alone: its words may quote what somebody said."""

    converter = staticmethod(time.gmtime)

    def formatException(self, ei: _ErrorInfo) -> str:  # noqa: N802  # the base class's name
        """Renders where an exception came from, without its message."""
        kind, _, trace = ei
        frames = [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(trace)]
        return "\n".join([*frames, kind.__qualname__ if kind else "no exception"])
