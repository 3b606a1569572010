"""One attempt of a turn as its followers see it: its events, or its rows once it has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage

from graph.core.language import session_language
from graph.core.turn import closing_messages, ending_of, is_complete, is_cut, is_final_answer, text_of
from graph.model.factory import ChatModels
from graph.service.access import SessionAccess
from graph.service.response import ResponsePlace, read_end, response_id
from graph.store.session import SessionRow
from graph.store.turn import TurnRow
from graph.value.client import CompletionEnd
from graph.value.error import BusyError
from graph.value.event import Event
from graph.value.view import LiveTurn, TurnView
from graph.worker.archived_turn import answers_in, last_event, steps_in
from graph.worker.turn_log import TurnLog
from prompt.system.framing import Language


def views_of(access: SessionAccess, session: SessionRow, rows: Sequence[TurnRow]) -> tuple[TurnView, ...]:
    """Returns turns of a session, which follow one another, each in its last attempt."""
    session_id = session.session_id
    last_row, is_abandoned = _refreshed(access, rows[-1])
    said: dict[int, list[AnyMessage]] = {}
    for entry in access.stores.archive.live_turns(session_id, rows[0].number, rows[-1].number):
        said.setdefault(entry.turn, []).append(entry.message)
    if is_abandoned:
        language = session_language(access.stores.archive.opening(session_id))
        last_row, said[last_row.number] = _as_closed(last_row, said.get(last_row.number, []), language)
    return tuple(
        _turn_view(row, said.get(row.number, []), is_last=row.number == session.turn_count)
        for row in (*rows[:-1], last_row)
    )


def read_turn(access: SessionAccess, session_id: str, number: int) -> tuple[TurnView, TurnRow, Sequence[AnyMessage]]:
    """Returns one turn in its last attempt, and the row and the messages that this shows.

    Raises:
        NotFoundError: There is no such session or turn.
    """
    session = access.own(session_id)
    row, is_abandoned = _refreshed(access, access.stores.turns.get(session_id, number))
    said = [entry.message for entry in access.stores.archive.live_turns(session_id, number, number)]
    if is_abandoned:
        row, said = _as_closed(row, said, session_language(access.stores.archive.opening(session_id)))
    return _turn_view(row, said, is_last=number == session.turn_count), row, said


def _refreshed(access: SessionAccess, row: TurnRow) -> tuple[TurnRow, bool]:
    """Returns the newest turn's row, and whether its worker died without ending it, or its program stays away."""
    if row.status == "requires_action":
        return row, not access.stores.turns.is_waiting(row)
    if row.status != "running" or access.is_running(row.session_id):
        return row, False
    # The turn may have ended between reading its row and looking for its worker.
    row = access.stores.turns.get(row.session_id, row.number)
    return row, row.status == "running"


def _turn_view(row: TurnRow, said: Sequence[AnyMessage], *, is_last: bool) -> TurnView:
    """Builds the view of a turn from its row and the messages of its last attempt, in order."""
    user_text = next((text_of(message) for message in said if isinstance(message, HumanMessage)), "")
    return TurnView(
        number=row.number,
        attempt=row.attempt,
        status=row.status,
        user_text=user_text,
        answer_text="\n\n".join(answers_in(said)),
        steps=tuple(steps_in(said)),
        error_code=row.error_code,
        error_detail=row.error_detail,
        model=row.model,
        is_last=is_last,
        is_cut=row.status == "finished" and bool(said) and is_cut(said[-1]),
        client=row.client,
        user_message_id=row.user_message_id,
        answer_message_id=next((str(message.id) for message in said[-1:] if is_final_answer(message)), ""),
        rating=row.rating,
    )


def _as_closed(row: TurnRow, said: list[AnyMessage], language: Language) -> tuple[TurnRow, list[AnyMessage]]:
    """Returns an abandoned turn as the next message will close it; nothing is written."""
    is_stopped = row.stop_requested or row.status == "requires_action"
    status, code = ending_of(said, stop_requested=is_stopped)
    if not is_complete(said) and status != "finished":
        closing = closing_messages(
            said, status=status, code=code, partial_text=row.partial_text, language=language, message_id=""
        )
        said = [*said, *closing]
    return replace(row, status=status, error_code=code), said


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
    _models: ChatModels
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
        return self._row.model or self._models.default_name

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
        return read_end(self._access, place, "header")
