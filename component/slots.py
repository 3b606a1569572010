"""Which of the newest turns have changed since they were drawn: each has a place that is drawn by itself.

A drawing of the page gives places to its newest turns and to those that will follow; older turns stay as they are
drawn until the next one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import streamlit as st

if TYPE_CHECKING:
    from graph.service import ChatService
    from graph.value.record import Record
    from graph.value.view import SessionView, Transcript, TurnView

TURNS_BEFORE: Final = 6  # two blocks: the older one may be folded while the newer one is talked about
TURNS_AFTER: Final = 12
_PLACES, _DRAWN, _OLDER = "turn_places", "drawn_turns", "older_folds"


class Shown(NamedTuple):
    """The newest turns with the records that end among them; `past` is from before a reset, `pinned` the messages."""

    transcript: Transcript
    records: Sequence[Record]
    past: Sequence[Record]
    pinned: frozenset[str]


def read(service: ChatService, identifier: str, last: int) -> Shown:
    """Returns the newest `last` turns."""
    transcript = service.turns.transcript(identifier, last=last)
    # A block is three turns, so these records reach back to the oldest turn. There are never fewer than at the time of
    # drawing: an older one that comes into sight with a later turn would look like one that was made meanwhile.
    count = max(len(transcript.turns), TURNS_BEFORE + TURNS_AFTER) // 3 + 1
    records = service.folds.records(identifier, last=count)
    has_reset = any(turn >= transcript.turns[0].number for turn in transcript.reset_after)
    past = service.folds.past_records(identifier, last=count) if has_reset else ()
    pinned = frozenset(pinned.message_id for pinned in service.folds.pins(identifier).messages)
    return Shown(transcript, records, past, pinned)


def key(number: int) -> str:
    """Returns the key of the fragment that is the place of a turn."""
    return f"slot_{number}"


def begin(service: ChatService, session: SessionView) -> range:
    """Gives places to the newest turns, for a drawing of the whole page; returns their numbers.

    Raises:
        TurnfoldError: The turns can't be read.
    """
    first = max(1, session.turn_count - TURNS_BEFORE + 1)
    places = range(first, session.turn_count + TURNS_AFTER + 1)
    st.session_state.update({_PLACES: places, _DRAWN: {}})
    shown = read_placed(service, session)
    st.session_state[_OLDER] = _ends_before(shown, first), shown.transcript.reset_after, _pinned_before(shown)
    return places


def read_placed(service: ChatService, session: SessionView) -> Shown:
    """Returns the turns that have places."""
    return read(service, session.session_id, session.turn_count - st.session_state[_PLACES].start + 1)


def is_placed(number: int) -> bool:
    """Whether a turn has a place."""
    return number in st.session_state.get(_PLACES, ())


def note_drawn(session: SessionView, turn: TurnView, shown: Shown) -> None:
    """Keeps what the place of a turn shows."""
    st.session_state[_DRAWN][turn.number] = _look(session, turn, shown)


def changed(service: ChatService, session: SessionView) -> list[int] | None:
    """Returns the turns whose places have to be drawn again; None if the whole page has to be.

    Raises:
        TurnfoldError: The turns can't be read.
    """
    places: range | None = st.session_state.get(_PLACES)
    if places is None or session.turn_count not in places:
        return None
    shown = read_placed(service, session)
    folds, resets, pinned = st.session_state[_OLDER]
    older = shown.transcript.reset_after, _pinned_before(shown)
    if older != (resets, pinned) or _ends_before(shown, places.start) - folds:
        return None  # older turns look different, too
    drawn = st.session_state[_DRAWN]
    return [turn.number for turn in shown.transcript.turns if drawn.get(turn.number) != _look(session, turn, shown)]


def _ends_before(shown: Shown, number: int) -> set[str]:
    return {record.id for record in (*shown.records, *shown.past) if record.turns and record.turns[-1] < number}


def _pinned_before(shown: Shown) -> frozenset[str]:
    """Returns the pinned messages of turns before these."""
    turns = shown.transcript.turns
    return shown.pinned.difference(*((turn.user_message_id, turn.answer_message_id) for turn in turns))


def _look(session: SessionView, turn: TurnView, shown: Shown) -> Hashable:
    """Returns what the drawing of a turn depends on."""
    ending = tuple(
        record for record in (*shown.records, *shown.past) if record.turns and record.turns[-1] == turn.number
    )
    reset = turn.number in shown.transcript.reset_after and (shown.transcript.can_undo_reset, turn.is_last)
    problem = session.project_problem and str(session.project_problem)
    notices = (session.fold_failures, session.context_notice, session.unsent_messages, problem) if turn.is_last else ()
    words = (turn.number, turn.attempt) if turn.status == "running" else turn
    pinned = shown.pinned.intersection((turn.user_message_id, turn.answer_message_id))
    return words, ending, reset, notices, session.strategy, pinned
