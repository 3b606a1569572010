"""Draws again what an action or an answer has changed, and nothing else.

What changes often is drawn by fragments with keys. Streamlit draws those of a list for a widget callback alone; a
fragment that finds a change in its own run has the page's script ask for it (`asset/redraw.js`).
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from component import delivery, dialog, open_form, page_state, service_provider, session_list, slots
from graph.value.error import TurnfoldError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graph.service import ChatService
    from graph.value.project_view import ProjectView
    from graph.value.record import Record
    from graph.value.view import NextFold, PinView, SessionView

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
    if not slots.is_placed(number):
        st.rerun()
    _draw([slots.key(number)] if dialog.is_open() else [slots.key(number), COMPOSER], own=0)


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
        turns = slots.changed(service, session)
        if turns is None:
            return None
        parts = [slots.key(turn) for turn in turns]
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
