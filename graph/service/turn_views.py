"""Reads the transcript of a session. A turn whose worker died is shown as the next message will close it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import AnyMessage, HumanMessage

from graph.core.close_turn import closing_messages, ending_of
from graph.core.language import session_language
from graph.core.turn import is_complete, is_cut, is_final_answer, text_of
from graph.service.access import SessionAccess
from graph.store.turn import TurnRow
from graph.view import Transcript, TurnView
from graph.worker.archived_turn import answers_in, steps_in
from prompt.system.framing import Language


def read_transcript(access: SessionAccess, session_id: str, *, last: int, before: int | None = None) -> Transcript:
    """Returns the newest `last` turns, or the newest before this number, each in its last attempt.

    Raises:
        NotFoundError: There is no such session.
    """
    session = access.own(session_id)
    rows = access.stores.turns.list(session_id, last=last, before=before)
    if not rows:
        return Transcript((), 0)
    last_row, is_abandoned = _refreshed(access, rows[-1])
    said: dict[int, list[AnyMessage]] = {}
    for entry in access.stores.archive.live_turns(session_id, rows[0].number, rows[-1].number):
        said.setdefault(entry.turn, []).append(entry.message)
    if is_abandoned:
        language = session_language(access.stores.archive.opening(session_id))
        last_row, said[last_row.number] = _as_closed(last_row, said.get(last_row.number, []), language)
    turns = tuple(
        _turn_view(row, said.get(row.number, []), is_last=row.number == session.turn_count)
        for row in (*rows[:-1], last_row)
    )
    resets = access.stores.resets
    return Transcript(turns, rows[0].number - 1, resets.turns(session_id), resets.can_undo(session_id))


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
