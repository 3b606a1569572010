"""Shows dialogs, knows the open form of a project, and tells a refusal where it was asked.

What is open is state of the tab, which any run retains.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import streamlit as st

from component.bridge import delivery
from graph.value.error import TurnfoldError

_OPEN, _DRAWN, _TRIED = "open_dialog", "drawn_dialog", "tried"


def request(name: str) -> None:
    """Widget callback: opens a dialog, which `draw` shows in this run or the next."""
    st.session_state.update({_OPEN: name, _TRIED: ("", None)})


def attempt(place: str, act: Callable[[], object]) -> bool:
    """Does something; a refusal stands at the place until the next try."""
    refusal = None
    try:
        act()
    except TurnfoldError as error:
        refusal = error
    st.session_state[_TRIED] = place, refusal
    return refusal is None


def outcome(place: str) -> tuple[bool, TurnfoldError | None]:
    """Returns whether the last try was at this place, and its refusal."""
    tried_at, refusal = st.session_state.get(_TRIED, ("", None))
    return (True, refusal) if tried_at == place else (False, None)


def draw(
    name: str,
    title: str,
    draw_content: Callable[..., None],
    *arguments: object,
    width: int | Literal["small"] = "small",
) -> None:
    if st.session_state.get(_OPEN) != name:
        return

    @functools.wraps(draw_content)
    def draw_until_closed() -> None:
        draw_content(*arguments)
        if not is_open():
            st.rerun()

    st.session_state[_DRAWN] = name
    st.dialog(title, width=width, on_dismiss=_dismiss)(delivery.delivered(draw_until_closed))()


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


def draw_choice(
    label: str,
    act: Callable[..., None],
    *arguments: object,
    cancel: str,
    on_cancel: Callable[[], None] = close,
    key: str = "dialog_{}",
    is_form: bool = True,
) -> None:
    """Draws the two buttons of a dialog or a form; Enter presses the first, and the style sheet reverses the order."""
    button = st.form_submit_button if is_form else st.button
    with st.container(horizontal=True, key=key.format("choice")):
        button(label, key=key.format("confirm"), type="primary", on_click=act, args=arguments)
        button(cancel, key=key.format("cancel"), on_click=on_cancel)


def _dismiss() -> None:
    begin()
    close()


PANEL: Final = "panel"  # a surface that forms are drawn on
_FORM: Final = "open_form"


class Form(NamedTuple):
    """A form of a project; at most one is open in a tab."""

    surface: str
    root: str
    name: str


def open_form(form: Form) -> None:
    close_form()
    st.session_state[_FORM] = form


def close_form() -> None:
    st.session_state.update({_FORM: None, _TRIED: ("", None)})


def is_form_open(form: Form) -> bool:
    return bool(st.session_state.get(_FORM) == form)


def has_form(surface: str) -> bool:
    opened = st.session_state.get(_FORM)
    return opened is not None and opened.surface == surface


def leave_form(surface: str, root: str = "") -> None:
    if has_form(surface) and st.session_state[_FORM].root != root:
        close_form()
