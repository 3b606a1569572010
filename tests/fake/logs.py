"""Keeps the logging of a test run as it was, around what sets up a server's."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from graph.log import OURS


@contextmanager
def kept_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, levels = root.handlers[:], {name: logging.getLogger(name).level for name in ("", "py.warnings", *OURS)}
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.handlers[:] = handlers
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
