"""Has every property test draw the same examples each time, on however slow a machine, and files kept in memory.

One Postgres serves all tests of a process that ask for it.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.fake.folder import fast_folder
from tests.fake.postgres import PostgresServer, postgres_for_tests

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")

# The product waits for the disk at each commit: a second or two of each chat, beside other work far more.
if (_fold_worker := fast_folder()) is not None:
    tempfile.tempdir = str(_fold_worker)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_for_tests() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.make_database()
    yield url
    postgres.drop_database(url)


def pytest_collection_finish() -> None:
    """Freezes the imported modules, so that garbage collections skip them."""
    gc.freeze()
