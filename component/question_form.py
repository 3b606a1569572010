"""The form in the place of a question that is edited, which is then asked in a branch. One is open at most."""

from __future__ import annotations

from typing import Final

import streamlit as st

from component import action
from component.word import Words
from graph.value.view import TurnView

_OPEN: Final = "edited_question"


def is_open(identifier: str, turn: int) -> bool:
    """Whether the form stands in the place of this question."""
    return bool(st.session_state.get(_OPEN) == (identifier, turn))


def draw(words: Words, identifier: str, turn: TurnView) -> None:
    """Draws the form with the question as it was asked."""
    said, key = words.sessions, f"edited_{identifier}_{turn.number}"
    with st.form("edit_question"):
        st.text_area(said.question, value=turn.user_text, key=key, height="content", label_visibility="collapsed")
        st.markdown(f":small[:gray[:material/alt_route: {said.edit_note}]]")
        # Ctrl+Enter presses a form's first button; the style sheet shows the two in reverse.
        with st.container(horizontal=True, key="edit_choice"):
            st.form_submit_button(
                said.ask_in_branch,
                key="edit_confirm",
                type="primary",
                on_click=_ask,
                args=(identifier, turn.number, key),
            )
            st.form_submit_button(words.cancel, key="edit_cancel", on_click=_close)


def open_at(identifier: str, turn: int) -> bool:
    """Opens the form in the place of this question; returns whether no other one was open."""
    is_alone = _OPEN not in st.session_state
    st.session_state[_OPEN] = (identifier, turn)
    return is_alone


def _close() -> None:
    st.session_state.pop(_OPEN, None)


def _ask(identifier: str, turn: int, key: str) -> None:
    """Asks the edited question in a branch; the form stays open if it is refused."""
    if action.edit(identifier, turn, str(st.session_state[key])):
        _close()
