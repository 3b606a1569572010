"""Draws the left column: new chat, the sessions with their menus, the box of settings."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import streamlit as st

from component import action, dialog, page_state, program, project_choice, redraw, session_list, setting_box, sign_in
from component.delivery import delivered
from component.error_box import error_box
from component.format import escape_label, group_sessions, zone_of
from component.page_state import PageState
from graph.view import SessionItem


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
            st.button(
                now.words.project.without_memory,
                key="new_without_memory",
                type="tertiary",
                icon=":material/history_toggle_off:",
                on_click=page_state.open_without_memory,
            )
        _draw_sessions(now)
        setting_box.draw(now)
        _draw_visitor(now)


def _draw_visitor(now: PageState) -> None:
    visitor, said = sign_in.visitor(now.service.settings), now.words.sign_in
    if visitor is None:
        return
    with st.container(key="visitor", horizontal=True, gap="xsmall", wrap=False, vertical_alignment="center"):
        st.markdown(f":material/account_circle: {escape_label(visitor.name) or said.signed_in}")
        st.button(said.sign_out, key="sign_out", type="tertiary", on_click=st.logout)


@st.fragment(key=redraw.SESSIONS)
@delivered
def _draw_sessions(now: PageState) -> None:
    words = now.words
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
    is_other = page_state.session_id() != (now.session.session_id if now.session else None)
    if is_other or page_state.is_turn_wanted():
        st.rerun()
    with error_box(words):
        _draw_list(now)


def _draw_list(now: PageState) -> None:
    words, search = now.words, session_list.search()
    items = session_list.read(now.service)
    session_list.note_drawn(items)
    if not items:
        st.markdown(f":small[:gray[{words.no_match if search else words.no_chats}]]")
        return
    titles = {"today": words.today, "yesterday": words.yesterday, "last_week": words.last_week, "older": words.older}
    with st.container(key="sessions", gap=None):
        for group, members in group_sessions(items, datetime.now(UTC), zone_of(now.time_zone)):
            st.markdown(f":small[:gray[{titles[group]}]]")
            for item in members:
                _draw_row(now, item)
    more_count = now.service.sessions.count(search=search) - len(items)
    if more_count > 0:
        label = words.more_chats.format(count=more_count)
        st.button(
            label, key="more_sessions", type="tertiary", icon=":material/expand_more:", on_click=session_list.show_more
        )


def _draw_row(now: PageState, item: SessionItem) -> None:
    words = now.words
    title = escape_label(item.title) or words.untitled
    state = "open" if item.session_id == page_state.session_id() else "row"
    with st.container(horizontal=True, gap=None, wrap=False, key=f"{state}_session_{item.session_id}"):
        # Both presses act by callbacks: if another fragment of the same run reruns the page, the press itself is lost.
        st.button(
            title,
            key=f"session_{item.session_id}",
            type="tertiary",
            icon=":material/pending:" if session_list.is_marked(item) else None,
            width="stretch",
            wrap=False,
            on_click=page_state.open_session,
            args=(item.session_id,),
        )
        menu = f"menu_{item.session_id}"
        st.menu_button(
            words.chat_menu.format(title=title),
            (words.rename, words.delete),
            key=menu,
            type="tertiary",
            icon=":material/more_horiz:",
            on_click=_open_chosen,
            args=(menu,),
        )
    if item.client:
        with st.container(key=f"client_{item.session_id}"):
            program.draw(words, item.client)
    if item.found_turn is not None:
        st.button(
            words.found_in_turn.format(turn=item.found_turn, text=escape_label(item.found_text)),
            key=f"found_{item.session_id}",
            type="tertiary",
            width="stretch",
            wrap=True,
            on_click=page_state.open_session,
            args=(item.session_id, item.found_turn),
        )
    dialog.draw(f"{menu}_{words.rename}", words.rename_title, _draw_rename, now, item)
    dialog.draw(f"{menu}_{words.delete}", words.delete_title, _draw_delete, now, item)


def _open_chosen(menu: str) -> None:
    dialog.request(f"{menu}_{st.session_state[menu]}")


def _draw_rename(now: PageState, item: SessionItem) -> None:
    words = now.words
    with st.form("rename", border=False):  # in a form Enter saves
        title = st.text_input(words.title_label, value=item.title, key=page_state.NEW_TITLE, max_chars=200)
        if not title.strip():
            st.markdown(f":small[:red[:material/error: {words.title_missing}]]")
        _draw_choice(st.form_submit_button, words.save, words.cancel, action.rename, item.session_id)
    _leave_closed()


def _draw_delete(now: PageState, item: SessionItem) -> None:
    words = now.words
    st.markdown(words.delete_question.format(title=escape_label(item.title) or words.untitled))
    with st.container(key="danger"):
        _draw_choice(st.button, words.delete, words.cancel, action.delete, item.session_id)
    _leave_closed()


def _draw_choice(
    button: Callable[..., bool], confirm: str, cancel: str, on_confirm: Callable[[str], None], identifier: str
) -> None:
    # Enter presses a form's first button; the style sheet shows the two in reverse.
    with st.container(horizontal=True, key="dialog_choice"):
        button(confirm, key="dialog_confirm", type="primary", on_click=on_confirm, args=(identifier,))
        button(cancel, key="dialog_cancel", on_click=dialog.close)


def _leave_closed() -> None:
    if not dialog.is_open():
        st.rerun()
