"""Keeps the logging of a test run as it was, around what sets up a server's."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def restored_logging() -> Iterator[None]:
    named = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    retained = [(each, each.handlers[:], each.level, each.propagate) for each in (logging.root, *named)]
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        for logger, handlers, level, propagates in retained:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagates
