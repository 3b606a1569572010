"""Extracts the text of a PDF in a child process with limits of time, memory, pages and characters."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

from graph.value.error import AttachmentError, AttachmentReason

_CHILD: Final = Path(__file__).with_name("pdf_child.py")
_MEMORY_BYTES: Final = 512 * 1024 * 1024
_MAX_PAGES: Final = 500
_SECONDS: Final = 20
# Leaves processor time for other requests while heavy files are sent.
_AT_ONCE: Final = threading.BoundedSemaphore(2)


def pdf_pages(name: str, data: bytes, *, max_chars: int, seconds: int = _SECONDS) -> list[str | None]:
    """Returns the text of each page with its form fields and notes; None for a page that can't be read.

    Args:
        name: File name, used in errors.
        data: The file.
        max_chars: Maximum characters of all pages together.
        seconds: Limit of the wall time and of the processor time.

    Raises:
        AttachmentError: `damaged`, `encrypted`, `too_heavy`, `too_long` or `too_many_pages`; `busy` if other files are
            being read for too long.
    """
    limits = map(str, (seconds, _MEMORY_BYTES, _MAX_PAGES, max_chars))
    with _turn(name, seconds):
        try:
            done = subprocess.run(  # noqa: S603  # our own script; the file is its input alone
                [sys.executable, "-I", str(_CHILD), *limits],
                input=data,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=seconds,
                env={},
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise AttachmentError("too_heavy", name) from None
    if done.returncode:  # below 0: a limit has ended it
        raise AttachmentError("too_heavy" if done.returncode < 0 else "damaged", name)
    told: Any = json.loads(done.stdout)
    if isinstance(told, str):
        raise AttachmentError(cast("AttachmentReason", told), name)
    return [None if page is None else str(page) for page in told]


@contextmanager
def _turn(name: str, seconds: int) -> Iterator[None]:
    if not _AT_ONCE.acquire(timeout=seconds):
        raise AttachmentError("busy", name)
    try:
        yield
    finally:
        _AT_ONCE.release()
