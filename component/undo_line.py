"""The line that says which summary was just changed, with the button that takes the change back."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from component import delivery, page_state, redraw, service_provider
from component.page_state import PageState
from graph.value.error import TurnfoldError

_CHANGE = "last_change"


class _Change(NamedTuple):
    """A change of a summary; `back_to` is the record that was in its place before."""

    session_id: str
    text: str
    back_to: str
    turn_count: int


def keep(session_id: str, text: str, *, back_to: str) -> None:
    """Keeps a change; the line stands until the next message, or until something else is changed.

    Raises:
        TurnfoldError: The session can't be read.
    """
    turn_count = service_provider.current().sessions.get(session_id).turn_count
    st.session_state[_CHANGE] = _Change(session_id, text, back_to, turn_count)


def draw(page: PageState, place: str) -> None:
    """Draws the line, if there is one for this session; `place` makes its element keys unique.

    Raises:
        TurnfoldError: The session can't be read.
    """
    change: _Change | None = st.session_state.get(_CHANGE)
    if change is None:
        return
    session = page_state.look_again(page).session
    if session is None or (session.session_id, session.turn_count) != (change.session_id, change.turn_count):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"change_{place}"):
        st.markdown(f":small[:material/check: {change.text}]", width="content")
        st.button(
            page.words.steering.take_back,
            key=f"take_back_{place}",
            type="tertiary",
            icon=":material/undo:",
            on_click=_take_back,
            args=(change,),
        )


@delivery.once
def _take_back(change: _Change) -> None:
    st.session_state.pop(_CHANGE, None)
    try:
        service_provider.current().folds.use_version(change.session_id, change.back_to)
    except TurnfoldError as error:
        page_state.set_notice(error)
    else:
        page_state.set_notice(None)
    redraw.page()
