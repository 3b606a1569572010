"""A database that is away for as long as a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import NoReturn

from sqlalchemy import Connection, event

from graph.server.settings import Settings
from graph.store.database import Database
from graph.store.stores import Stores, open_stores
from graph.value.error import DatabaseUnreachableError

_PATIENCE_SECONDS = 30.0


class Outage:
    """Refuses each transaction while it lasts, whoever begins it; one that has begun is committed.

    Usage:
        >>> outage = Outage()
        >>> with open_service(settings, stores=outage.stores) as service:
        ...     outage.begin()
        ...     outage.wait_for(3)
        ...     outage.end()
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_on = self._is_mute = False
        self._refused = 0

    def begin(self, *, is_mute: bool = False) -> None:
        """Begins the outage; a mute database goes on to commit, but nobody hears of it."""
        with self._changed:
            self._is_on, self._is_mute, self._refused = not is_mute, is_mute, 0

    def end(self) -> None:
        with self._changed:
            self._is_on = self._is_mute = False

    def wait_for(self, refused: int) -> None:
        """Waits until so many transactions were refused."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._refused >= refused, _PATIENCE_SECONDS), "nothing was refused"

    @contextmanager
    def of(self, database: Database) -> Iterator[None]:
        """Has this database be the one, for the block."""
        engine = getattr(database.engine, "_proxied", database.engine)  # that of readers and of writers
        event.listen(engine.pool, "checkout", self._refuse)
        event.listen(engine, "commit", self._keep_silent)
        try:
            yield
        finally:
            self.end()
            event.remove(engine, "commit", self._keep_silent)
            event.remove(engine.pool, "checkout", self._refuse)

    def stores(self, settings: Settings, clock: Callable[[], datetime]) -> AbstractContextManager[Stores]:
        """Opens the stores over it; what `open_service` takes as `stores`."""

        @contextmanager
        def opened() -> Iterator[Stores]:
            with open_stores(settings, clock) as stores, self.of(stores.chat.database):
                yield stores

        return opened()

    def _refuse(self, *_: object) -> None:
        with self._changed:
            if self._is_on:
                self._fail()

    def _keep_silent(self, connection: Connection) -> None:
        with self._changed:
            if self._is_mute:
                connection.connection.commit()
                self._fail()

    def _fail(self) -> NoReturn:
        self._refused += 1
        self._changed.notify_all()
        raise DatabaseUnreachableError("Outage")
