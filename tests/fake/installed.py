"""Programs of others that tests start, and that not every machine has."""

from __future__ import annotations

import os
import shutil
from typing import Final

import pytest

_PATH: Final = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))  # Debian keeps servers there


def installed(name: str, *, required_by: str) -> str:
    """Returns where a program is. Where there is none, the test is skipped, or fails if this variable is set."""
    found = shutil.which(name, path=_PATH)
    if found is None:
        if os.environ.get(required_by):
            pytest.fail(f"no {name}")
        pytest.skip(f"no {name}")
    return found
