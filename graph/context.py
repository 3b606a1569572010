"""What a user does to a session's context by hand: compact, restore, begin anew; runs no turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from graph.core.standing import Standing
from graph.core.strategy.compaction import compaction_order
from graph.error import BusyError, InputError
from graph.keeper import AFTERMATH_SECONDS, SessionKeeper
from graph.store.hold import Hold
from graph.view import RecordView

Command = Literal["compact", "reset"]
_COMMANDS: Final[dict[str, Command]] = {"/compact": "compact", "/reset": "reset"}


class ContextKeeper(SessionKeeper):
    """Changes what the model is sent of a session, between turns; the archive stays as it is."""

    def command_of(self, text: str) -> Command | None:
        """Returns the command that a user typed instead of a message, None if it's a message."""
        return _COMMANDS.get(text.strip().lower())

    def compact(self, session_id: str) -> RecordView:
        """Replaces all but the newest messages by one structured summary now, and waits for it.

        Returns:
            The record, with messages and tokens before and after.

        Raises:
            InputError: `nothing_to_compact` (too few messages), or `compact_failed` (nothing shorter came of it).
            NotFoundError: There is no such session.
            BusyError: A turn is in progress.
        """
        session = self._stores.sessions.get(session_id, self._owner)
        with self._between_turns(session_id) as hold:
            order = compaction_order(self._standing(session_id), self.settings.preserve_recent_messages)
            if order is None:
                raise InputError("nothing_to_compact")
            record = self._folder.make_now(
                session_id, order, owner=self._owner, model=session.model, stop=threading.Event()
            )
            if record is None:
                raise InputError("compact_failed")
            self._stores.records.adopt(hold, record.id)
        return next(view for view in self.records(session_id) if view.record_id == record.id)

    def restore(self, session_id: str, record_id: str) -> None:
        """Undoes a compaction: what it had replaced is sent again, from the next turn on.

        Raises:
            InputError: `not_a_compaction`.
            NotFoundError: There is no such session, or the record isn't in force.
            BusyError: A turn is in progress.
        """
        self._stores.sessions.get(session_id, self._owner)
        if self._stores.records.get(session_id, record_id).kind != "compaction":
            raise InputError("not_a_compaction")
        with self._between_turns(session_id) as hold:
            self._stores.records.withdraw(hold, record_id)

    def reset(self, session_id: str) -> None:
        """Begins the context anew: nothing said so far is sent any more; the transcript stays.

        Raises:
            NotFoundError: There is no such session.
            BusyError: A turn is in progress.
        """
        self._stores.sessions.get(session_id, self._owner)
        with self._between_turns(session_id) as hold:
            raw = self._standing(session_id).raw
            covered_to = self._stores.records.covered_to(session_id)
            self._stores.sessions.begin_context(hold, raw[-1].position if raw else covered_to)

    @contextmanager
    def _between_turns(self, session_id: str) -> Iterator[Hold]:
        """Holds a settled session, and rebuilds its state from what was changed in the tables."""
        if self.live(session_id) is not None:
            raise BusyError
        hold = self._stores.leases.acquire(session_id, wait_seconds=AFTERMATH_SECONDS)
        try:
            self._settler.settle(hold, owner=self._owner, language="ko")
            yield hold
            self._settler.rebuild(session_id, owner=self._owner)
        finally:
            self._stores.leases.release(hold)

    def _standing(self, session_id: str) -> Standing:
        session = self._stores.sessions.get(session_id, self._owner)
        return self._folder.standing(session_id, complete_turns=session.turn_count, rate=session.compression_rate)
