"""Settings of all tests: how many examples a property draws, files in memory, one Postgres a process."""

from __future__ import annotations

import gc
import os
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings
from pydantic import SecretStr

from tests.fake.folder import fast_folder
from tests.fake.openai_server import FakeOpenAI
from tests.fake.postgres import PostgresServer, postgres_for_tests

# On a developer's machine each run draws other examples and replays what failed from .hypothesis; CI draws the same
# ones each time, so that it fails for a change and not by chance.
_BASE = settings(deadline=None, derandomize=True, database=None) if "CI" in os.environ else settings(deadline=None)
settings.register_profile("quick", _BASE, max_examples=10)
settings.register_profile("thorough", _BASE, max_examples=200)
settings.load_profile("quick")

# Collections of garbage are a tenth of a run: none before all is imported, and few after that.
gc.disable()

# The product waits for the disk at each commit: a second or two of each chat, beside other work far more.
if (_memory := fast_folder()) is not None:
    tempfile.tempdir = str(_memory)


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
    from graph.store.postgres.postgres_database import open_postgres  # noqa: PLC0415  # half a second that unit tests save

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
        postgres = pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.slow])
        metafunc.parametrize("engine", ["sqlite", postgres], indirect=True)


def pytest_collection_finish() -> None:
    """Freezes the imported modules, so that collections of garbage skip them."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Function) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Drops what a failed test has scripted: the requests that it never came to aren't waited for."""
    report = yield
    if report.when == "call" and report.failed:
        for value in item.funcargs.values():
            if isinstance(value, FakeOpenAI):
                value.forget_script()
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says in a line each what was skipped because this machine lacks it."""
    skipped: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        kind = next((f"{kind} " for kind in ("browser", "postgres") if kind in report.keywords), "")
        skipped[kind, str(report.longrepr[2]).removeprefix("Skipped: ")] += 1
    for (kind, reason), count in skipped.items():
        terminalreporter.write_line(f"{count} {kind}tests were skipped: {reason}, see README")
