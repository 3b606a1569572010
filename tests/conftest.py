"""Has every property test draw the same examples each time, on however slow a machine, and files kept in memory.

One Postgres serves all tests of a process that ask for it.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pydantic import SecretStr

from graph.store.postgres.postgres_database import open_postgres
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


@pytest.fixture(scope="session")
def postgres_template(postgres: PostgresServer) -> str:
    """The name of a database that has the tables of the newest revision."""
    url = postgres.make_database()
    open_postgres(SecretStr(url), busy_timeout_seconds=30).close()
    return url.rpartition("/")[2]


@pytest.fixture
def postgres_head_url(postgres: PostgresServer, postgres_template: str) -> Iterator[str]:
    url = postgres.make_database(postgres_template)
    yield url
    postgres.drop_database(url)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """Which engine the test runs over; `both_engines` runs it over both."""
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def database_url(request: pytest.FixtureRequest, engine: str) -> SecretStr | None:
    """What `CHAT_DATABASE_URL` says in this test: a database of its own, None for SQLite's file."""
    return SecretStr(request.getfixturevalue("postgres_head_url")) if engine == "postgres" else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs the tests of a file that says `both_engines` over each engine, but for those that are about SQLite alone."""
    marker = metafunc.definition.get_closest_marker
    if "engine" in metafunc.fixturenames and marker("both_engines") and not marker("sqlite"):
        postgres = pytest.param("postgres", marks=pytest.mark.postgres)
        metafunc.parametrize("engine", ["sqlite", postgres], indirect=True)


def pytest_collection_finish() -> None:
    """Freezes the imported modules, so that garbage collections skip them."""
    gc.freeze()
