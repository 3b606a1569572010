from __future__ import annotations

import itertools
import os
import pwd
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from graph.service import ChatService
from graph.value.event import TurnFinished
from tests.fake.installed import installed
from tests.fake.port import free_port, wait_for_port
from tests.fault.check import Ledger, check_folder
from tests.fault.location import put_elsewhere
from tests.fault.scenario import say, serve

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
OPERATIONS = 1_000
THREADS = 16
ACCOUNT = "nobody"  # it refuses to run as root


@contextmanager
def pooled(url: str, *, server_connections: int = 20) -> Iterator[str]:
    """Yields the URL of a database through PgBouncer, which ends with the block.

    Skips the test where there is none; fails it if REQUIRE_POSTGRES is set.

    Args:
        url: That of the database itself, with host, port and user.
        server_connections: How many connections it opens to the database at most.
    """
    program = installed("pgbouncer", required_by="REQUIRE_POSTGRES")
    direct, port = urlsplit(url), free_port()
    with TemporaryDirectory(prefix="turnfold-pgbouncer-") as folder:
        settings = _settings(Path(folder), url, port, server_connections)
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen([program, str(settings)], stdout=log, stderr=log)
        try:
            wait_for_port(port, process, Path(folder) / "log")
            account = direct.netloc.rpartition("@")[0]
            yield urlunsplit(direct._replace(netloc=f"{account}@127.0.0.1:{port}"))
        finally:
            process.kill()
            process.wait()


def _settings(folder: Path, url: str, port: int, server_connections: int) -> Path:
    direct = urlsplit(url)
    accounts, settings = folder / "accounts", folder / "pgbouncer.ini"
    accounts.write_text(f'"{direct.username}" "{direct.password or ""}"\n', encoding="utf-8")
    settings.write_text(
        f"""
[databases]
* = host={direct.hostname} port={direct.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {accounts}
pool_mode = transaction
default_pool_size = {server_connections}
max_client_conn = 400
""",
        encoding="utf-8",
    )
    if os.geteuid() == 0:
        with settings.open("a", encoding="utf-8") as file:
            file.write(f"user = {ACCOUNT}\n")
        account = pwd.getpwnam(ACCOUNT)
        for path in (folder, accounts, settings):
            os.chown(path, account.pw_uid, account.pw_gid)
    return settings


@pytest.fixture
def pooled_url(postgres_url: str) -> Iterator[str]:
    with pooled(postgres_url, server_connections=5) as url:
        yield url


def test_what_is_prepared_by_one_client_is_unknown_to_the_next(pooled_url: str) -> None:
    # Or these tests would say nothing of transaction mode.
    with psycopg.connect(pooled_url, autocommit=True) as one, psycopg.connect(pooled_url, autocommit=True) as other:
        one.execute("SET application_name = 'one'")
        with one.transaction():
            other.execute("SELECT 1")
        sessions = {connection.execute("SELECT pg_backend_pid()").fetchone() for connection in (one, other)}
    assert len(sessions) == 1


def test_a_thousand_operations_of_two_servers_go_through_pgbouncer_without_an_error(
    pooled_url: str, tmp_path: Path
) -> None:
    folders = [put_elsewhere(tmp_path / name, pooled_url) for name in ("one", "other")]
    ledger = Ledger()
    with serve(folders[0]) as one, serve(folders[1]) as other, ThreadPoolExecutor(THREADS) as pool:
        done = list(pool.map(lambda thread: work(thread, (one, other), ledger), range(THREADS)))
    assert sum(done) >= OPERATIONS
    assert ledger.wrong == []
    assert check_folder(folders[0], ledger) == []


def work(thread: int, servers: tuple[ChatService, ChatService], ledger: Ledger) -> int:
    """Has a session's turns now on one server and now on the other, and reads it meanwhile; returns how often."""
    session_id, done = f"session-{thread}", 0
    for count, service in enumerate(itertools.cycle(servers), start=1):
        if done * THREADS >= OPERATIONS:
            break
        assert isinstance(say(service, ledger, f"q-{thread}-{count}", session_id), TurnFinished)
        assert service.sessions.get(session_id).turn_count == count
        assert len(service.turns.transcript(session_id).turns) == count
        assert session_id in {item.session_id for item in service.sessions.list(search="김민수")}
        service.sessions.list(last=5)
        service.sessions.rename(session_id, f"{count}")
        service.turns.live(session_id)
        service.folds.records(session_id)
        service.folds.statistics(session_id)
        done += 9
    return done
