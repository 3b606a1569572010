"""A real Postgres for tests: a server of its own in a temporary folder, and a database of its own for each test."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from psycopg import sql

from tests.fake.port import free_port

_BINARIES: Final = "/usr/lib/postgresql/*/bin"  # where Debian puts them, beside the path
_UNPRIVILEGED: Final = ("postgres", "nobody")  # Postgres refuses to run as root
_USER: Final = "turnfold"
_START_SECONDS: Final = 120
_POLL_SECONDS: Final = 0.05
_TRIES: Final = 100


class PostgresServer:
    """A server on loopback and on a socket in its folder; it can be stopped, killed and started again.

        with serve_postgres() as server:
            url = server.make_database()

    Attributes:
        port: Of 127.0.0.1; the same after a restart.
    """

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.port = 0
        self._folder = folder
        self._binaries = binaries
        self._account = _account()
        self._process: subprocess.Popen[Any] | None = None
        self._names = count(1)

    def url(self, database: str) -> str:
        """Returns the URL of a database, as `CHAT_DATABASE_URL` takes it."""
        return _url(self.port, database)

    def make_database(self, template: str = "template0") -> str:
        """Makes a copy of a database that nobody is connected to, and returns its URL."""
        name = f"test_{next(self._names)}"
        self.execute("CREATE DATABASE {} TEMPLATE {}", name, template)
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drops a database, also if it was renamed meanwhile, whoever is still connected to it."""
        name = url.rpartition("/")[2]
        for (known,) in self.execute("SELECT datname FROM pg_database"):
            if known == name or known.startswith(f"{name}_left"):
                self.execute("DROP DATABASE {} WITH (FORCE)", known)

    def execute(self, statement: str, *names: str) -> list[tuple[Any, ...]]:
        """Runs one statement beside all tests' databases, with these names quoted in it, and returns its rows."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
            return cursor.fetchall() if cursor.description else []

    def initialise(self) -> None:
        """Makes the files of a server without databases of tests."""
        command = f"{self._binaries}/initdb -U {_USER} -A trust -E UTF8 --locale=C --no-sync".split()
        subprocess.run([*command, "-D", self._data], check=True, stdout=subprocess.DEVNULL, **self._account)

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        for _ in range(_TRIES):
            port = self.port or free_port()
            with (self._folder / "log").open("ab") as log:
                process = subprocess.Popen(
                    [self._binaries / "postgres", "-D", self._data, "-k", self._folder, "-h", "127.0.0.1", f"-p{port}"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    **self._account,
                )
            if _is_answering(process, port):
                self._process, self.port = process, port
                return
        message = (self._folder / "log").read_text(errors="replace")[-2_000:]
        raise RuntimeError(message)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Ends the server: SIGINT breaks off what runs, SIGQUIT leaves a crash to recover from, as SIGKILL does.

        After SIGKILL the processes of its connections end by themselves; `start` waits for that.
        """
        if (process := self._process) is not None:
            self._process = None
            process.send_signal(how)
            process.wait()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Has all processes of the server stand still for the block: connections stay open, and nothing is answered."""
        assert self._process is not None, "it was stopped"
        process_id = self._process.pid
        stopped = [process_id]
        try:
            os.kill(process_id, signal.SIGSTOP)  # first, so that it starts no other one
            for child in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split():
                os.kill(int(child), signal.SIGSTOP)
                stopped.append(int(child))
            yield
        finally:
            for each in reversed(stopped):
                os.kill(each, signal.SIGCONT)

    @property
    def _data(self) -> Path:
        return self._folder / "data"


@contextmanager
def serve_postgres() -> Iterator[PostgresServer]:
    """Runs a server in a folder of its own for the block.

    Raises:
        LookupError: No Postgres is installed.
    """
    binaries = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        if account := _account():
            shutil.chown(folder, account["user"], account["group"])
        server = PostgresServer(folder, binaries)
        server.initialise()
        try:
            server.start()
            yield server
        finally:
            server.stop(signal.SIGQUIT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_for_tests() -> Iterator[PostgresServer]:
    """Runs a server for the block; where none is installed, the test is skipped, unless `REQUIRE_POSTGRES` is set."""
    try:
        _binaries()
    except LookupError:
        if os.environ.get("REQUIRE_POSTGRES"):
            raise
        pytest.skip("no Postgres")
    with serve_postgres() as server:
        yield server


def cut_connections(url: str) -> list[bool]:
    """Ends every connection to a database; returns of each whether it ended within a minute."""
    server, _, name = url.rpartition("/")
    ending = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        return [has_ended for (has_ended,) in connection.execute(ending, (name,))]


def _is_answering(process: subprocess.Popen[Any], port: int) -> bool:
    """Waits until the server answers; False if it ended instead, as its port or its memory is in use."""
    for _ in range(int(_START_SECONDS / _POLL_SECONDS)):
        try:
            psycopg.connect(_url(port, "postgres")).close()
        except psycopg.OperationalError:
            try:
                process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return False
        return True
    return False


def _url(port: int, database: str) -> str:
    return f"postgresql://{_USER}@127.0.0.1:{port}/{database}"


def _binaries() -> Path:
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    installed = sorted(Path("/").glob(_BINARIES.removeprefix("/")), key=lambda path: path.parent.name)
    if not installed:
        msg = "no Postgres is installed"
        raise LookupError(msg)
    return installed[-1]


def _account() -> dict[str, Any]:
    """Returns what starts a process as somebody else, if this one may do everything."""
    if os.geteuid() != 0:
        return {}
    entry = next(entry for name in _UNPRIVILEGED if (entry := _find_account(name)) is not None)
    return {"user": entry.pw_name, "group": entry.pw_gid, "extra_groups": ()}


def _find_account(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None
