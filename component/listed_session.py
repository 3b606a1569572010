"""Draws a chat in the list of the sidebar: its title, its menu and the dialogs that this opens."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from component import action, dialog, menu, page_state, program, session_export, session_list
from component.format import escape_label
from component.page_state import PageState
from graph.value.view import SessionItem


def draw(now: PageState, item: SessionItem) -> None:
    """Draws the row, what a search found there, and the dialog of its menu that is open."""
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
        _draw_menu(now, item, title)
    if item.client:
        with st.container(key=f"client_{state}_{item.session_id}"):
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
    dialog.draw(f"rename_{item.session_id}", words.rename_title, _draw_rename, now, item)
    dialog.draw(f"export_{item.session_id}", words.sessions.export_title, session_export.draw, now, item)
    dialog.draw(f"delete_{item.session_id}", words.delete_title, _draw_delete, now, item)


def _draw_menu(now: PageState, item: SessionItem, title: str) -> None:
    words, said, identifier = now.words, now.words.sessions, item.session_id
    choices: Mapping[str, Callable[[], None]] = {
        words.rename: lambda: dialog.request(f"rename_{identifier}"),
        said.unpin if item.is_pinned else said.pin: lambda: action.pin(identifier, is_pinned=not item.is_pinned),
        said.export: lambda: dialog.request(f"export_{identifier}"),
        said.fork: lambda: action.fork(identifier, after_turn=item.turn_count),
        words.delete: lambda: dialog.request(f"delete_{identifier}"),
    }
    menu.draw(words.chat_menu.format(title=title), f"menu_{identifier}", choices)


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
