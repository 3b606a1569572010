"""Draws the line from which the model forgets what was said, with its undoing, and the dialog that asks before."""

from __future__ import annotations

import streamlit as st

from component import action, dialog
from component.page_state import PageState
from component.word import Words


def draw_divider(words: Words, identifier: str, turn: int, *, can_undo: bool) -> None:
    """Draws the line behind this turn."""
    # The style sheet draws the lines at both sides.
    with st.container(
        horizontal=True, horizontal_alignment="center", vertical_alignment="center", gap="small", key=f"reset_{turn}"
    ):
        st.markdown(
            f":small[:gray[:material/restart_alt: {words.reset_divider}]]", width="content", text_alignment="center"
        )
        if can_undo:
            st.button(
                words.undo_reset,
                key="undo_reset",
                type="tertiary",
                icon=":material/undo:",
                on_click=action.undo_reset,
                args=(identifier,),
            )


def draw_dialog(now: PageState, identifier: str) -> None:
    """Draws the question, if the command asked for it."""
    dialog.draw(action.RESET_DIALOG, now.words.reset_title, _draw_question, now.words, identifier)


def _draw_question(words: Words, identifier: str) -> None:
    st.markdown(words.reset_question)
    with st.container(horizontal=True, horizontal_alignment="right"):
        st.button(words.cancel, key="dialog_cancel", on_click=dialog.close)
        st.button(words.reset, key="dialog_confirm", type="primary", on_click=action.reset, args=(identifier,))
    if not dialog.is_open():
        st.rerun()
