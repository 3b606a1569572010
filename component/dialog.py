"""Shows dialogs. The open dialog is state of the tab, so that interrupted and whole-page runs retain it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import streamlit as st

from component.bridge.delivery import delivered

_OPEN, _DRAWN = "open_dialog", "drawn_dialog"


def request(name: str) -> None:
    """Widget callback: opens a dialog, which `draw` shows in this run or the next."""
    st.session_state[_OPEN] = name


def draw(
    name: str,
    title: str,
    draw_content: Callable[..., None],
    *arguments: object,
    width: int | Literal["small"] = "small",
) -> None:
    if st.session_state.get(_OPEN) == name:
        st.session_state[_DRAWN] = name
        st.dialog(title, width=width, on_dismiss=_dismiss)(delivered(draw_content))(*arguments)


def is_open() -> bool:
    """Returns True if a dialog is open; a rerun of the page may reset it and lose typed text."""
    return st.session_state.get(_OPEN) is not None


def is_left() -> bool:
    """Returns True if a closed dialog is still shown in the browser, until the whole page is drawn."""
    return st.session_state.get(_DRAWN) not in {None, st.session_state.get(_OPEN)}


def begin() -> None:
    """Resets the record of drawn dialogs before the whole page is drawn."""
    st.session_state.pop(_DRAWN, None)


def close_undrawn() -> None:
    """Closes a dialog that was not drawn, because the session or row is gone."""
    if _DRAWN not in st.session_state:
        close()


def close() -> None:
    """Widget callback: closes the open dialog with the next drawing of the whole page."""
    st.session_state.pop(_OPEN, None)


def _dismiss() -> None:
    begin()
    close()
