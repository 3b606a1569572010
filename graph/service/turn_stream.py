"""One attempt of a turn as programs follow it: its events, or what the tables tell of it once it has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from graph.client import CompletionEnd
from graph.error import BusyError
from graph.event import Event
from graph.service.access import SessionAccess
from graph.service.completion_end import ResponsePlace, read_end
from graph.service.folds import Folds
from graph.service.response import response_id
from graph.service.turn_views import read_turn
from graph.store.session import SessionRow
from graph.store.turn import TurnRow
from graph.view import LiveTurn, TurnView
from graph.worker.archived_turn import last_event
from graph.worker.turn_log import TurnLog


class EndedTurn(NamedTuple):
    """A turn that is over: as it is shown, its last event, and what is told of it."""

    view: TurnView
    event: Event
    end: CompletionEnd


@dataclass(frozen=True)
class TurnStream:
    """One attempt of a turn. Get it from `service.turns.stream`.

    Usage:
        >>> stream = service.turns.stream("budget")
        >>> if stream and stream.has_events:
        ...     detach = stream.watch(wake)  # then `stream.events(after=3)`, as often as it wakes
    """

    _access: SessionAccess
    _session: SessionRow
    _row: TurnRow
    _log: TurnLog | None

    @property
    def turn(self) -> int:
        """The turn's number."""
        return self._row.number

    @property
    def attempt(self) -> int:
        """The attempt's number."""
        return self._row.attempt

    @property
    def id(self) -> str:
        """The id of its answer in OpenAI's shape."""
        return response_id(self._row.session_id, self.turn, self.attempt)

    @property
    def created(self) -> int:
        """When it began, in seconds since 1970."""
        return int(self._row.started_at.timestamp())

    @property
    def model(self) -> str:
        """The name of the model that answers."""
        return self._row.model or self._access.models.default_name

    @property
    def project_root(self) -> str:
        """The folder of its session's project, "" for none."""
        return self._session.project_root

    @property
    def has_events(self) -> bool:
        """Whether there are events of it: it runs in some process, or has run in this one."""
        return self._log is not None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or waits for a program, or its server was killed."""
        return self._log is None or self._log.is_over

    @property
    def first_place(self) -> int:
        """The place of its first event; see `TurnLog`."""
        return self._log.first_place if self._log else 1

    def events(self, after: int = 0) -> Sequence[Event]:
        """Returns the events so far without the first `after` of them; it is short, and waits for nothing."""
        return self._log.events(after) if self._log else ()

    def watch(self, on_event: Callable[[Event], None]) -> Callable[[], None]:
        """Passes on all events so far, then each new one; returns what ends that. See `TurnLog.watch`."""
        return self._log.watch(on_event) if self._log else lambda: None

    def progress(self, count: int) -> LiveTurn:
        """Returns what the turn looked like behind the first `count` of its events."""
        return (self._log or TurnLog(self.turn, self.attempt)).view_behind(count)

    def end(self) -> CompletionEnd:
        """Returns why the answer ended, its usage and its figures; it must be over.

        Raises:
            NotFoundError: The session was deleted meanwhile.
        """
        return self._end_of(self.attempt)

    def ended(self) -> EndedTurn:
        """Returns how the turn ended, in its last attempt, as the tables tell it.

        Raises:
            NotFoundError: The session was deleted meanwhile.
            BusyError: Another attempt has begun meanwhile.
        """
        view, row, said = read_turn(self._access, self._row.session_id, self.turn)
        if row.status == "running":
            raise BusyError
        return EndedTurn(view, last_event(row, said), self._end_of(row.attempt))

    def _end_of(self, attempt: int) -> CompletionEnd:
        place = ResponsePlace(self._row.session_id, self.turn, attempt, 1, b"", datetime.min.replace(tzinfo=UTC))
        return read_end(self._access, Folds(self._access), place, "header")


def open_stream(access: SessionAccess, session_id: str, turn: int | None) -> TurnStream | None:
    """Returns a turn of a session, the newest one if `turn` is None; None if the session has no turn yet.

    Raises:
        NotFoundError: There is no such session or turn.
    """
    session = access.own(session_id)
    row = access.stores.turns.last(session_id) if turn is None else access.stores.turns.get(session_id, turn)
    if row is None:
        return None
    return TurnStream(access, session, row, access.log_of(row))
