"""Draws the left column: new chat, the sessions with their menus, the box of settings, who is signed in."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from component import (
    asset_file,
    listed_session,
    page_state,
    project_choice,
    redraw,
    session_list,
    session_selection,
    setting_box,
    visitor_row,
)
from component.delivery import delivered
from component.error_box import error_box
from component.format import group_sessions, zone_of
from component.page_state import PageState


def draw(now: PageState) -> None:
    """Draws the sidebar."""
    with st.sidebar:
        st.button(
            now.words.new_chat,
            key="new_chat",
            icon=":material/edit_square:",
            width="stretch",
            shortcut="Ctrl+Shift+O",
            on_click=page_state.open_session,
            args=(None,),
        )
        if project_choice.is_on(now.service) and (
            project_choice.root_of(now.service, now.session) or project_choice.last(now.service)
        ):
            st.html(asset_file.FOLDER / "without_memory.css")
            st.button(
                now.words.project.without_memory,
                key="new_without_memory",
                type="tertiary",
                icon=":material/history_toggle_off:",
                on_click=page_state.open_without_memory,
            )
        _draw_sessions(now)
        setting_box.draw(now)
        visitor_row.draw(now)


@st.fragment(key=redraw.SESSIONS)
@delivered
def _draw_sessions(now: PageState) -> None:
    words = now.words
    with st.container(horizontal=True, gap="xsmall", wrap=False, vertical_alignment="center", key="search_row"):
        st.text_input(
            words.search_chats,
            key=page_state.SEARCH,
            type="search",
            placeholder=words.search_chats,
            icon=":material/search:",
            label_visibility="collapsed",
            live=True,
            persist_state="session",
        )
        session_selection.draw_button(words)
    is_other = page_state.session_id() != (now.session.session_id if now.session else None)
    if is_other or page_state.is_turn_wanted():
        st.rerun()
    session_selection.draw_undo(words)
    with error_box(words):
        _draw_list(now)


def _draw_list(now: PageState) -> None:
    words, search = now.words, session_list.search()
    items = session_list.read(now.service)
    session_list.note_drawn(items)
    if not items:
        st.markdown(f":small[:gray[{words.no_match if search else words.no_chats}]]")
        return
    session_selection.draw_bar(words, items)
    titles = {
        "pinned": words.sessions.pinned,
        "today": words.today,
        "yesterday": words.yesterday,
        "last_week": words.last_week,
        "older": words.older,
    }
    with st.container(key="sessions", gap=None):
        for group, members in group_sessions(items, datetime.now(UTC), zone_of(now.time_zone)):
            st.markdown(f":small[:gray[{titles[group]}]]")
            for item in members:
                if session_selection.is_on():
                    session_selection.draw_row(words, item)
                else:
                    listed_session.draw(now, item)
    more_count = now.service.sessions.count(search=search) - len(items)
    if more_count > 0:
        label = words.more_chats.format(count=more_count)
        st.button(
            label, key="more_sessions", type="tertiary", icon=":material/expand_more:", on_click=session_list.show_more
        )
