"""Draws the line that says what the open chat is a branch of."""

from __future__ import annotations

import streamlit as st

from component import page_state
from component.format import escape_label
from component.page_state import PageState


def draw_origin(now: PageState) -> None:
    """Draws which chat the open one is a branch of, with the way there, if it is one."""
    if now.session is None or not now.session.forked_from:
        return
    origin, turn = now.session.forked_from, now.session.forked_after
    said = now.words.sessions
    title = escape_label(now.service.sessions.get(origin).title) or now.words.untitled
    text = said.branch_of.format(title=title, turn=turn) if turn else said.branch_of_all.format(title=title)
    with st.container(
        horizontal=True, horizontal_alignment="center", vertical_alignment="center", gap="small", key="branch_of"
    ):
        st.markdown(f":small[:gray[:material/alt_route: {text}]]", width="content")
        st.button(
            said.to_origin,
            key="to_origin",
            type="tertiary",
            on_click=page_state.open_session,
            args=(origin, max(turn, 1)),
        )
