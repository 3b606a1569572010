"""Shows dialogs and knows whether one is open: drawing the whole page anew closes it, with what was typed in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import streamlit as st

_OPEN = "dialog_is_open"


def show(
    title: str,
    draw: Callable[..., None],
    *arguments: object,
    position: Literal["center", "right"] = "center",
    width: int | Literal["small"] = "small",
) -> None:
    """Shows a dialog over the page, its contents drawn by `draw(*arguments)`."""
    st.session_state[_OPEN] = True
    st.dialog(title, position=position, width=width, on_dismiss=forget)(draw)(*arguments)


def is_open() -> bool:
    """Returns whether a dialog is open in this tab: then only the user may have the page drawn anew."""
    return _OPEN in st.session_state


def forget() -> None:
    """Says that no dialog is open: the page is being drawn anew, or the dialog was dismissed."""
    st.session_state.pop(_OPEN, None)
