"""Watches the sessions that pages show: one statement a second for all of them; without a page, nothing is read."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from graph.store.session import Revisions
from graph.store.stores import ChatStores
from graph.value.error import StoreError, TurnfoldError

_LOG = logging.getLogger(__name__)
WATCH_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.1  # changes rarely come alone
KEPT_SECONDS: Final = 10.0


class Memory(NamedTuple):
    """What only this process knows of a session and a page shows.

    Attributes:
        running: The turn and attempt that runs here; None for none.
        folds: Whether none is queued or made here, and whether they wait for the turns to pause.
        problem: What was wrong with the project in its newest turn.
        window_tokens: Of the server's default model: another number once the endpoint has told its models.
        is_signed_out: Whether the user's sign-in has run out.
    """

    running: tuple[int, int] | None = None
    is_compacting: bool = False
    folds: tuple[bool, bool] = (True, False)
    problem: TurnfoldError | None = None
    window_tokens: int = 0
    is_signed_out: bool = False


class Mark(NamedTuple):
    """What was known of a session at a moment; what is read of it afterwards holds while its mark is the same.

    Attributes:
        session: Another number with each change of the session.
        owner: Another number with each change of any session of the owner, or of who is let in, once it is seen.
        commits: Another number with each change of any session by this process.
    """

    session: int
    owner: int
    commits: int
    memory: Memory

    @property
    def is_running_here(self) -> bool:
        """Whether a turn or a compaction of the session runs in this process."""
        return self.memory.running is not None or self.memory.is_compacting

    def is_news(self, seen: Mark) -> bool:
        """Whether a page that has `seen` another mark may show something outdated."""
        return self._replace(commits=0) != seen._replace(commits=0)


@dataclass(eq=False)
class _Known:
    """What the tables said last of a session or an owner; a new serial number with each change."""

    read: Hashable
    serial: int
    asked_at: float = field(default_factory=time.monotonic)
    admitted: dict[Hashable, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Tab:
    """A page that is told of changes; `seen` is None if it is to look at the next moment.

    `again_at` is when it is to look although nothing is known to have changed.
    """

    owner: str
    session_id: str
    look: Callable[[], Mark]
    wake: Callable[[], bool]
    seen: Mark | None
    again_at: float | None

    def is_due(self) -> bool:
        if self.seen is None or (self.again_at is not None and time.monotonic() >= self.again_at):
            return True
        return self.look().is_news(self.seen)


class SessionWatcher:
    """Knows at any moment whether a session has changed, by this process at once, by others within a second."""

    def __init__(self, stores: ChatStores) -> None:
        self._read = stores.sessions.revisions
        self._serials = itertools.count(1)
        self._commits = 0
        self._sessions: dict[str, _Known] = {}
        self._owners: dict[str, _Known] = {}
        self._tabs: dict[str, _Tab] = {}
        self._changed = threading.Condition()
        self._has_news = self._is_closed = False
        self._thread: threading.Thread | None = None
        stores.database.on_change(self._note)

    def mark(self, owner: str, session_id: str, memory: Memory) -> Mark:
        """Returns the session's mark; reads the tables if it wasn't asked for lately. Raises `StoreError`."""
        with self._changed:
            is_known = session_id in self._sessions and owner in self._owners
        if not is_known:
            self._begin(owner, session_id)
        with self._changed:
            session = self._sessions.setdefault(session_id, _Known(None, next(self._serials)))
            owned = self._owners.setdefault(owner, _Known(None, next(self._serials)))
            session.asked_at = owned.asked_at = time.monotonic()
            self._start()
            return Mark(session.serial, owned.serial, self._commits, memory)

    def is_admitted(self, session_id: str, user: Hashable, mark: Mark) -> bool:
        """Whether `admit` was called for this user, and nothing that was read then has changed."""
        known = self._sessions.get(session_id)
        return known is not None and known.admitted.get(user) == (mark.session, mark.owner)

    def admit(self, session_id: str, user: Hashable, mark: Mark) -> None:
        """Notes that the session is this user's, as read after the mark was."""
        known = self._sessions.get(session_id)
        if known is not None:
            known.admitted[user] = mark.session, mark.owner

    def follow(
        self,
        tab: str,
        owner: str,
        session_id: str,
        *,
        look: Callable[[], Mark],
        wake: Callable[[], bool],
        seen: Mark | None,
        again_seconds: float | None = None,
    ) -> None:
        """Has a tab woken, once a second, while the session's mark isn't the one it has seen.

        `wake` returns False once the tab is gone, which ends it. `again_seconds` after this the tab is woken anyway.
        """
        again_at = None if again_seconds is None else time.monotonic() + again_seconds
        with self._changed:
            self._tabs[tab] = _Tab(owner, session_id, look, wake, seen, again_at)
            self._start()

    def leave(self, tab: str) -> None:
        """Wakes the tab no more."""
        with self._changed:
            self._tabs.pop(tab, None)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._run, name="session-watch", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _begin(self, owner: str, session_id: str) -> None:
        # Taken before the read: what is committed meanwhile counts as a change.
        with self._changed:
            session = self._sessions.setdefault(session_id, _Known(None, next(self._serials)))
            owned = self._owners.setdefault(owner, _Known(None, next(self._serials)))
            serials = session.serial, owned.serial
        found = self._read([session_id], [owner])
        with self._changed:
            if (session.serial, owned.serial) == serials:
                session.read, owned.read = found.of_session(session_id), found.of_owner(owner)

    def _note(self, changed: Sequence[str]) -> None:
        """Hears what a transaction of this process has committed: the ids of the sessions whose revision it raised."""
        with self._changed:
            self._commits = next(self._serials)
            for session_id in changed:
                known = self._sessions.get(session_id)
                if known is not None:
                    known.read = known.read + 1 if isinstance(known.read, int) else None
                    known.serial = next(self._serials)
                    self._has_news = True
            self._changed.notify_all()

    def _run(self) -> None:
        is_reading, look_at = True, 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._tabs or self._sessions or self._is_closed)
                self._changed.wait_for(lambda: self._has_news or self._is_closed, look_at - time.monotonic())
                self._changed.wait_for(lambda: self._is_closed, _PAUSE_SECONDS)
                if self._is_closed:
                    return
                self._has_news = False
                sessions, owners = self._watched()
            if time.monotonic() < look_at:
                self._wake()
                continue
            look_at = time.monotonic() + WATCH_SECONDS - _PAUSE_SECONDS
            try:
                found = self._read(sessions, owners)
                is_reading = True
            except StoreError as error:
                if is_reading:
                    _LOG.warning("sessions could not be watched: %s", error.code)
                found, is_reading = None, False
            except Exception:  # noqa: BLE001  # the edge of a thread; the next look makes up for it
                _LOG.exception("sessions could not be watched")
                found, is_reading = None, False
            self._take(sessions, owners, found)
            self._wake()

    def _watched(self) -> tuple[list[str], list[str]]:
        """Returns what is to be read; forgets what no tab shows and nobody has asked for lately."""
        until = time.monotonic() - KEPT_SECONDS
        shown = {tab.session_id for tab in self._tabs.values()}, {tab.owner for tab in self._tabs.values()}
        for known, kept in zip((self._sessions, self._owners), shown, strict=True):
            for name in [name for name, one in known.items() if one.asked_at < until and name not in kept]:
                del known[name]
        return list(self._sessions), list(self._owners)

    def _take(self, sessions: Sequence[str], owners: Sequence[str], found: Revisions | None) -> None:
        """Compares what the tables say now; without an answer, everything may have changed."""
        with self._changed:
            for session_id in sessions:
                self._compare(self._sessions.get(session_id), found and found.of_session(session_id))
            for owner in owners:
                self._compare(self._owners.get(owner), found and found.of_owner(owner))

    def _compare(self, known: _Known | None, read: Hashable) -> None:
        if known is not None and known.read != read:
            known.read, known.serial = read, next(self._serials)

    def _wake(self) -> None:
        with self._changed:
            tabs = list(self._tabs.items())
        for name, tab in tabs:
            try:
                is_gone = tab.is_due() and not tab.wake()
            except StoreError:
                continue  # the next look makes up for it
            except Exception:  # noqa: BLE001  # of one tab; the thread is that of all
                _LOG.exception("a page could not be told of a change")
                continue
            if is_gone:
                with self._changed:
                    if self._tabs.get(name) is tab:
                        del self._tabs[name]
