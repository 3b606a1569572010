"""Draws what is long in part, with a button that shows the rest in place."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from component import delivery
from component.word import Words


def draw(words: Words, key: str, draw_content: Callable[[bool], None]) -> None:
    """Draws the content by `draw_content(is_whole)`, clamped by the style sheet until the reader opens it."""
    is_whole = st.session_state.get(key, False)
    with st.container(key=f"{'whole' if is_whole else 'clamped'}_{key}", gap="xsmall"):
        draw_content(is_whole)
    st.button(
        words.show_less if is_whole else words.show_more,
        key=f"more_{key}",
        type="tertiary",
        icon=":material/expand_less:" if is_whole else ":material/expand_more:",
        on_click=_turn_over,
        args=(key,),
    )


@delivery.once
def _turn_over(key: str) -> None:
    st.session_state[key] = not st.session_state.get(key, False)
