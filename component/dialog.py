"""Shows dialogs. Which one is open is state of the tab: no run that is overtaken or draws all anew loses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import streamlit as st

from component.bridge.delivery import delivered

DRAWER: Final = "panel"  # the panel on a narrow page
_OPEN, _DRAWN = "open_dialog", "drawn_dialog"


def request(name: str) -> None:
    """Asks for a dialog, as a widget callback; `draw` shows it in this run or the next."""
    st.session_state[_OPEN] = name


def draw(
    name: str,
    title: str,
    draw_content: Callable[..., None],
    *arguments: object,
    position: Literal["center", "right"] = "center",
    width: int | Literal["small"] = "small",
) -> None:
    """Draws a dialog over the page if it's the one that is open, its contents by `draw_content(*arguments)`."""
    if st.session_state.get(_OPEN) == name:
        st.session_state[_DRAWN] = name
        st.dialog(title, position=position, width=width, on_dismiss=_dismiss)(delivered(draw_content))(*arguments)


def is_open(*, but: str = "") -> bool:
    """Returns whether a dialog is open, other than the one of this name.

    A rerun of the page may rebuild it and lose what is being typed there.
    """
    return st.session_state.get(_OPEN) not in {None, but}


def is_left() -> bool:
    """Returns whether a dialog that was closed still stands in the browser: only a drawing of the whole page ends it.

    It asks for that itself, but it isn't drawn any more where the part that opened it is drawn in the same run.
    """
    return st.session_state.get(_DRAWN) not in {None, st.session_state.get(_OPEN)}


def begin() -> None:
    """Begins a drawing of the whole page: no dialog stands in it yet."""
    st.session_state.pop(_DRAWN, None)


def close_undrawn() -> None:
    """Closes a dialog that nothing on the page draws any more: its session is gone, or its row."""
    if _DRAWN not in st.session_state:
        close()


def close() -> None:
    """Closes the open dialog with the next drawing of the whole page, as a widget callback."""
    st.session_state.pop(_OPEN, None)


def _dismiss() -> None:
    """Closes the dialog that the browser has taken away by itself."""
    begin()
    close()
