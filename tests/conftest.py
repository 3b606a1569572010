"""Has every property test draw the same examples each time, on however slow a machine, and files kept in memory."""

from __future__ import annotations

import gc
import tempfile

from hypothesis import settings

from tests.fake.folder import fast_folder

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")

# The product waits for the disk at each commit: a second or two of each chat, beside other work far more.
if (_fold_worker := fast_folder()) is not None:
    tempfile.tempdir = str(_fold_worker)


def pytest_collection_finish() -> None:
    """Freezes the imported modules, so that garbage collections skip them."""
    gc.freeze()
