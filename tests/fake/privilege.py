"""Takes the right to read any file from a test that runs as root."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_VERSION: Final = 0x20080522
_EFFECTIVE: Final = 0  # the first of three words: effective, permitted, inheritable
_READ_ANY: Final = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


@contextmanager
def without_privilege() -> Iterator[None]:
    """Has the block's thread obey the modes of files, whoever runs it."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, words = _Header(_VERSION, 0), (ctypes.c_uint32 * 6)()

    def call(name: str) -> None:
        if getattr(libc, name)(ctypes.byref(header), words):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    call("capget")
    before = words[_EFFECTIVE]
    words[_EFFECTIVE] = before & ~_READ_ANY
    call("capset")
    try:
        yield
    finally:
        words[_EFFECTIVE] = before
        call("capset")
