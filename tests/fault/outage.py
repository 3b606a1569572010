"""Outages of Postgres under processes that chat: its server crashes, connections are cut, or nobody is let in."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import psycopg

from graph.store.database import Database
from graph.value.error import DatabaseError
from tests.fake.postgres import PostgresServer, cut_connections
from tests.fault.chatter import Chatters, Child, Figures
from tests.fault.check import Ledger, check_folder
from tests.fault.location import put_elsewhere
from tests.fault.process import in_own_process
from tests.fault.scenario import SESSION, say_all, serve

KINDS: Final = ("crash", "cut", "closed", "full")
_PATIENCE_SECONDS: Final = 60.0
_CONNECTIONS: Final = 200  # more than a server of the tests gives
_HOLDERS: Final = 20  # more than a pool has connections


class Outages:
    """Two processes chat while their database fails, again and again; after each outage both must go on.

    Args:
        folder: A new folder.
        server: The server, of this process alone, as it is killed and started again.
        seed: Of all that is drawn.
    """

    def __init__(self, folder: Path, server: PostgresServer, *, seed: int) -> None:
        self._server = server
        self._url = server.make_database()
        self._folder = put_elsewhere(folder, self._url)
        self._draw = random.Random(seed)  # noqa: S311  # a test's dice
        self._chatters = Chatters(self._draw)

    def run(self, count: int) -> Figures:
        """Makes this many outages, of each kind in turn; checks at the end what is there."""
        sessions = [("first", "shared"), ("second", "shared")]
        children = [self._chatters.start(self._folder, own, None) for own in sessions]
        self._wait_for_turns(children, "the start")
        for number in range(count):
            kind = KINDS[number % len(KINDS)]
            self._listen(children, self._draw.uniform(0.05, 1.0))
            self._fail(kind)
            self._wait_for_turns(children, kind)
        for child in children:
            self._chatters.end(child)
        found = in_own_process(lambda: check_folder(self._folder, self._chatters.ledger))
        self._chatters.figures.wrong += found
        return self._chatters.figures

    def _fail(self, kind: str) -> None:
        pause_seconds = self._draw.uniform(0, 1.5)
        match kind:
            case "crash":
                self._server.stop(self._draw.choice((signal.SIGQUIT, signal.SIGKILL)))
                time.sleep(pause_seconds)
                self._server.start()
            case "cut":
                cut_connections(self._url)
            case "closed":
                with let_nobody_in(self._server, self._url):
                    time.sleep(pause_seconds)
            case "full":
                with every_connection_taken(self._server, self._url):
                    time.sleep(pause_seconds)

    def _listen(self, children: Sequence[Child], seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._chatters.listen(children, left)

    def _wait_for_turns(self, children: Sequence[Child], kind: str) -> None:
        """Waits until each process has had another message taken."""
        before = {child.name: child.taken for child in children}
        until = time.monotonic() + _PATIENCE_SECONDS
        while any(child.taken == before[child.name] for child in children):
            if time.monotonic() > until:
                self._chatters.figures.wrong.append(f"a process did not go on after {kind}")
                return
            self._chatters.listen(children, 1.0)


@contextmanager
def let_nobody_in(server: PostgresServer, url: str) -> Iterator[None]:
    """Cuts the connections to a database, and has it take no other within the block."""
    name = url.rpartition("/")[2]
    server.execute("ALTER DATABASE {} ALLOW_CONNECTIONS false", name)
    cut_connections(url)
    try:
        yield
    finally:
        server.execute("ALTER DATABASE {} ALLOW_CONNECTIONS true", name)


@contextmanager
def every_connection_taken(server: PostgresServer, url: str) -> Iterator[None]:
    """Cuts the connections to a database, and takes all that its server gives within the block."""
    with ExitStack() as taken:
        cut_connections(url)
        with suppress(psycopg.OperationalError):
            for _ in range(_CONNECTIONS):
                taken.enter_context(psycopg.connect(server.url("postgres")))
        yield


def pool_exhausted(folder: Path) -> list[str]:
    """All connections of a server are in use for longer than anybody waits: a message is refused, and nothing lost."""
    ledger = Ledger()
    with serve(folder, busy_timeout_seconds=5) as service:
        say_all(service, ledger, [1])
        database, is_over = service._engine.stores.chat.database, threading.Event()  # noqa: SLF001  # whoever else uses them
        holders = [threading.Thread(target=_hold, args=(database, is_over)) for _ in range(_HOLDERS)]
        for holder in holders:
            holder.start()
        try:
            service.turns.send(SESSION, "q-2", message_id="q-2")
        except DatabaseError as error:
            if error.code != "database_busy":
                ledger.wrong.append(f"a pool without connections is told as {error.code}")
        else:
            ledger.wrong.append("a message was taken without a connection")
        is_over.set()
        for holder in holders:
            holder.join()
        say_all(service, ledger, [2, 3])
    return check_folder(folder, ledger)


def _hold(database: Database, is_over: threading.Event) -> None:
    """Keeps a connection, if there is one, until it is over."""
    with suppress(DatabaseError), database.read():
        is_over.wait(_PATIENCE_SECONDS)
