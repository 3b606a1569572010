"""Chooses the folder of test files: in memory if there is room, so that tests don't depend on the disk's speed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # folders of their own are made in it
_ROOM_BYTES: Final = 2_000_000_000


def fast_folder() -> Path | None:
    """Returns the folder in memory, None if there is none or little room."""
    is_usable = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES
    return _MEMORY if is_usable else None
