"""Draws a menu of things to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st


def draw(label: str, key: str, choices: Mapping[str, Callable[[], None]]) -> None:
    """Draws a menu whose label is for screen readers; each choice is a widget callback.

    Args:
        label: What the menu is called.
        key: Begins with `menu_`, by which the style sheet knows it.
        choices: What can be done, by its label.
    """
    st.menu_button(
        label,
        tuple(choices),
        key=key,
        type="tertiary",
        icon=":material/more_horiz:",
        on_click=_choose,
        args=(key, choices),
    )


def _choose(key: str, choices: Mapping[str, Callable[[], None]]) -> None:
    choices[st.session_state[key]]()
