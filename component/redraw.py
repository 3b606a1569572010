"""Draws again what an action or an answer has changed, and nothing else.

What changes often is drawn by fragments with keys. Streamlit draws those of a list for a widget callback alone; a
fragment that finds a change in its own run has the page's script ask for it (`asset/redraw.js`).
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from component import dialog, open_form, page_state, session_list
from component.bridge import delivery, service_provider
from graph.value.error import TurnfoldError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graph.service import ChatService
    from graph.value.project_view import ProjectView
    from graph.value.record import Record
    from graph.value.view import NextFold, PinView, SessionView, Transcript, TurnView

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


def changed_slots(service: ChatService, session: SessionView) -> list[int] | None:
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


COMPOSER: Final = "composer"
HEARD: Final = "heard"
PANEL: Final = "panel"
HEAD: Final = "head"
LACK: Final = "lack"
SESSIONS: Final = "sessions"
PROJECT_CARD: Final = "project_card"
_HOLDS_DIALOGS: Final = {COMPOSER, SESSIONS}
_WHOLE, _RUNNING = "whole_page", "drawn_running"
_CARDS, _HEAD, _ANSWERED = "drawn_cards", "drawn_head", "drawn_answered"
_PINS = "drawn_pins"
_PROJECT, _CHANGED = "drawn_project", "changed"
_SERVED, _ASKED = "served_requests", "asked_since"
CARDS_AT_ONCE: Final = 3
_PATIENCE_SECONDS: Final = 6.0


def need_page() -> None:
    """Says that the page has to be drawn whole; until `end_page`, nothing can be drawn by itself."""
    st.session_state.pop(_WHOLE, None)


def end_page() -> None:
    """Says that the page is drawn."""
    st.session_state[_WHOLE] = page_state.session_id()


def note_panel(records: Sequence[Record], following: NextFold, session: SessionView, *, answered: int | None) -> None:
    """Keeps the newest records and the next fold that the panel is drawn from, and how many turns had ended.

    Args:
        records: The newest records.
        following: The next fold.
        session: The session.
        answered: The number of turns that had ended; None if the panel shows its head, which has nothing of them.
    """
    st.session_state.update({_CARDS: records, _ANSWERED: answered})
    note_head(following, session)


def note_pins(pins: PinView) -> None:
    """Keeps the pins that the panel is drawn from."""
    st.session_state[_PINS] = pins


def note_head(following: NextFold, session: SessionView | None) -> None:
    """Keeps the next fold that the panel's head is drawn from, and how often it has failed."""
    st.session_state[_HEAD] = following, session.fold_failures if session else 0


def note_project(place: str, view: ProjectView | None) -> None:
    """Keeps the project that the tab in the rail or the drawer is drawn from; None while it shows none."""
    st.session_state[_PROJECT] = {**st.session_state.get(_PROJECT, {}), place: view}


def note_running(*, is_running: bool) -> None:
    """Keeps whether the bar offers to stop a turn."""
    st.session_state[_RUNNING] = is_running


def changed() -> None:
    """Ends a widget callback: draws what has changed; the page, if it wasn't drawn whole or shows another session."""
    _draw_changed(own=1)


def project_changed() -> None:
    """Ends a widget callback that has changed a project: draws its tab again, too."""
    st.session_state[_PROJECT] = dict.fromkeys(st.session_state.get(_PROJECT, {}), _CHANGED)
    if page_state.session_id() is None and st.session_state.get(_WHOLE, "") is None:
        if _can_draw():
            _draw([PANEL, PROJECT_CARD], own=1)
        return
    changed()


def changed_as_asked() -> None:
    """Draws what has changed as the callback of the page's script, which stands in no part that is drawn."""
    _draw_changed(own=0)


def _draw_changed(own: int) -> None:
    if not _can_draw():
        return
    st.session_state[_SERVED] = served_count() + 1
    parts = stale_parts()
    if parts is None:
        st.rerun()
    if COMPOSER not in parts and not dialog.is_open():
        parts.append(COMPOSER)
    _draw([*parts, HEARD], own)


def turn_as_asked(number: int) -> None:
    """Draws a turn as the callback of the page's script, with the notice; the page, if the turn has no place."""
    if not _can_draw():
        return
    if not is_placed(number):
        st.rerun()
    _draw([key(number)] if dialog.is_open() else [key(number), COMPOSER], own=0)


def alone_as_asked(key: str) -> None:
    """Draws one part as the callback of the page's script."""
    if _can_draw():
        _draw([key], own=0)


def page() -> None:
    """Ends a widget callback: draws the whole page."""
    if _can_draw():
        st.rerun()


def served_count() -> int:
    """Returns how many requests for what has changed were served: a mark from before has had its answer."""
    return int(st.session_state.get(_SERVED, 0))


def ask(place: DeltaGenerator | None = None) -> None:
    """Has the browser ask for what has changed; draws the page if nothing comes of it.

    Args:
        place: An element that gives its place to the request, which is invisible.
    """
    mark = served_count()
    asked, since = st.session_state.get(_ASKED, (-1, 0.0))
    if asked != mark:
        st.session_state[_ASKED] = mark, time.monotonic()
    elif time.monotonic() - since > _PATIENCE_SECONDS:
        st.rerun()
    (place or st).html(f'<i class="redraw" hidden data-mark="{mark}"></i>')


def stale_parts(*, is_order_kept: bool = False) -> list[str] | None:
    """Returns the keys of what has changed since it was drawn; None if the whole page has to be drawn.

    A message takes its chat to the top of the list, which waits until the answer is there and drawn.

    A dialog that is open is built anew with the part that opened it, and what is being typed there is lost: these
    parts wait until it is closed, which draws the page.
    """
    identifier = page_state.session_id()
    if identifier is None or st.session_state.get(_WHOLE) != identifier or dialog.is_left():
        return None
    strategy = st.session_state[page_state.STRATEGY]
    try:
        service = service_provider.current()
        session = service.sessions.get(identifier)
        turns = changed_slots(service, session)
        if turns is None:
            return None
        parts = [key(turn) for turn in turns]
        if _is_project_changed(service) or _are_records_changed(service, identifier):
            parts.append(PANEL)
        elif st.session_state.get(_HEAD) != (
            service.folds.next_fold(identifier, strategy=strategy),
            session.fold_failures,
        ):
            parts += [HEAD, LACK] if st.session_state[_ANSWERED] is None else [PANEL]
        elif st.session_state[_ANSWERED] not in {None, session.turn_count - session.is_running}:
            parts.append(PANEL)
        if session_list.is_changed(service, is_order_kept=is_order_kept or session.is_running or bool(turns)):
            parts.append(SESSIONS)
        if st.session_state.get(_RUNNING) != session.is_running:
            parts.append(COMPOSER)
    except TurnfoldError:  # the page says which
        return None
    if open_form.is_typed_in_panel():
        parts = [part for part in parts if part not in {PANEL, HEAD, LACK}]
    return [part for part in parts if part not in _HOLDS_DIALOGS] if dialog.is_open() else parts


def _are_records_changed(service: ChatService, identifier: str) -> bool:
    drawn = st.session_state.get(_CARDS), st.session_state.get(_PINS)
    return drawn != (service.folds.records(identifier, last=CARDS_AT_ONCE), service.folds.pins(identifier))


def _is_project_changed(service: ChatService) -> bool:
    places: dict[str, ProjectView | str | None] = st.session_state.get(_PROJECT, {})
    drawn = places.get("drawer" if dialog.is_open() else "rail")
    if drawn is None or isinstance(drawn, str):
        return drawn is not None
    return drawn != service.projects.get(drawn.root, language=st.session_state[page_state.LANGUAGE])


def _can_draw() -> bool:
    # Each run of a page under test draws all of it, and an early press has done nothing.
    return delivery.is_served() and not delivery.is_early()


def _draw(parts: list[str], own: int) -> None:
    """Draws these parts and what else this run was asked for."""
    if parts and not delivery.is_for_page():
        with suppress(StreamlitAPIException):  # an error stands where one of them was
            delivery.keep_drawn(own)
            st.rerun(parts)
    st.rerun()
